#!/usr/bin/env python3
"""libpickd-body exports what abi/libpickd-body.map names and nothing else, and needs simdjson and the C++ runtime
beside libc, not libpickd. The C example, linked with the shared library and with the archive, reads a body.

Usage: libpickd_body_symbols_test.py SOURCE_DIR BINARY_DIR
Exit 77: skipped, because the build has a sanitizer (which brings symbols of its own) or no library.
"""
import os
import re
import subprocess
import sys
import tempfile

NEEDED = re.compile(r"libsimdjson\.so\.\d+|libstdc\+\+\.so\.6|libm\.so\.6|libgcc_s\.so\.1|libc\.so\.6|ld-linux.*")
BODY = b'{"model": "m", "messages": [{"role": "user", "content": "Hello"}], "stream": true}'


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def symbols(path, pattern):
    with open(path, encoding="utf-8") as text:
        return set(re.findall(pattern, text.read(), re.M))


def defined(path, *options):
    lines = (line.split() for line in run("nm", "--defined-only", *options, path).splitlines())
    return {parts[2].split("@")[0] for parts in lines if len(parts) == 3 and parts[1] != "A"}


def mistakes_of(source, library, archive):
    public = symbols(os.path.join(source, "abi/libpickd-body.map"), r"^\s*(pickd_\w+);")
    declared = symbols(os.path.join(source, "include/pickd/body.h"), r"PICKD_API[^;(]*?\b(pickd_\w+)\s*\(")
    if declared != public or not public:
        yield f"in body.h or in the map, not in both: {declared ^ public}"
    dynamic = run("readelf", "-dW", library)
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)
    if not all(NEEDED.fullmatch(name) for name in needed):
        yield f"libpickd-body.so needs {needed}"
    if not re.search(r"\(SONAME\).*\[libpickd-body\.so\.0\]", dynamic):
        yield "the soname is not libpickd-body.so.0"
    if (exported := defined(library, "-D")) != public:
        yield f"exported, and not in the map or the other way: {exported ^ public}"
    versions = run("readelf", "--dyn-syms", "-W", library)
    if len(re.findall(r"pickd_\w+@@PICKD_BODY_0\b", versions)) != len(public):
        yield "a public symbol has no version PICKD_BODY_0"
    if (shown := defined(archive, "-g")) != public:
        yield f"libpickd-body.a shows, and the map does not or the other way: {shown ^ public}"


def example_of(source, binary, name, *link):
    """What is wrong with the example, linked so by a C compiler: without a daemon it says what it read."""
    with tempfile.TemporaryDirectory() as directory:
        program = os.path.join(directory, "body")
        run("cc", "-std=c11", "-I", os.path.join(source, "include"), os.path.join(source, "examples/body.c"), *link,
            os.path.join(binary, "lib/libpickd.so.0"), "-o", program)
        environment = {"PICKD_SOCKET": os.path.join(directory, "none"), "LD_LIBRARY_PATH": os.path.join(binary, "lib")}
        for body, told in ((BODY, "model m, 1 prompts, 3 tokens"), (BODY[:-1], "model , 0 prompts, 0 tokens")):
            result = subprocess.run([program, "/v1/chat/completions"], env=environment, input=body,
                                    capture_output=True, check=False)
            if told not in result.stdout.decode() or b"the daemon is not there" not in result.stderr:
                yield f"the example with {name} gave {result.returncode}: {result.stdout!r} {result.stderr!r}"
            if (b"no prompt" in result.stderr) != (body != BODY):
                yield f"the example with {name} says of {body!r}: {result.stderr!r}"


def main():
    source, binary = sys.argv[1], sys.argv[2]
    with open(os.path.join(binary, "CMakeCache.txt"), encoding="utf-8") as cache:
        if re.search(r"^PICKD_SANITIZE:\w+=\S", cache.read(), re.M):
            print("skipped: a sanitizer's build is not what ships")
            return 77
    library, archive = (os.path.join(binary, "lib", name) for name in ("libpickd-body.so.0", "libpickd-body.a"))
    for path in (library, archive, os.path.join(binary, "lib/libpickd.so.0")):
        if not os.path.exists(path):
            print(f"skipped: {path} was not built")
            return 77
    mistakes = [*mistakes_of(source, library, archive),
                *example_of(source, binary, "the shared library", library),
                *example_of(source, binary, "the archive", archive, "-lsimdjson", "-lstdc++")]
    for mistake in mistakes:
        print(mistake)
    print(f"libpickd-body: {len(mistakes)} mistakes")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
