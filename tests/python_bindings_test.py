#!/usr/bin/env python3
"""Builds the wheel of bindings/python, runs its tests against real daemons with the installed package, and mypy.

Usage: python_bindings_test.py SOURCE_DIR BINARY_DIR
Exit 77: skipped, because no Python here can build it or the libraries are not built.
"""
import os
import re
import subprocess
import sys

import python_tools


def versions(source):
    """The versions that must be one."""
    found = {}
    for path, pattern in (("CMakeLists.txt", r"project\(pickd VERSION (\S+)"),
                          ("bindings/python/pyproject.toml", r'^version = "(\S+)"'),
                          ("bindings/python/src/pickd/__init__.py", r'^__version__ = "(\S+)"')):
        with open(os.path.join(source, path), encoding="utf-8") as file:
            found[path] = re.search(pattern, file.read(), re.MULTILINE).group(1)
    return found


def check_types(python, installed, source):
    """mypy over the installed package, which is what its users check against, and over the examples."""
    if subprocess.run([python, "-c", "import mypy"], capture_output=True, check=False).returncode != 0:
        print("no mypy here: types are not checked (./dev languages gets it)")
        return 0
    folder = os.path.join(source, "bindings/python")
    return subprocess.run([python, "-m", "mypy", "--config-file", os.path.join(folder, "pyproject.toml"), "--cache-dir",
                           os.path.join(installed, ".mypy"), os.path.join(installed, "pickd"),
                           os.path.join(folder, "examples")],
                          check=False, cwd=installed, env={**os.environ, "MYPYPATH": installed}).returncode


def main():
    source, binary = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    found = versions(source)
    if len(set(found.values())) != 1:
        print(f"failed: versions differ: {found}")
        return 1
    python = python_tools.interpreter(source)
    installed = python_tools.build(python, source, binary, os.path.join(binary, "python/bindings"))
    if not os.path.exists(os.path.join(installed, "pickd/py.typed")):
        print("failed: py.typed is not in the wheel, so its types are not seen")
        return 1
    environment = {**os.environ, "PYTHONPATH": installed, "DAEMON_BIN": os.path.join(binary, "bin"),
                   "PYTHONDONTWRITEBYTECODE": "1"}
    tested = subprocess.run([python, "-W", "error::ResourceWarning", "-m", "unittest", "-v"], env=environment,
                            cwd=os.path.join(source, "bindings/python/tests"), check=False)
    return tested.returncode or check_types(python, installed, source)


if __name__ == "__main__":
    sys.exit(main())
