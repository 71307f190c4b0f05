#!/usr/bin/env python3
"""What `cmake --install` leaves behind is enough for a developer: header, libraries, pkg-config, CMake, pages.

Usage: install_test.py SOURCE_DIR BINARY_DIR
Installs into a directory of its own, moves it, and builds examples/pick.c four ways against it.
Exit 77: skipped, because the build is not complete (or is a sanitizer's).
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

PROJECT = """cmake_minimum_required(VERSION 3.16)
project(user C)
find_package(pickd 0.1 REQUIRED)
add_executable(dynamic pick.c)
target_link_libraries(dynamic PRIVATE pickd::pickd)
add_executable(static pick.c)
target_link_libraries(static PRIVATE pickd::static)
add_executable(body body.c)
target_link_libraries(body PRIVATE pickd::body pickd::pickd)
add_executable(body_static body.c)
target_link_libraries(body_static PRIVATE pickd::body_static pickd::pickd)
"""


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} gave {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def built(binary):
    names = ["bin/pickd", "bin/pickctl", "bin/pickd-bench", "bin/enginesim", "lib/libpickd.so.0", "lib/libpickd.a",
             "lib/libpickd-body.so.0", "lib/libpickd-body.a",
             "man/man3/pickd.3", "man/man8/pickd.8"]
    return [name for name in names if not os.path.exists(os.path.join(binary, name))]


def find(root, name):
    found = [os.path.join(directory, name) for directory, directories, files in os.walk(root)
             if name in files + directories]
    if not found:
        raise RuntimeError(f"{name} was not installed; there are:\n" + run("find", root, "-not", "-type", "d"))
    return found[0]


def check_example(program, directory, libraries):
    """Without a daemon the example says so: it was linked, loaded and run."""
    environment = {"PICKD_SOCKET": os.path.join(directory, "none"), "LD_LIBRARY_PATH": libraries}
    done = subprocess.run([program], env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 1 or "the daemon is not there" not in done.stderr:
        raise RuntimeError(f"{program} gave {done.returncode}: {done.stderr!r}")


def needs_libpickd(program):
    return "libpickd.so.0" in run("readelf", "-dW", program)


def check_programs(root):
    for name in ("pickd", "pickctl", "pickd-bench"):
        folder = "sbin" if name == "pickd" else "bin"
        told = run(os.path.join(root, folder, name), "--version")
        if not re.search(r"\d+\.\d+\.\d+", told):
            raise RuntimeError(f"{name} --version says {told!r}")
    run(find(root, "enginesim"), "--help")
    for completion in ("bash-completion/completions/pickctl", "zsh/site-functions/_pickctl",
                       "fish/vendor_completions.d/pickctl.fish"):
        with open(os.path.join(root, "share", completion), encoding="utf-8") as file:
            if "undrain" not in file.read():
                raise RuntimeError(completion + " does not complete the commands of pickctl")
    for page in ("pickd.8", "pickctl.1", "pickd-bench.1", "enginesim.1", "pickd.3", "pickd_pick.3",
                 "pickd-body.3", "pickd_body_request.3"):
        find(root, page)


def check_cluster(root, source):
    """The rights that discovery needs in a cluster come along, unchanged."""
    with open(os.path.join(root, "share/pickd/kubernetes/rbac.yaml"), encoding="utf-8") as installed, \
            open(os.path.join(source, "packaging/kubernetes/rbac.yaml"), encoding="utf-8") as written:
        if installed.read() != written.read():
            raise RuntimeError("share/pickd/kubernetes/rbac.yaml is not packaging/kubernetes/rbac.yaml")


def check_library(root):
    libraries = os.path.dirname(find(root, "libpickd.so.0"))
    names = sorted(name for name in os.listdir(libraries) if name.startswith("libpickd"))
    if names != [stem + end for stem in ("libpickd-body", "libpickd") for end in (".a", ".so", ".so.0", ".so.0.1.0")]:
        raise RuntimeError(f"libraries installed: {names}")
    for link in ("libpickd.so", "libpickd.so.0", "libpickd-body.so", "libpickd-body.so.0"):
        if not os.path.islink(os.path.join(libraries, link)):
            raise RuntimeError(f"{link} is a copy, it should be a link")
    return libraries


def with_pkg_config(root, source, directory, libraries):
    environment = {**os.environ, "PKG_CONFIG_PATH": os.path.dirname(find(root, "pickd.pc"))}
    flags = run("pkg-config", "--cflags", "--libs", "pickd", env=environment).split()
    example = os.path.join(source, "examples/pick.c")
    for name, link in (("dynamic", flags), ("static", ["-Wl,-Bstatic", *flags, "-Wl,-Bdynamic"])):
        program = os.path.join(directory, "pc_" + name)
        run("cc", "-std=c11", "-pedantic", "-Wall", "-Werror", example, *link, "-o", program)
        if needs_libpickd(program) != (name == "dynamic"):
            raise RuntimeError(f"pkg-config: the {name} program is not {name}")
        check_example(program, directory, libraries)


def body_with_pkg_config(root, source, directory, libraries):
    """libpickd-body, shared and as an archive, which needs simdjson and the C++ runtime."""
    environment = {**os.environ, "PKG_CONFIG_PATH": os.path.dirname(find(root, "pickd.pc"))}
    flags = run("pkg-config", "--cflags", "--libs", "pickd-body", "pickd", env=environment).split()
    private = run("pkg-config", "--static", "--libs", "pickd-body", env=environment).split()
    archive = ["-Wl,-Bstatic", "-lpickd-body", "-Wl,-Bdynamic", *[flag for flag in private if flag != "-lpickd-body"]]
    for name, link in (("dynamic", flags), ("static", [*archive, *[flag for flag in flags if flag != "-lpickd-body"]])):
        program = os.path.join(directory, "body_" + name)
        run("cc", "-std=c11", "-Wall", "-Werror", os.path.join(source, "examples/body.c"), *link, "-o", program)
        if ("libpickd-body.so.0" in run("readelf", "-dW", program)) != (name == "dynamic"):
            raise RuntimeError(f"pkg-config: the {name} program with libpickd-body is not {name}")
        environment = {"PICKD_SOCKET": os.path.join(directory, "none"), "LD_LIBRARY_PATH": libraries}
        done = subprocess.run([program, "/v1/completions"], env=environment, input='{"model": "m", "prompt": "Hello"}',
                              capture_output=True, text=True, check=False)
        if "model m, 1 prompts, 2 tokens" not in done.stdout:
            raise RuntimeError(f"{program} gave {done.returncode}: {done.stdout!r} {done.stderr!r}")


def with_cmake(root, source, directory, libraries):
    project = os.path.join(directory, "project")
    os.makedirs(project)
    for example in ("pick.c", "body.c"):
        shutil.copy(os.path.join(source, "examples", example), project)
    with open(os.path.join(project, "CMakeLists.txt"), "w", encoding="utf-8") as out:
        out.write(PROJECT)
    build = os.path.join(directory, "build")
    run("cmake", "-S", project, "-B", build, f"-DCMAKE_PREFIX_PATH={root}")
    run("cmake", "--build", build)
    for name in ("dynamic", "static"):
        program = os.path.join(build, name)
        if needs_libpickd(program) != (name == "dynamic"):
            raise RuntimeError(f"CMake: the {name} program is not {name}")
        check_example(program, directory, libraries)


def main():
    source, binary = (os.path.abspath(path) for path in sys.argv[1:3])
    with open(os.path.join(binary, "CMakeCache.txt"), encoding="utf-8") as cache:
        if re.search(r"^PICKD_SANITIZE:\w+=\S", cache.read(), re.M):
            print("skipped: a sanitizer's build is not what ships")
            return 77
    if missing := built(binary):
        print(f"skipped: not built: {', '.join(missing)}")
        return 77
    for tool in ("cc", "cmake", "pkg-config", "readelf"):
        if shutil.which(tool) is None:
            print(f"skipped: there is no {tool}")
            return 77
    with tempfile.TemporaryDirectory() as directory:
        run("cmake", "--install", binary, "--prefix", os.path.join(directory, "first"))
        root = os.path.join(directory, "moved")  # nothing may remember where it was put first
        os.rename(os.path.join(directory, "first"), root)
        check_programs(root)
        check_cluster(root, source)
        libraries = check_library(root)
        with_pkg_config(root, source, directory, libraries)
        body_with_pkg_config(root, source, directory, libraries)
        with_cmake(root, source, directory, libraries)
    print("installed, moved, and built against with pkg-config and CMake, shared and static")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, OSError) as failure:
        print(failure)
        sys.exit(1)
