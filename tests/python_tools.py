"""What the tests of the Python package share: an interpreter that can build it, and its wheel, unpacked.

A test that cannot run exits 77 with why; with REQUIRE_PYTHON in the environment that is a failure (the build server).
"""
import os
import shutil
import subprocess
import sys

SKIPPED = 77
NEEDED = """
import importlib.util, os, sys, sysconfig
assert sys.version_info >= (3, 9), "it is older than 3.9"
for name in ("cffi", "pip", "setuptools", "wheel"):
    assert importlib.util.find_spec(name), name + " is missing"
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")), "Python.h is missing"
"""


def skip(why):
    print("skipped: " + why)
    if os.environ.get("REQUIRE_PYTHON"):
        print("REQUIRE_PYTHON is set: that is a failure")
        sys.exit(1)
    sys.exit(SKIPPED)


def interpreter(source):
    """A Python with all that the wheel's build needs: that of `./dev languages`, this one, or another in PATH."""
    reasons = []
    for python in (os.path.join(source, "build/languages/wheels/bin/python"), sys.executable, shutil.which("python3"),
                   "/usr/bin/python3"):
        if python is None or not os.path.exists(python):
            continue
        tried = subprocess.run([python, "-c", NEEDED], capture_output=True, text=True, check=False)
        if tried.returncode == 0:
            return python
        reasons.append(f"{python}: {(tried.stderr.strip().splitlines() or ['it does not run'])[-1]}")
    return skip("no Python can build the package (./dev languages gets one): " + "; ".join(dict.fromkeys(reasons)))


def build(python, source, binary, into):
    """Builds the wheel as the README says, offline, and installs it into a directory, which is returned."""
    for name in ("libpickd.so", "libpickd-body.so"):
        if not os.path.exists(os.path.join(binary, "lib", name)):
            skip(f"{name} is not built in {binary}")
    shutil.rmtree(into, ignore_errors=True)
    # A copy: setuptools leaves its work beside the sources.
    shutil.copytree(os.path.join(source, "bindings/python"), os.path.join(into, "source"),
                    ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    environment = {**os.environ, "PKG_CONFIG_PATH": os.path.join(binary, "pkgconfig"),
                   "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    pip = [python, "-m", "pip", "--quiet"]
    run([*pip, "wheel", "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", os.path.join(into, "dist"),
         os.path.join(into, "source")], environment)
    wheels = os.listdir(os.path.join(into, "dist"))
    if len(wheels) != 1 or "-cp39-abi3-" not in wheels[0]:
        raise RuntimeError(f"wheels made: {wheels}; one for the stable ABI is expected")
    installed = os.path.join(into, "installed")
    run([*pip, "install", "--no-index", "--no-deps", "--target", installed, os.path.join(into, "dist", wheels[0])],
        environment)
    return installed


def run(command, environment, folder=None):
    """Runs a tool; its output is told when it fails."""
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} gave {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout
