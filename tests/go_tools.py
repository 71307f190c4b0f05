"""What the tests of Go modules share: whether this machine has a Go that is new enough, and how it finds the build tree.

A test that cannot run exits 77 with why; with REQUIRE_GO in the environment that is a failure (the build server).
"""
import os
import re
import shutil
import subprocess
import sys

GO_MIN = (1, 24)
SKIPPED = 77


def skip(why):
    print("skipped: " + why)
    if os.environ.get("REQUIRE_GO"):
        print("REQUIRE_GO is set: that is a failure")
        sys.exit(1)
    sys.exit(SKIPPED)


def environment(binary):
    """Variables with which Go finds this build tree."""
    made = dict(os.environ)
    made["PKG_CONFIG_PATH"] = os.path.join(binary, "pkgconfig")
    made["DAEMON_BIN"] = os.path.join(binary, "bin")
    made["CGO_ENABLED"] = "1"
    made["GOFLAGS"] = " ".join([made.get("GOFLAGS", ""), "-buildvcs=false"]).strip()
    return made


def need_go(binary):
    """Exits where there is no Go, or one that is too old, or no shared library to link."""
    if shutil.which("go") is None:
        skip("there is no Go in PATH; Go %d.%d or newer runs these tests" % GO_MIN)
    said = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout
    version = re.match(r"go(\d+)\.(\d+)", said)
    if version is None or tuple(map(int, version.groups())) < GO_MIN:
        skip("Go is %s; Go %d.%d or newer runs these tests" % ((said.strip() or "unknown",) + GO_MIN))
    need_library(binary, "libpickd.so")


def need_library(binary, name):
    """Exits where a library that the modules link is not built."""
    if not os.path.exists(os.path.join(binary, "lib", name)):
        skip("%s is not built in %s" % (name, binary))


def need_modules(folder, env):
    """Exits where what a module needs cannot be had: there is no network and no copy of it."""
    fetched = subprocess.run(["go", "mod", "download"], cwd=folder, env=env, capture_output=True, text=True, check=False)
    if fetched.returncode != 0:
        skip("go mod download: " + fetched.stderr.strip())


def run(arguments, folder, env):
    """Runs a tool, its output to ours; whether it succeeded."""
    print("+ " + " ".join(arguments), flush=True)
    return subprocess.run(arguments, cwd=folder, env=env, check=False).returncode == 0


def check_module(folder, env, race):
    """Format, vet, tests, tests again under the race detector: what is wrong, in words."""
    wrong = []
    unformatted = subprocess.run(["gofmt", "-l", "."], cwd=folder, capture_output=True, text=True, check=False)
    if unformatted.stdout or unformatted.returncode != 0:
        wrong.append("gofmt -l: " + (unformatted.stdout or unformatted.stderr))
    if not run(["go", "mod", "verify"], folder, env):
        wrong.append("go mod verify")
    if not run(["go", "vet", "./..."], folder, env):
        wrong.append("go vet")
    if not run(["go", "test", "-count=1", "-timeout=500s", "./..."], folder, env):
        wrong.append("go test")
    if race and not run(["go", "test", "-race", "-count=1", "-timeout=500s", *race], folder, env):
        wrong.append("go test -race")
    return wrong


def finish(wrong):
    for line in wrong:
        print("failed: " + line)
    return 1 if wrong else 0
