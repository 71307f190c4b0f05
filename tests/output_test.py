#!/usr/bin/env python3
"""A program whose output could not be written says so and does not exit with 0: scripts save what they print.

Called with <source dir> <binary dir>; 77 = skipped.
"""
import json
import os
import subprocess
import sys
import unittest

BINARIES = os.path.abspath(os.path.join(sys.argv[2], "bin")) if len(sys.argv) > 2 else ""
COMMANDS = [["pickctl", "--help"], ["pickctl", "--version"], ["pickctl", "completion", "bash"], ["pickctl", "drain", "--help"]]


def run(command, **options):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PICKD_")}
    return subprocess.run([*([command[0]] if command[0] == "sh" else [os.path.join(BINARIES, command[0])]), *command[1:]], stderr=subprocess.PIPE, text=True,
                          env=environment, check=False, **options)


class Output(unittest.TestCase):
    def test_what_is_lost_on_a_full_disk_is_said(self):
        for command in COMMANDS:
            with self.subTest(command=command), open("/dev/full", "w", encoding="utf-8") as full:
                self.assertEqual(0, run(command, stdout=subprocess.DEVNULL).returncode)
                done = run(command, stdout=full)
                self.assertEqual(1, done.returncode, done.stderr)
                self.assertIn("standard output could not be written", done.stderr)

    def test_a_closed_standard_output_is_said(self):
        for command in COMMANDS:
            with self.subTest(command=command):
                done = run(["sh", "-c", 'exec "$0" "$@" >&-', os.path.join(BINARIES, command[0]), *command[1:]])
                self.assertEqual(1, done.returncode, done.stderr)
                self.assertIn("standard output could not be written", done.stderr)

    def test_arguments_that_are_bad_stay_bad_arguments(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.assertEqual(2, run(["pickctl", "endpoints", "--interval", "nan", "--watch"], stdout=full).returncode)

    def test_an_unknown_command_is_named_with_the_nearest(self):
        done = run(["pickctl", "--socket", "drain", "statsu"], stdout=subprocess.PIPE)
        self.assertEqual(2, done.returncode)
        self.assertIn('no command "statsu". Did you mean "status"?', done.stderr)
        done = run(["pickctl", "nonsense"], stdout=subprocess.PIPE)
        self.assertEqual(2, done.returncode)
        self.assertNotIn("Did you mean", done.stderr)
        done = run(["pickctl"], stdout=subprocess.PIPE)
        self.assertEqual((2, ""), (done.returncode, done.stdout))
        self.assertIn("doctor", done.stderr)

    def test_a_failure_is_an_object_with_json(self):
        done = run(["pickctl", "--json", "--socket", "/nonexistent", "status"], stdout=subprocess.PIPE)
        self.assertEqual(1, done.returncode)
        self.assertIn("/nonexistent", json.loads(done.stdout)["error"])
        self.assertIn("/nonexistent", done.stderr)


if __name__ == "__main__":
    if not os.path.exists("/dev/full"):
        print("there is no /dev/full")
        sys.exit(77)
    if not os.path.exists(os.path.join(BINARIES, "pickctl")):
        print("pickctl is not built")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
