"""The programs in examples/ run, and README.md shows them as they are."""
import os
import re
import subprocess
import sys
import unittest

from daemon import HERE, Daemon, prompt
from test_body import STREAM, TURN, chat

FOLDER = os.path.join(HERE, "..")


def read(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return file.read()


class ExamplesTest(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon()
        self.addCleanup(self.daemon.close)

    def run_example(self, name, *arguments, data=b""):
        return subprocess.run([sys.executable, os.path.join(FOLDER, "examples", name), *arguments], input=data,
                              capture_output=True, check=False, env={**os.environ, "PICKD_SOCKET": self.daemon.socket})

    def test_pick_picks(self):
        done = self.run_example("pick.py", "m", prompt(1, 64))
        self.assertRegex(done.stdout.decode(), r"^127\.0\.0\.1:900\d \(tie\), 0 of 64 tokens cached$", done.stderr)
        done = self.run_example("pick.py", "nobody's", "Hello")
        self.assertEqual(1, done.returncode)
        self.assertIn(b"HTTP status 404", done.stderr)

    def test_router_routes(self):
        answer = os.path.join(self.daemon.directory, "answer")
        with open(answer, "w", encoding="utf-8", newline="") as out:
            out.write(STREAM)
        for cached in (0, 768):
            done = self.run_example("router.py", "/v1/chat/completions", answer, data=chat(TURN, stream=True))
            found = re.match(r"CHAT to 127\.0\.0\.1:900\d, (\d+) of \d+ tokens cached; DONE with 5 tokens", done.stdout.decode())
            self.assertIsNotNone(found, done)
            self.assertGreaterEqual(int(found.group(1)), cached)
        self.assertEqual(2, self.daemon.told("status")["counters"]["pickd_requests_done_total"])


class ReadmeTest(unittest.TestCase):
    def test_the_programs_in_the_readme_are_the_examples(self):
        self.assertEqual([read("examples/pick.py"), read("examples/router.py")],
                         re.findall(r"```python\n(.*?)```", read("README.md"), re.DOTALL))


if __name__ == "__main__":
    unittest.main()
