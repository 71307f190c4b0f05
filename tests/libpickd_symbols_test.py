#!/usr/bin/env python3
"""libpickd needs libc only, exports what abi/libpickd.map names and nothing else, and links into C.

Usage: libpickd_symbols_test.py SOURCE_DIR BINARY_DIR
Exit 77: skipped, because the build has a sanitizer (which brings symbols of its own) or no library.
"""
import os
import re
import subprocess
import sys
import tempfile

# The ELF linker's own optional hooks; nobody has to define them.
WEAK_HOOKS = {"__gmon_start__", "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "__cxa_finalize"}
LIBC = re.compile(r"libc\.so\.6|ld-linux.*\.so\.\d+|libc\.musl-.*|libpthread\.so\.0")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def map_symbols(path):
    with open(path, encoding="utf-8") as text:
        return set(re.findall(r"^\s*(pickd_\w+);", text.read(), re.M))


def header_symbols(path):
    """What pickd.h declares with PICKD_API."""
    with open(path, encoding="utf-8") as text:
        return set(re.findall(r"PICKD_API[^;(]*?\b(pickd_\w+)\s*\(", text.read()))


def defined(path, *options):
    lines = (line.split() for line in run("nm", "--defined-only", *options, path).splitlines())
    return {parts[2].split("@")[0] for parts in lines if len(parts) == 3 and parts[1] != "A"}


def check(mistakes, condition, text):
    if not condition:
        mistakes.append(text)


def check_shared(mistakes, library, public):
    dynamic = run("readelf", "-dW", library)
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)
    check(mistakes, all(LIBC.fullmatch(name) for name in needed), f"libpickd.so needs {needed}: libc only")
    check(mistakes, re.search(r"\(SONAME\).*\[libpickd\.so\.0\]", dynamic), "the soname is not libpickd.so.0")
    exported = defined(library, "-D")
    check(mistakes, exported == public, f"exported, and not in the map or the other way: {exported ^ public}")
    foreign = {line.split()[-1] for line in run("nm", "-D", "--undefined-only", library).splitlines()
               if "@GLIBC" not in line} - WEAK_HOOKS
    check(mistakes, not foreign, f"libpickd.so needs {sorted(foreign)}, which libc does not have")
    versions = run("readelf", "--dyn-syms", "-W", library)
    check(mistakes, len(re.findall(r"pickd_\w+@@PICKD_0\b", versions)) == len(public),
          "a public symbol has no version PICKD_0")


def check_archive(mistakes, archive, public):
    shown = defined(archive, "-g")
    check(mistakes, shown == public, f"libpickd.a shows, and the map does not or the other way: {shown ^ public}")
    missing = {line.split()[-1] for line in run("nm", "-g", "--undefined-only", archive).splitlines()
               if " U " in line}
    runtime = {name for name in missing if name.startswith(("_Z", "__cxa", "__gxx"))}
    check(mistakes, not runtime, f"libpickd.a needs a C++ runtime: {sorted(runtime)}")


def check_c_program(mistakes, source, link, environment):
    """The example, linked by a C compiler that knows nothing of C++, says why it cannot pick."""
    with tempfile.TemporaryDirectory() as directory:
        program = os.path.join(directory, "pick")
        run("cc", "-std=c11", "-I", os.path.join(source, "include"), os.path.join(source, "examples/pick.c"),
            *link, "-o", program)
        result = subprocess.run([program], env={"PICKD_SOCKET": os.path.join(directory, "none"), **environment},
                                capture_output=True, text=True, check=False)
        check(mistakes, result.returncode == 1 and "daemon is not there" in result.stderr,
              f"the C example with {link} gave {result.returncode}: {result.stderr!r}")


def main():
    source, binary = sys.argv[1], sys.argv[2]
    with open(os.path.join(binary, "CMakeCache.txt"), encoding="utf-8") as cache:
        if re.search(r"^PICKD_SANITIZE:\w+=\S", cache.read(), re.M):
            print("skipped: a sanitizer's build is not what ships")
            return 77
    library, archive = (os.path.join(binary, "lib", name) for name in ("libpickd.so.0", "libpickd.a"))
    for path in (library, archive):
        if not os.path.exists(path):
            print(f"skipped: {path} was not built")
            return 77
    public = map_symbols(os.path.join(source, "abi/libpickd.map"))
    mistakes = []
    declared = header_symbols(os.path.join(source, "include/pickd/pickd.h"))
    check(mistakes, declared == public, f"in pickd.h or in the map, not in both: {declared ^ public}")
    check_shared(mistakes, library, public)
    check_archive(mistakes, archive, public)
    check_c_program(mistakes, source, [library], {"LD_LIBRARY_PATH": os.path.dirname(library)})
    check_c_program(mistakes, source, [archive], {})
    for mistake in mistakes:
        print(mistake)
    print(f"libpickd: {len(public)} public symbols, {len(mistakes)} mistakes")
    return 1 if mistakes or not public else 0


if __name__ == "__main__":
    sys.exit(main())
