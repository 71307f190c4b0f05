#!/usr/bin/env python3
"""Tests gateways/go-extproc: the rules of the protocol by a client that plays the proxy, against a real daemon.

Usage: go_extproc_test.py SOURCE_DIR BINARY_DIR
"""
import os
import sys

import go_tools


def main():
    source, binary = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    go_tools.need_go(binary)
    go_tools.need_library(binary, "libpickd-body.so")
    folder = os.path.join(source, "gateways/go-extproc")
    go_tools.need_modules(folder, go_tools.environment(binary))
    wrong = go_tools.check_module(folder, go_tools.environment(binary), race=["./internal/..."])
    return go_tools.finish(wrong)


if __name__ == "__main__":
    sys.exit(main())
