#!/usr/bin/env python3
"""Clients of all languages run one script of picks and reports at the same time against one daemon: equal answers for
equal input, and at the end the daemon has counted exactly what they did.

Usage: interop_test.py SOURCE_DIR BINARY_DIR
What each language needs is said in CLIENTS. One that is absent is left out and said; with REQUIRE_<LANGUAGE> in the
environment (the build server) that is a failure. Exit 77: skipped, because fewer than two are left.
"""
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import go_tools
import python_tools
import rust_tools

REPETITIONS = int(os.environ.get("INTEROP_REPETITIONS", "40"))
ENGINES = 4
PROFILE = """scheduling:
  plugins: [{type: prefix-cache-scorer}, {type: session-affinity-scorer},
            {type: header-label-affinity-scorer, parameters: {headerName: x-zone, labelKey: zone}}]
  schedulingProfiles:
    - name: default
      plugins: [{pluginRef: prefix-cache-scorer, weight: 1}, {pluginRef: session-affinity-scorer, weight: 10},
                {pluginRef: header-label-affinity-scorer, weight: 100}]
"""


class Absent(Exception):
    """Why a language cannot take part."""


# ---- The clients: each makes a program that is called with SOCKET SCRIPT REPETITIONS ----------------------------------


def c_client(mode):
    def make(_source, binary, _directory):
        program = os.path.join(binary, "bin/interop_client")
        if not os.path.exists(program):
            raise Absent("bin/interop_client is not built")
        return [program], [mode], None
    return make


def go_client(mode):
    def make(source, binary, directory):
        said = calls_skip(lambda: go_tools.need_go(binary), go_tools)
        if said:
            raise Absent(said)
        program, folder = os.path.join(directory, "interop-go"), os.path.join(source, "bindings/go")
        if not os.path.exists(program):
            subprocess.run(["go", "build", "-o", program, "./internal/interop"], cwd=folder, check=True,
                           env=go_tools.environment(binary))
        return [program], [mode], None
    return make


def python_client(mode):
    def make(source, binary, _directory):
        into, found = os.path.join(binary, "python/interop"), []
        said = calls_skip(lambda: found.append(python_tools.interpreter(source)), python_tools)
        if said:
            raise Absent(said)
        installed = os.path.join(into, "installed")
        if mode == "blocking" or not os.path.exists(installed):
            installed = python_tools.build(found[0], source, binary, into)
        return ([found[0], os.path.join(source, "tests/interop/client.py")], [mode],
                {**os.environ, "PYTHONPATH": installed, "PYTHONDONTWRITEBYTECODE": "1"})
    return make


def rust_client(mode):
    def make(source, binary, _directory):
        env, folder = rust_tools.environment(binary), os.path.join(source, "bindings/rust")
        said = calls_skip(lambda: (rust_tools.need_rust(binary), rust_tools.need_crates(folder, env)), rust_tools)
        if said:
            raise Absent(said)
        subprocess.run(["cargo", "build", "--locked", "--quiet", "--example", "interop"], cwd=folder, env=env, check=True)
        return [os.path.join(env["CARGO_TARGET_DIR"], "debug/examples/interop")], [mode], env
    return make


CLIENTS = (
    ("C", c_client("blocking")), ("C", c_client("queue")),
    ("Go", go_client("cgo")), ("Go", go_client("pure")),
    ("Python", python_client("blocking")), ("Python", python_client("asyncio")),
    ("Rust", rust_client("blocking")), ("Rust", rust_client("tokio")),
)


def calls_skip(call, tools):
    """Why a helper of another test would skip, if it would: it says so and ends the process, which is not wanted here."""
    kept, said = tools.skip, []

    def skip(why):
        said.append(why)
        raise Absent(why)
    tools.skip = skip
    try:
        call()
    except Absent:
        pass
    finally:
        tools.skip = kept
    return said[0] if said else None


# ---- The script -------------------------------------------------------------------------------------------------------


