"""`pickd-demo --page` for tests: real engines, a real daemon, load, and the address of its admin listener."""
import os
import re
import signal
import subprocess
import urllib.request


class Demo:
    def __init__(self, binaries, *arguments):
        self.process = subprocess.Popen([os.path.join(binaries, "bin/pickd-demo"), "--page", *arguments],
                                        stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        found = re.search(r"(http://\S+)/", line)
        if not found:
            self.process.kill()
            raise SystemExit(f"pickd-demo --page does not say where its page is: {line!r}")
        self.url = found.group(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Ctrl-C; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.stdout.close()
        return self.process.wait()

    def get(self, path, accept="*/*"):
        request = urllib.request.Request(self.url + path, headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read().decode()
