"""What c_proxy_test.py has around the proxy: its build, engines, a daemon. Both folders are the test's arguments."""
import http.client
import http.server
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

SOURCE, BINARY = (os.path.abspath(path) for path in sys.argv[1:3]) if len(sys.argv) > 2 else ("", "")
WORK = os.path.join(BINARY, "c_proxy")
PROGRAM = os.path.join(WORK, "c-proxy-tested")


def missing():
    for name in ("bin/pickd", "bin/enginesim", "bin/pickctl", "lib/libpickd.so", "lib/libpickd-body.so"):
        if not os.path.exists(os.path.join(BINARY, name)):
            return name + " is not built"
    for tool in ("make", "cc", "pkg-config"):
        if shutil.which(tool) is None:
            return f"there is no {tool}"
    found = subprocess.run(["pkg-config", "libevent", "libcurl"], check=False)
    return "libevent-dev or libcurl4-openssl-dev is not installed" if found.returncode != 0 else None


def build(flags):
    """A copy of the sources is built; PROGRAM is there then."""
    folder = os.path.join(WORK, "gateways/c-proxy")
    shutil.rmtree(WORK, ignore_errors=True)
    shutil.copytree(os.path.join(SOURCE, "gateways/c-proxy"), folder, ignore=shutil.ignore_patterns("c-proxy"))
    os.makedirs(os.path.join(WORK, "build"))
    os.symlink(BINARY, os.path.join(WORK, "build/release"))
    for compiled in (["make", "-s", "-C", folder, "CFLAGS=" + flags], ["mv", os.path.join(folder, "c-proxy"), PROGRAM]):
        done = subprocess.run(compiled, env={**os.environ, "PKG_CONFIG_PATH": os.path.join(BINARY, "pkgconfig")},
                              capture_output=True, text=True, check=False)
        if done.returncode != 0 or done.stderr:
            raise RuntimeError(f"{' '.join(compiled)}: {done.stdout}{done.stderr}")


class Listening:
    """A program that says "listening on PORT"."""

    def __init__(self, *command):
        # Freed memory is given back: a test looks at how much there is.
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=1"})
        line = self.process.stdout.readline()
        self.port = int(re.fullmatch(r"listening on (\d+)\n", line).group(1))

    def kill(self):
        self.end(signal.SIGKILL)

    def end(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.stdout.close()
        return self.process.wait(timeout=120)

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        if isinstance(body, dict):
            body = json.dumps(body)
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer, text

    def metric(self, name):
        return sum(float(line.rsplit(" ", 1)[1]) for line in self.ask("GET", "/metrics")[1].decode().splitlines()
                   if line.startswith(name))


def eventually(condition):
    """Waits for what must become true; the test's own time-out ends a vain wait."""
    while not condition():
        time.sleep(0.01)


class Recorder:
    """An engine that keeps the headers of each request, and answers with headers of its own."""

    def __init__(self, *headers):
        recorder = self
        self.asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # pylint: disable=invalid-name
                recorder.asked.append({name.lower(): value for name, value in self.headers.items()})
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(200)
                for name, value in (("content-type", "application/json"), ("content-length", "2"), *headers):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def kill(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Fleet:
    """A daemon, engines and the proxy. A recorder takes the place of all engines; `roles` are endpoints that others
    have beside them, and who has a `profile` of None gives one in the settings."""

    def __init__(self, engines=2, engine_options=("--time-factor", "20"), settings="", proxy_options=(), models="[demo]",
                 recorder=None, roles="", profile="prefix-load"):
        self.directory = tempfile.mkdtemp(prefix="c-proxy")
        self.engines, self.daemon, self.proxy = [recorder] if recorder else [], None, None
        self.roles, self.profile = roles, ["--profile", profile] if profile else []
        try:
            self.start(engines, engine_options, settings, proxy_options, models)
        except BaseException:
            self.stop()
            raise

    def start(self, engines, engine_options, settings, proxy_options, models):
        self.socket = os.path.join(self.directory, "s")
        self.engines = self.engines or [
            Listening(os.path.join(BINARY, "bin/enginesim"), "--port", "0", *engine_options) for _ in range(engines)]
        with open(os.path.join(self.directory, "pickd.yaml"), "w", encoding="utf-8") as out:
            out.write(f"listen: {{socket: {self.socket}}}\nstate: {{path: {self.directory}/state, size_mib: 16}}\n"
                      f"scrape: {{enabled: false}}\nlog: {{level: warn}}\n{settings}\nendpoints:\n"
                      + "".join(f'  - {{name: e{at}, address: "127.0.0.1:{engine.port}", models: {models}}}\n'
                                for at, engine in enumerate(self.engines)) + self.roles)
        self.start_daemon()
        self.proxy = Listening(PROGRAM, "--listen", "127.0.0.1:0", "--socket", self.socket, "--pick-timeout-ms", "5000",
                               *proxy_options)

    def start_daemon(self):
        if os.path.exists(self.socket):
            os.remove(self.socket)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PICKD_")}
        self.daemon = subprocess.Popen([os.path.join(BINARY, "bin/pickd"), "--config",
                                        os.path.join(self.directory, "pickd.yaml"), *self.profile],
                                       env=environment)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        ended = self.stop()
        if kind is None and ended != 0:
            raise AssertionError(f"the proxy gave {ended}")

    def stop(self):
        """Ends all; what the proxy gave."""
        ended = self.proxy.end() if self.proxy is not None else 0
        for engine in self.engines:
            engine.kill()
        if self.daemon is not None:
            self.daemon.kill()
            self.daemon.wait()
        shutil.rmtree(self.directory, ignore_errors=True)
        return ended

    def told(self, what):
        said = subprocess.run([os.path.join(BINARY, "bin/pickctl"), "--socket", self.socket, what, "--json"],
                              capture_output=True, text=True, check=True)
        return json.loads(said.stdout)

    def counter(self, name):
        return self.told("status")["counters"][f"pickd_{name}_total"]

    def resident_bytes(self):
        """Memory of the proxy."""
        with open(f"/proc/{self.proxy.process.pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def settled(self):
        """Waits until nothing is reserved."""
        eventually(lambda: self.told("status")["reservations"] == 0)

    def complete(self, prompt="Hello", **members):
        body = {"model": "demo", "prompt": prompt, "max_tokens": 4, "ignore_eos": True, **members}
        answer, text = self.proxy.ask("POST", "/v1/completions", body, {"content-type": "application/json"})
        return answer.status, json.loads(text) if text else None

    def stream(self, prompt="Hello", tokens=8, connection=None):
        """Begins a streamed answer; its head has come when this returns."""
        connection = connection or http.client.HTTPConnection("127.0.0.1", self.proxy.port, timeout=120)
        connection.request("POST", "/v1/completions", json.dumps(
            {"model": "demo", "prompt": prompt, "max_tokens": tokens, "ignore_eos": True, "stream": True,
             "stream_options": {"include_usage": True}}))
        return connection, connection.getresponse()


def raw_request(fleet, tokens, prompt="Hello", stream=True):
    """A connection on which a request was sent."""
    body = json.dumps({"model": "demo", "prompt": prompt, "max_tokens": tokens, "ignore_eos": True,
                       "stream": stream}).encode()
    caller = socket.create_connection(("127.0.0.1", fleet.proxy.port), timeout=120)
    caller.sendall(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
    return caller


def events(text):
    return [line[6:] for line in text.decode().split("\n") if line.startswith("data: ")]
