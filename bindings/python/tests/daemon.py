"""What the tests share: a real daemon in a directory of its own. DAEMON_BIN names where its program is."""
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

ENGINES = 4
HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.environ.get("DAEMON_BIN", os.path.join(HERE, "../../../build/release/bin"))
_LIBC = ctypes.CDLL(None)


def prompt(seed, tokens):
    """A prompt of so many tokens of four bytes, different for each seed."""
    text, at = [], 0
    while sum(map(len, text[-1:])) + 8 * at < 8 * tokens:  # each piece has more than 8 bytes
        text.append(f"{at} of prompt {seed}, ")
        at += 1
    return "".join(text)[:4 * tokens]


class Daemon:
    """A real pickd with engines engine-0 to engine-3 that serve "m" and that nobody scrapes, plus lines of YAML.

    Told endpoints, as YAML, replace these engines. By prefix first: to the cost, a few blocks on an idle engine are
    worth no waiting. No profile: that of the lines.
    """

    def __init__(self, *more, endpoints=None, profile="prefix-load"):
        self.profile = ["--profile", profile] if profile else []
        self.directory = tempfile.mkdtemp(prefix="pickd-py")
        self.socket = os.path.join(self.directory, "s")
        self.config = os.path.join(self.directory, "pickd.yaml")
        self.process = None
        with open(self.config, "w", encoding="utf-8") as out:
            out.write(f"listen: {{socket: {self.socket}}}\nstate: {{path: {self.directory}/state, size_mib: 16}}\n"
                      "scrape: {enabled: false}\nlog: {level: warn}\n" + "".join(line + "\n" for line in more)
                      + "endpoints:\n"
                      + (endpoints or "".join(
                          f'  - {{name: engine-{at}, address: "127.0.0.1:{9000 + at}", models: [m]}}\n'
                          for at in range(ENGINES))))
        self.start()

    def start(self):
        if os.path.exists(self.socket):
            os.remove(self.socket)  # a killed daemon's may take connections for a moment
        # The daemon refuses PICKD_ variables that it does not know.
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PICKD_")}
        self.process = subprocess.Popen(
            [os.path.join(BIN, "pickd"), "--config", self.config, *self.profile], env=environment,
            preexec_fn=lambda: _LIBC.prctl(1, signal.SIGKILL))
        until = time.monotonic() + 20
        while True:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
                try:
                    probe.connect(self.socket)
                    return
                except OSError:
                    if time.monotonic() > until or self.process.poll() is not None:
                        raise
            time.sleep(0.005)

    def stand_still(self):
        """Returns when every thread of the daemon stands still."""
        self.process.send_signal(signal.SIGSTOP)
        tasks = f"/proc/{self.process.pid}/task"
        while True:
            states = set()
            for task in os.listdir(tasks):
                with open(f"{tasks}/{task}/stat", encoding="utf-8", errors="replace") as stat:
                    states.add(stat.read().rpartition(") ")[2][0])
            if states == {"T"}:
                return

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def told(self, *arguments):
        """What pickctl says, as JSON."""
        said = subprocess.run([os.path.join(BIN, "pickctl"), "--socket", self.socket, *arguments, "--json"],
                              capture_output=True, text=True, check=True)
        return json.loads(said.stdout)

    def close(self):
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)