def read_script(path):
    """For each step: what its line must begin with, and the words that must be in it."""
    steps = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                asked, _, expected = line.partition("->")
                words = asked.split()
                steps.append((" ".join(words[:2] if words[0] == "pick" else words[:3]), words, expected.split()))
    return steps


def expected_counts(steps):
    """What one run of the script adds to the daemon's counters."""
    counts = dict.fromkeys(("picks", "picks_refused", "picks_unknown_model", "picks_no_endpoint", "picks_cut", "reports",
                            "reports_unknown", "requests_done", "requests_failed", "requests_fallback",
                            "output_tokens", "reported_prompt_tokens", "reported_cached_tokens"), 0)
    names = {"output": "output_tokens", "prompt": "reported_prompt_tokens", "cached": "reported_cached_tokens"}
    for _, words, expected in steps:
        status = int(dict(word.split("=") for word in expected)["status"])
        if words[0] == "pick":
            refused = {-2: "picks_unknown_model", -113: "picks_no_endpoint"}.get(status)
            counts["picks"] += status == 0
            counts["picks_cut"] += "cut=1" in expected
            if refused:  # the others are refused by the library
                counts[refused] += 1
                counts["picks_refused"] += 1
        elif status == 0:
            counts["reports"] += 1
            if "requests_" + words[2] in counts:
                counts["requests_" + words[2]] += 1
            for word in words[3:] if words[2] == "done" else ():
                key, _, value = word.partition("=")
                if key in names:
                    counts[names[key]] += int(value)
        else:
            counts["reports_unknown"] += 1
    return counts


def check_lines(who, lines, steps, first):
    """Every repetition is what the script says and what the first client's first one was."""
    if len(lines) % len(steps) != 0:
        raise RuntimeError(f"{who} printed {len(lines)} lines for {len(steps)} steps")
    for at, line in enumerate(lines):
        begin, words, expected = steps[at % len(steps)]
        if not line.startswith(begin + " ") or not set(expected) <= set(line.split()):
            raise RuntimeError(f"{who}: {' '.join(words)}\n  gave     {line}\n  expected {' '.join(expected)}")
        if line != first[at % len(steps)]:
            raise RuntimeError(f"{who} got another answer than the first client:\n  {line}\n  {first[at % len(steps)]}")


# ---- The daemon -------------------------------------------------------------------------------------------------------


