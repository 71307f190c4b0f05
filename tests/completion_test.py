#!/usr/bin/env python3
"""Presses TAB in real shells: the names of endpoints, hostile ones too, come on the line as they are and run nothing.

Called with <source dir> <binary dir>; 77 = skipped. Shells that are not installed are left out, and said.
"""
import json
import os
import pty
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

BINARIES = os.path.abspath(os.path.join(sys.argv[2], "bin")) if len(sys.argv) > 2 else ""
GENEROUS = 60

# What is typed before TAB, and the one name that begins so; each would do harm where a shell expands it.
NAMES = {
    "a": "a-$(touch${IFS}pwned)",
    "b": "b-`touch${IFS}pwned`",
    "c": "c;touch${IFS}pwned;",
    "d": "d|touch${IFS}pwned",
    "e": "e'f\"g&h",
    "10.0.0.1:8": "10.0.0.1:8000",
    "pod-": "pod-6d5f7c9b8d-x7k2p@zone=1",
    "z": "z-*",
}


class Daemon:
    def __init__(self, directory):
        self.socket = os.path.join(directory, "pickd.sock")
        config = os.path.join(directory, "pickd.yaml")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"listen": {"socket": self.socket}, "state": {"path": os.path.join(directory, "state"), "size_mib": 16},
                       "endpoints": [{"name": name, "address": "127.0.0.1:9", "pool": "blue$(touch${IFS}pwned)"}
                                     for name in NAMES.values()], "scrape": {"enabled": False}}, file)
        self.log = open(os.path.join(directory, "log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen([os.path.join(BINARIES, "pickd"), "--config", config], stderr=self.log, stdout=self.log)
        end = time.monotonic() + GENEROUS
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                self.log.seek(0)
                raise RuntimeError("pickd does not answer: " + self.log.read())
            time.sleep(0.02)

    def answers(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
            return probe.connect_ex(self.socket) == 0

    def states(self):
        done = subprocess.run([os.path.join(BINARIES, "pickctl"), "--socket", self.socket, "endpoints", "--json"],
                              stdout=subprocess.PIPE, check=True)
        return {each["name"]: each["state"] for each in json.loads(done.stdout)["endpoints"]}

    def end(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()


class Shell:
    """One that reads from a terminal."""

    def __init__(self, command, directory, environment):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(directory)
            os.execvpe(command[0], command, {"TERM": "xterm", "HOME": directory, "XDG_CONFIG_HOME": directory,
                                             "XDG_DATA_HOME": directory, "LANG": "C.UTF-8",
                                             "PATH": BINARIES + ":" + os.environ["PATH"], **environment})
        self.seen = ""

    def write(self, text):
        os.write(self.terminal, text.encode())

    def wait_for(self, done, what):
        end = time.monotonic() + GENEROUS
        while not done():
            if time.monotonic() > end:
                raise RuntimeError(f"no {what} after: {self.seen!r}")
            if select.select([self.terminal], [], [], 0.02)[0]:
                try:
                    said = os.read(self.terminal, 65536).decode(errors="replace")
                except OSError as error:
                    raise RuntimeError(f"the shell ended; no {what} after: {self.seen!r}") from error
                self.seen += said
                if "\x1b[c" in said or "\x1b[0c" in said:
                    self.write("\x1b[?62;c")  # a terminal says what it is

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <(pickctl completion bash); touch ready\r"),
    "zsh": (["zsh", "-f", "-i"],
            "autoload -U compinit; compinit -D; source <(pickctl completion zsh); touch ready\r"),
    "fish": (["fish", "--private", "-i"], "pickctl completion fish | source; touch ready\r"),
}


class Completion(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="completion-")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.directory, name)

    def shell(self, name, environment):
        if shutil.which(name) is None:
            print(f"{name} is not installed: left out", file=sys.stderr)
            self.skipTest(f"{name} is not installed")
        command, setup = SHELLS[name]
        shell = Shell(command, self.directory, environment)
        self.addCleanup(shell.end)
        shell.write(setup)
        shell.wait_for(lambda: os.path.exists(self.path("ready")), "sign that the completion is read")
        return shell

    def complete_names(self, name):
        daemon = Daemon(self.directory)
        self.addCleanup(daemon.end)
        shell = self.shell(name, {"PICKD_SOCKET": daemon.socket})
        for typed, whole in NAMES.items():
            with self.subTest(shell=name, name=whole):
                shell.write(f"pickctl drain {typed}\t\r")
                shell.wait_for(lambda: daemon.states()[whole] == "draining", f"drained {whole}")
                self.assertFalse(os.path.exists(self.path("pwned")), whole)
        self.assertEqual({"draining"}, set(daemon.states().values()))
        shell.write("pickctl undrain --pool bl\t\r")
        shell.wait_for(lambda: set(daemon.states().values()) == {"ready"}, "undrained pool")
        self.assertFalse(os.path.exists(self.path("pwned")))

    def complete_with_the_socket_on_the_line(self, name):
        daemon = Daemon(self.directory)
        self.addCleanup(daemon.end)
        shell = self.shell(name, {"PICKD_SOCKET": self.path("nobody")})
        for option, name_of in ((f"--socket {daemon.socket}", "10.0.0.1:8000"), (f"--socket={daemon.socket}", "pod-6d5f7c9b8d-x7k2p@zone=1")):
            shell.write(f"pickctl {option} drain {name_of[:3]}\t\r")
            shell.wait_for(lambda of=name_of: daemon.states()[of] == "draining", f"drained {name_of}")

    def complete_commands_values_and_files(self, name):
        with open(self.path("trace;touch pwned"), "w", encoding="utf-8"):
            pass
        shell = self.shell(name, {})
        # What is completed stands as a word of a command that writes its words down.
        program = self.path("bin")
        os.mkdir(program)
        with open(os.path.join(program, "pickctl"), "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\n[ "$1" = endpoints ] || printf "%s\\n" "$*" >>"$TOLD"\n')
        os.chmod(os.path.join(program, "pickctl"), 0o755)
        told = self.path("told")
        assign = "set -x {} {}\r" if name == "fish" else "export {}={}\r"
        shell.write(assign.format("TOLD", told) + assign.format("PATH", f"{program}:/usr/bin:/bin"))
        expected = []
        for typed, words in (("und", "undrain"), ("config d", "config diff"), ("completion z", "completion zsh"),
                             ("top --sort n", "top --sort name"), ("add --role pre", "add --role prefill"),
                             ("drain --tim", "drain --timeout"), ("replay tra", "replay trace;touch pwned")):
            shell.write(f"pickctl {typed}\t\r")
            expected.append(words)

            def is_told():
                if not os.path.exists(told):
                    return False
                with open(told, encoding="utf-8") as file:
                    return len(file.read().splitlines()) >= len(expected)
            shell.wait_for(is_told, f"{words!r} written down")
        with open(told, encoding="utf-8") as file:
            self.assertEqual(expected, [line.rstrip() for line in file])
        self.assertFalse(os.path.exists(self.path("pwned")))


for each in SHELLS:
    for what in ("names", "with_the_socket_on_the_line", "commands_values_and_files"):
        setattr(Completion, f"test_{each}_{what}",
                lambda self, each=each, what=what: getattr(self, "complete_" + what)(each))

if __name__ == "__main__":
    if not all(os.path.exists(os.path.join(BINARIES, name)) for name in ("pickd", "pickctl")):
        print("pickd and pickctl are not built")
        sys.exit(77)
    try:
        os.close(pty.openpty()[0])
    except OSError as error:
        print(f"no terminal is to be had: {error}")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
