#!/usr/bin/env python3
"""Runs a short demo: its numbers, and that it leaves no process and no file behind however it ends.

Called with <source dir> <binary dir>; 77 = skipped.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAMS = os.path.join(sys.argv[2], "bin") if len(sys.argv) > 2 else ""
NAMES = ["pickd", "enginesim", "pickd-demo-load", "pickd-demo"]

# Every run gets a TMPDIR of its own: that names its files, and its processes too, which inherit it.


def processes(directory):
    """The programs that run with this TMPDIR: {pid: name}."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as environment:
                if f"TMPDIR={directory}\0".encode() in environment.read():
                    found[int(pid)] = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
        except OSError:
            pass  # it ended meanwhile, or is a zombie
    return found


class Demo(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="demo-test-")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def start(self, *options):
        environment = dict(os.environ, TMPDIR=self.directory, PICKD_SOCKET="/nonexistent/socket")
        return subprocess.Popen([os.path.join(PROGRAMS, "pickd-demo"), *options], env=environment,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait_for_load(self, demo):
        """Waits until the load driver plays; the time-out of tests ends a vain wait."""
        while demo.poll() is None:
            found = processes(self.directory)
            if "pickd-demo-load" in found.values():
                return found
            time.sleep(0.01)
        self.fail("the demo ended early: " + demo.communicate()[1])

    def assert_nothing_left(self):
        self.assertEqual(processes(self.directory), {})
        self.assertEqual(os.listdir(self.directory), [])

    def test_shows_pickd_above_round_robin(self):
        with tempfile.NamedTemporaryFile("r", suffix=".json") as numbers:
            demo = self.start("--seconds", "5", "--scale", "2", "--json", numbers.name)
            out, errors = demo.communicate()
            self.assertEqual(demo.returncode, 0, errors)
            result = json.load(numbers)
        common = {"hit_rate", "ttft_mean_ms", "ttft_p50_ms", "ttft_p99_ms", "itl_p99_ms",
                  "busiest_share"}
        of_pickd = {"pick_p50_us", "pick_p99_us", "picks_per_s", "state_bytes"}
        self.assertLessEqual(common, set(result["round_robin"]))
        self.assertLessEqual(common | of_pickd, set(result["pickd"]))
        for values in result.values():
            self.assertTrue(0 <= values["hit_rate"] < 1)
            self.assertTrue(1 / 8 <= values["busiest_share"] <= 1)
            self.assertTrue(0 < values["ttft_p50_ms"] <= values["ttft_p99_ms"])
            self.assertEqual(values["failed"], 0)
        for key in of_pickd:
            self.assertGreater(result["pickd"][key], 0, key)
        self.assertGreater(result["pickd"]["hit_rate"], result["round_robin"]["hit_rate"])
        for word in ["round-robin", "pickd", "token hit rate", "TTFT mean", "pick latency p99"]:
            self.assertIn(word, out)
        self.assert_nothing_left()

    def test_loses_no_request_when_engines_fail(self):
        with tempfile.NamedTemporaryFile("r", suffix=".log") as log:
            demo = self.start("--failures", "--seconds", "14", "--scale", "2", "--log", log.name)
            out, errors = demo.communicate()
            lines = [line.split() for line in log]
        self.assertEqual(demo.returncode, 0, out + errors)
        self.assertIn("GOOD", out)
        for what in ("killed", "restarted", "hung", "joined"):
            self.assertRegex(out, rf"engine-\d +{what} ")
        requests = {line[2] for line in lines if line[0] == "send"}
        self.assertEqual(requests, {line[2] for line in lines if line[0] == "done"})
        self.assertGreater(len(requests), 20)
        # The killed one does not come back: nothing goes there after its first failure.
        of_killed = [line for line in lines if line[3:4] == ["engine-0"]]
        failed = [int(line[1]) for line in of_killed if line[0] == "fail"]
        sent = [int(line[1]) for line in of_killed if line[0] == "send"]
        self.assertTrue(sent)
        if failed:  # else it was idle, and a scrape failed first
            self.assertLess(max(sent), min(failed))
        self.assert_nothing_left()

    def test_leaves_nothing_behind_when_interrupted(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            demo = self.start("--seconds", "100")
            found = self.wait_for_load(demo)
            self.assertEqual(sorted(found.values()), sorted(NAMES + ["enginesim"] * 7))
            demo.send_signal(number)
            demo.communicate()
            self.assertEqual(demo.returncode, 130)
            self.assert_nothing_left()

    def test_ends_with_words_when_one_of_its_programs_dies(self):
        for name in ("enginesim", "pickd", "pickd-demo-load"):
            demo = self.start("--seconds", "100")
            found = self.wait_for_load(demo)
            os.kill(next(pid for pid, other in found.items() if other == name), signal.SIGKILL)
            errors = demo.communicate()[1]
            self.assertEqual(demo.returncode, 1)
            word = "engine-" if name == "enginesim" else name
            self.assertRegex(errors, word + r"\S* killed by signal 9")
            self.assert_nothing_left()

    def test_its_programs_die_with_it(self):
        demo = self.start("--seconds", "100")
        self.wait_for_load(demo)
        demo.kill()
        demo.communicate()
        while processes(self.directory):
            time.sleep(0.01)

    def test_an_interrupted_demo_leaves_no_numbers_of_an_earlier_one(self):
        with tempfile.NamedTemporaryFile("r+", suffix=".json") as numbers:
            numbers.write("old numbers")
            numbers.flush()
            demo = self.start("--seconds", "100", "--json", numbers.name)
            self.wait_for_load(demo)
            demo.send_signal(signal.SIGINT)
            demo.communicate()
            self.assertEqual(os.path.getsize(numbers.name), 0)

    def test_says_which_option_is_wrong(self):
        demo = self.start("--seconds", "never")
        self.assertIn("--seconds", "".join(demo.communicate()))
        self.assertNotEqual(demo.returncode, 0)
        self.assert_nothing_left()


class LoadDriver(unittest.TestCase):
    def test_uses_the_next_endpoint_when_a_connection_fails(self):
        with tempfile.TemporaryDirectory() as directory:
            run = lambda *arguments, **more: subprocess.Popen(arguments, text=True, **more)
            engine = run(os.path.join(PROGRAMS, "enginesim"), "--port", "0", stdout=subprocess.PIPE)
            self.addCleanup(engine.wait)
            self.addCleanup(engine.kill)
            port = re.search(r"\d+", engine.stdout.readline()).group()
            engine.stdout.close()
            with open(f"{directory}/pickd.yaml", "w") as config:
                config.write(f"listen: {{socket: {directory}/socket}}\n"
                             f"state: {{path: {directory}/state, size_mib: 16}}\n"
                             "scrape: {enabled: false}\n"  # so that the dead one is picked
                             "endpoints:\n"
                             "  - {name: dead, address: '127.0.0.1:1'}\n"
                             f"  - {{name: alive, address: '127.0.0.1:{port}'}}\n")
            with open(f"{directory}/workload", "w") as workload:
                workload.write("system You are a test.\n")
                for i in range(10):
                    workload.write(f"conversation {i * 10} 0\nturn 0 2 Hello, I am number {i}.\n")
            pickd = run(os.path.join(PROGRAMS, "pickd"), "--config", f"{directory}/pickd.yaml",
                        "--profile", "round-robin", stderr=subprocess.PIPE)
            self.addCleanup(pickd.stderr.close)
            self.addCleanup(pickd.wait)
            self.addCleanup(pickd.kill)
            while "ready on" not in pickd.stderr.readline():
                self.assertIsNone(pickd.poll())
            load = subprocess.run([os.path.join(PROGRAMS, "pickd-demo-load"), "--socket",
                                   f"{directory}/socket", "--workload", f"{directory}/workload"],
                                  capture_output=True, text=True)
            self.assertEqual(load.returncode, 0, load.stderr)
            turns = [line.split() for line in load.stdout.splitlines()]
            self.assertEqual(len(turns), 10)
            self.assertEqual({(turn[1], turn[2]) for turn in turns}, {("alive", "ok")})
            moved = sum(int(turn[8]) for turn in turns)
            self.assertTrue(1 <= moved <= 9, moved)


if __name__ == "__main__":
    if not all(os.path.exists(os.path.join(PROGRAMS, name)) for name in NAMES):
        print("skipped: not all of", NAMES, "are in", PROGRAMS)
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
