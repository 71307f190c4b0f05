#!/usr/bin/env python3
"""The daemon under a memory limit of the kernel: it sizes its state by it and refuses, with words, a state that it would
be killed for.

Usage: memory_limit_test.py SOURCE_DIR BINARY_DIR; 77: no cgroup with a memory limit can be made here
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

MIB = 1 << 20
SECONDS_MAX = 60


def read(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as file:
        return file.read()


def write(text, *parts):
    with open(os.path.join(*parts), "w", encoding="utf-8") as file:
        file.write(text)


class Cgroup:
    """A cgroup of our own with a memory limit, of either version. OSError: there is none to be had."""

    def __init__(self):
        own = dict(line.split(":", 2)[1:] for line in read("/proc/self/cgroup").splitlines())
        legacy = next((path for names, path in own.items() if "memory" in names.split(",")), None)
        self.legacy = legacy is not None
        root = "/sys/fs/cgroup/memory" if self.legacy else "/sys/fs/cgroup"
        if self.legacy:
            above = root + legacy
        else:  # a group that has processes cannot share its memory out, the root can
            above = root
            write("+memory", above, "cgroup.subtree_control")
        self.path = os.path.join(above, f"pickd-test-{os.getpid()}")
        os.mkdir(self.path)
        self.limit(1 << 30)

    def limit(self, size):
        write(str(size), self.path, "memory.limit_in_bytes" if self.legacy else "memory.max")

    def killed(self):
        """How often the kernel killed somebody in here; 0 where it does not say."""
        text = read(self.path, "memory.oom_control" if self.legacy else "memory.events")
        found = re.search(r"^oom_kill (\d+)$", text, re.M)
        return int(found.group(1)) if found else 0

    def start(self, *command, **arguments):
        into = os.path.join(self.path, "cgroup.procs")
        return subprocess.Popen(["sh", "-c", 'echo $$ >"$0" && exec "$@"', into, *command], **arguments)

    def remove(self):
        until = time.monotonic() + SECONDS_MAX
        while True:  # what has just ended counts for a moment
            try:
                return os.rmdir(self.path)
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(.05)


class Daemon:
    """pickd in the cgroup, with its state on a tmpfs, where it counts as the cgroup's memory."""

    def __init__(self, binary, cgroup, directory, settings):
        self.binary, self.path = binary, os.path.join(directory, "pickd.sock")
        config = os.path.join(directory, "pickd.yaml")
        write(f"listen: {{socket: {self.path}}}\nscrape: {{enabled: false}}\n"
              f"state: {{path: {directory}/state{settings}}}\n"
              'endpoints:\n  - {name: a, address: "10.0.0.1:1"}\n  - {name: b, address: "10.0.0.2:1"}\n', config)
        self.said = ""
        self.log = open(os.path.join(directory, "log"), "w+", encoding="utf-8")
        self.process = cgroup.start(os.path.join(binary, "bin/pickd"), "--config", config, stderr=self.log)

    def ready(self):
        """Whether a client can come in; False when the daemon has ended instead."""
        while self.process.poll() is None:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
                try:
                    client.connect(self.path)
                    return True
                except OSError:
                    time.sleep(.02)
        return False

    def stop(self):
        """Its exit code; `said` is what it logged, which is whole only now."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait()
        self.log.seek(0)
        self.said = self.log.read()
        self.log.close()
        return code


def check(binary, cgroup, directory):
    def start(limit_mib, settings=""):
        cgroup.limit(limit_mib * MIB)
        return Daemon(binary, cgroup, directory, settings)

    def forget():
        os.remove(os.path.join(directory, "state"))

    def refused(limit_mib, size_mib, *words):
        daemon = start(limit_mib, f", size_mib: {size_mib}")
        started = daemon.ready()
        code = daemon.stop()
        if started or code != 1 or not all(word in daemon.said for word in words):
            yield f"{limit_mib} MiB, {size_mib} wanted: {'it starts and ' * started}ends with {code}: {daemon.said}"

    daemon = start(128)
    started = daemon.ready()
    status = subprocess.run([os.path.join(binary, "bin/pickctl"), "--socket", daemon.path, "status"],
                            capture_output=True, text=True, check=False)
    code = daemon.stop()
    if not started or code != 0 or status.returncode != 0:
        yield f"128 MiB, no size: it ends with {code}: {daemon.said}{status.stderr}"
    found = re.search(r"in (\d+) MiB of pages", daemon.said)
    if not found or found.group(1) != "16":
        yield f"128 MiB, no size: a state of 16 MiB, an eighth of the limit, was expected: {daemon.said}"
    os.remove(os.path.join(directory, "state"))

    yield from refused(128, 100, "state.size_mib: 100 MiB", "128 MiB", "lower it or raise the limit")
    daemon = start(128, ", size_mib: 60")
    started = daemon.ready()
    code = daemon.stop()
    if not started or code != 0:
        yield f"128 MiB, 60 wanted: it ends with {code}: {daemon.said}"
    # The old state is there until the new one is full, and both do not fit.
    yield from refused(90, 44, "state.size_mib: 44 MiB", "90 MiB", "remove " + directory)
    if cgroup.killed() != 0:
        yield f"the kernel killed {cgroup.killed()} of them"


def main():
    binary = sys.argv[2]
    try:
        cgroup = Cgroup()
    except OSError as error:
        print(f"skipped: no cgroup with a memory limit can be made here: {error}")
        return 77
    directory = tempfile.mkdtemp(prefix="pickd-memory-", dir="/dev/shm")
    try:
        mistakes = list(check(binary, cgroup, directory))
    finally:
        shutil.rmtree(directory)
        cgroup.remove()
    for mistake in mistakes:
        print(mistake)
    print(f"memory limit: {len(mistakes)} mistakes")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
