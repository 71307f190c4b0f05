#!/usr/bin/env python3
"""Runs docs/getting-started.md: its shell commands in their order, with the programs of this build, in an empty
directory; the second pick must find the blocks of the first.

Usage: getting_started_test.py SOURCE_DIR BINARY_DIR
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

PORTS = ("18001", "18002")  # of the document; others are taken here, for tests that run beside this one
SECONDS_MAX = 120


def free_ports(count):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [str(one.getsockname()[1]) for one in held]
    for one in held:
        one.close()
    return ports


def main():
    source, binary = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    if shutil.which("cc") is None:
        print("no C compiler named cc")
        return 77
    with open(os.path.join(source, "docs/getting-started.md"), encoding="utf-8") as file:
        document = file.read()
    commands = "\n".join(re.findall(r"```sh\n(.*?)```", document, re.DOTALL))
    for written, port in zip(PORTS, free_ports(len(PORTS))):
        if written not in commands:
            print("docs/getting-started.md does not name port " + written)
            return 1
        commands = commands.replace(written, port)

    with tempfile.TemporaryDirectory() as directory:
        shutil.copy(os.path.join(source, "examples/pick.c"), directory)
        library = os.path.join(binary, "lib")
        environment = dict(os.environ, PATH=os.path.join(binary, "bin") + ":" + os.environ["PATH"],
                           CPATH=os.path.join(source, "include"), LIBRARY_PATH=library,
                           LD_LIBRARY_PATH=library, LC_ALL="C.UTF-8")
        for name in [name for name in environment if name.startswith("PICKD_")]:
            del environment[name]
        # A session of its own, so that what it starts in the background can be ended with it.
        shell = subprocess.Popen(["bash", "-euo", "pipefail", "-c", commands], cwd=directory, env=environment,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        try:
            output = read_to_end_of(shell)
        finally:
            os.killpg(shell.pid, signal.SIGKILL)
            shell.stdout.close()
        print(output)
        if shell.returncode != 0:
            with open(os.path.join(directory, "pickd.log"), encoding="utf-8") as log:
                print(log.read())
            print("a command failed: exit code", shell.returncode)
            return 1
    picks = re.findall(r"(\S+) \(\w+\), (\d+) of (\d+) tokens cached", output)
    if len(picks) != 2 or picks[0][0] != picks[1][0] or picks[0][1] != "0" or int(picks[1][1]) < 2000:
        print("the second pick did not find the blocks of the first:", picks)
        return 1
    return 0


def read_to_end_of(shell):
    """Its output, without waiting for the engines that hold the pipe."""
    try:
        shell.wait(SECONDS_MAX)
    except subprocess.TimeoutExpired:
        print("the commands did not end")
        shell.kill()
        shell.wait()
    os.set_blocking(shell.stdout.fileno(), False)
    return shell.stdout.read() or ""


if __name__ == "__main__":
    sys.exit(main())
