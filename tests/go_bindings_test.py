#!/usr/bin/env python3
"""Tests bindings/go against real daemons, also under the race detector, and holds its README to its example.

Usage: go_bindings_test.py SOURCE_DIR BINARY_DIR
"""
import os
import re
import sys

import go_tools


def readme_mistakes(folder):
    with open(os.path.join(folder, "README.md"), encoding="utf-8") as file:
        shown = re.findall(r"```go\n(.*?)```", file.read(), re.DOTALL)
    with open(os.path.join(folder, "examples/pick/main.go"), encoding="utf-8") as file:
        example = file.read()
    return [] if shown == [example] else ["the program in README.md is not examples/pick/main.go; copy it there"]


def version_mistakes(source, folder):
    with open(os.path.join(source, "CMakeLists.txt"), encoding="utf-8") as file:
        project = re.search(r"project\(pickd VERSION (\S+)", file.read()).group(1)
    with open(os.path.join(folder, "client.go"), encoding="utf-8") as file:
        module = re.search(r'Version = "(\S+)"', file.read()).group(1)
    return [] if project == module else ["client.go says version %s, the project is %s" % (module, project)]


def main():
    source, binary = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    folder = os.path.join(source, "bindings/go")
    wrong = readme_mistakes(folder) + version_mistakes(source, folder)
    if wrong:
        return go_tools.finish(wrong)
    go_tools.need_go(binary)
    return go_tools.finish(go_tools.check_module(folder, go_tools.environment(binary), race=["."]))


if __name__ == "__main__":
    sys.exit(main())
