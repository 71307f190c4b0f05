"""What the tests of Rust crates share: whether this machine has a cargo that is new enough, and how it finds the build tree.

A test that cannot run exits 77 with why; with REQUIRE_RUST in the environment that is a failure (the build server).
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

RUST_MIN = (1, 75)
SKIPPED = 77


def skip(why):
    print("skipped: " + why)
    if os.environ.get("REQUIRE_RUST"):
        print("REQUIRE_RUST is set: that is a failure")
        sys.exit(1)
    sys.exit(SKIPPED)


def environment(binary):
    """Variables with which cargo finds this build tree; it builds into it, too."""
    made = {name: value for name, value in os.environ.items() if not name.startswith("PICKD_")}
    made["PKG_CONFIG_PATH"] = os.path.join(binary, "pkgconfig")
    library = os.path.join(binary, "lib")
    made["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [library, made.get("LD_LIBRARY_PATH")]))
    made["DAEMON_BIN"] = os.path.join(binary, "bin")
    made.setdefault("CARGO_TARGET_DIR", os.path.join(binary, "rust"))
    made["CARGO_TERM_COLOR"] = "never"
    return made


def need_rust(binary):
    """Exits where there is no cargo, or one that is too old, or no shared library to link."""
    if shutil.which("cargo") is None or shutil.which("rustc") is None:
        skip("there is no cargo in PATH; Rust %d.%d or newer runs these tests" % RUST_MIN)
    said = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=False).stdout
    version = re.match(r"rustc (\d+)\.(\d+)", said)
    if version is None or tuple(map(int, version.groups())) < RUST_MIN:
        skip("rustc is %s; Rust %d.%d or newer runs these tests" % ((said.strip() or "unknown",) + RUST_MIN))
    for name in ("libpickd.so", "libpickd-body.so"):
        if not os.path.exists(os.path.join(binary, "lib", name)):
            skip("%s is not built in %s" % (name, binary))


def need_crates(folder, env):
    """Exits where what a workspace needs cannot be had: there is no network and no copy of it."""
    fetched = subprocess.run(["cargo", "fetch", "--locked"], cwd=folder, env=env, capture_output=True, text=True,
                             check=False)
    if fetched.returncode != 0:
        skip("cargo fetch --locked: " + fetched.stderr.strip())


def run(arguments, folder, env):
    """Runs a tool, its output to ours; whether it succeeded."""
    print("+ " + " ".join(arguments), flush=True)
    return subprocess.run(arguments, cwd=folder, env=env, check=False).returncode == 0


def has(component, env):
    """Whether cargo has a subcommand; CI must."""
    if subprocess.run(["cargo", component, "--version"], env=env, capture_output=True, check=False).returncode == 0:
        return True
    print("left out: there is no cargo " + component)
    return False


def check_workspace(folder, env):
    """Format, clippy, tests: what is wrong, in words."""
    wrong = []
    for component, arguments in (("fmt", ["fmt", "--all", "--check"]),
                                 ("clippy", ["clippy", "--locked", "--all-targets", "--all-features", "--",
                                             "-D", "warnings"])):
        if has(component, env):
            if not run(["cargo", *arguments], folder, env):
                wrong.append("cargo " + component)
        elif os.environ.get("REQUIRE_RUST"):
            wrong.append("cargo %s is not there" % component)
    if not run(["cargo", "test", "--locked", "--all-targets", "--all-features"], folder, env):
        wrong.append("cargo test")
    return wrong


class Daemon:
    """A real pickd with one endpoint that serves any model, for programs that find it by PICKD_SOCKET."""

    def __init__(self, binary, env):
        self.folder = tempfile.mkdtemp(prefix="pickd-rust")
        self.socket = os.path.join(self.folder, "s")
        config = os.path.join(self.folder, "pickd.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write("listen: {socket: %s}\nstate: {path: %s/state, size_mib: 16}\nscrape: {enabled: false}\n"
                       "log: {level: warn}\nendpoints:\n  - {name: engine-0, address: \"127.0.0.1:9000\"}\n"
                       % (self.socket, self.folder))
        self.process = subprocess.Popen([os.path.join(binary, "bin/pickd"), "--config", config], env=env)

    def __enter__(self):
        while not self.listens():
            if self.process.poll() is not None:
                raise RuntimeError("the daemon ended with %d" % self.process.returncode)
            time.sleep(0.01)
        return self

    def listens(self):
        """Its socket's file is there a moment before."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
            return probe.connect_ex(self.socket) == 0

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def finish(wrong):
    for line in wrong:
        print("failed: " + line)
    return 1 if wrong else 0