class Daemon:
    def __init__(self, binary, directory):
        self.binary, self.socket = binary, os.path.join(directory, "socket")
        config = os.path.join(directory, "pickd.yaml")
        with open(config, "w", encoding="utf-8") as out:
            out.write(f"listen: {{socket: {self.socket}}}\nstate: {{path: {directory}/state, size_mib: 64}}\n"
                      "scrape: {enabled: false}\nlog: {level: warn}\n" + PROFILE + "endpoints:\n"
                      + "".join(f'  - {{name: engine-{at}, address: "127.0.0.1:{9000 + at}", models: [m], '
                                f"labels: {{zone: z{at}}}}}\n" for at in range(ENGINES))
                      + '  - {name: fragile, address: "127.0.0.1:9100", models: [fragile]}\n')
        self.process = subprocess.Popen([os.path.join(binary, "bin/pickd"), "--config", config])
        until = time.monotonic() + 60
        while not self.listens() and self.process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)

    def listens(self):
        """Its socket's file is there a moment before."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
            return probe.connect_ex(self.socket) == 0

    def told(self, what):
        said = subprocess.run([os.path.join(self.binary, "bin/pickctl"), "--socket", self.socket, what, "--json"],
                              capture_output=True, text=True, check=True)
        return json.loads(said.stdout)

    def counters(self):
        return {re.sub(r"^pickd_(.*)_total$", r"\1", name): value
                for name, value in self.told("status")["counters"].items()}

    def stop(self):
        self.process.terminate()
        self.process.wait()


def run_together(commands, socket, script, repetitions):
    """Starts all, lets them begin together, and returns the lines of each."""
    running = []
    for command, mode, environment in commands:
        process = subprocess.Popen([*command, socket, script, str(repetitions), *mode], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True, env=environment)
        running.append(process)
    try:
        for process, (command, _, _) in zip(running, commands):
            if process.stdout.readline() != "ready\n":
                raise RuntimeError(f"{command} did not begin: it gave {process.wait()}")
        for process in running:
            process.stdin.write("go\n")
            process.stdin.flush()
        # By a thread each: what one prints must not wait for another.
        with ThreadPoolExecutor(len(running)) as readers:
            outputs = list(readers.map(lambda process: process.communicate()[0], running))
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
    for process, (command, mode, _) in zip(running, commands):
        if process.returncode != 0:
            raise RuntimeError(f"{command} {mode} gave {process.returncode}")
    return [output.splitlines() for output in outputs]


def check_accounts(daemon, before, steps, runs):
    after = daemon.counters()
    for name, once in expected_counts(steps).items():
        added = after[name] - before[name]
        if added != once * runs:
            raise RuntimeError(f"{name}: {added} counted, {runs} runs of {once} are {once * runs}")
    for name in ("picks_limited", "picks_cancelled", "reservations_expired", "reservations_released_dead",
                 "submissions_malformed", "channels_broken", "completions_dropped", "clients_died"):
        if after[name] != 0:
            raise RuntimeError(f"{name} is {after[name]}")
    held = daemon.told("status")["reservations"]
    inflight = {endpoint["name"]: (endpoint["inflight_requests"], endpoint["inflight_tokens"])
                for endpoint in daemon.told("endpoints")["endpoints"]}
    if held != 0 or any(both != (0, 0) for both in inflight.values()):
        raise RuntimeError(f"{held} reservations are held at the end; in flight: {inflight}")


def clients(source, binary, directory):
    """The commands that can take part, by name, and whether a language that must is absent."""
    commands, missing, said = [], False, set()
    for language, make in CLIENTS:
        try:
            command = make(source, binary, directory)
            commands.append((f"{language} {command[1][0]}", command))
        except Absent as absent:
            required = f"REQUIRE_{language.upper()}" in os.environ
            missing = missing or required
            if language not in said:
                print(f"{language} is left out: {absent}" + ("; it is required here" if required else ""))
            said.add(language)
    return commands, missing


def main():
    source, binary = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    for name in ("bin/pickd", "bin/pickctl", "bin/interop_client"):
        if not os.path.exists(os.path.join(binary, name)):
            print(f"skipped: {name} is not built")
            return 77
    with tempfile.TemporaryDirectory() as directory:
        commands, missing = clients(source, binary, directory)
        if missing:
            return 1
        if len({name.split()[0] for name, _ in commands}) < 2:
            print("skipped: C alone proves nothing")
            return 77
        seed, script = (os.path.join(source, "tests/interop", name) for name in ("seed.txt", "scenario.txt"))
        seed_steps, steps = read_script(seed), read_script(script)
        daemon = Daemon(binary, directory)
        try:
            lines = run_together([commands[0][1]], daemon.socket, seed, 1)[0]
            check_lines("the seed", lines, seed_steps, lines)
            before = daemon.counters()
            outputs = run_together([command for _, command in commands], daemon.socket, script, REPETITIONS)
            for (who, _), lines in zip(commands, outputs):
                check_lines(who, lines, steps, outputs[0])
                if len(lines) != REPETITIONS * len(steps):
                    raise RuntimeError(f"{who} ran {len(lines) // len(steps)} times of {REPETITIONS}")
            check_accounts(daemon, before, steps, REPETITIONS * len(commands))
        finally:
            daemon.stop()
    print(f"{', '.join(name for name, _ in commands)}: {REPETITIONS} runs each of {len(steps)} steps at once, equal "
          "answers, and every pick, report and token accounted for")
    return 0


if __name__ == "__main__":
    sys.exit(main())
