#!/usr/bin/env python3
"""examples/body.c with a real daemon: the second turn of a conversation goes where the first went, with its tokens
cached, whatever API it comes by; a body that cannot be read is picked by load; usage of a stream is reported.

Usage: body_example_test.py SOURCE_DIR BINARY_DIR
Exit 77: skipped, because the daemon or the example was not built.
"""
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

POLICY = "Returns within 30 days; frames carry a five-year warranty; batteries two years. " * 40
ANSWER = "Within 30 days, if the frame has no scratch and the battery was never opened. " * 30
STREAM = "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in (
    {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
    {"choices": [{"index": 0, "delta": {"content": ANSWER}, "finish_reason": "stop"}]},
    {"choices": [], "usage": {"prompt_tokens": 812, "completion_tokens": 5,
                              "prompt_tokens_details": {"cached_tokens": 64}}})) + "data: [DONE]\r\n\r\n"


class Daemon:
    def __init__(self, binary, directory):
        self.socket = os.path.join(directory, "socket")
        config = os.path.join(directory, "pickd.yaml")
        with open(config, "w", encoding="utf-8") as out:
            out.write(f"listen: {{socket: {self.socket}}}\nstate: {{path: {directory}/state, size_mib: 16}}\n"
                      "log: {level: warn}\nscrape: {enabled: false}\nendpoints:\n"
                      + "".join(f'  - {{name: e{at}, address: "127.0.0.1:{1 + at}", models: [m]}}\n' for at in range(8)))
        self.process = subprocess.Popen([os.path.join(binary, "bin/pickd"), "--config", config, "--profile", "prefix-load"])
        until = time.monotonic() + 60
        while not self.answers() and self.process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)

    def answers(self):
        """Whether it listens: the socket's file is there a moment before."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
            return probe.connect_ex(self.socket) == 0

    def stop(self):
        self.process.terminate()
        self.process.wait()


def run(binary, daemon, path, body, *answer):
    done = subprocess.run([os.path.join(binary, "bin/example_body"), path, *answer], input=body, capture_output=True,
                          text=True, check=False, env={**os.environ, "PICKD_SOCKET": daemon.socket})
    picked = re.search(r"^(\S+), (\d+) tokens cached$", done.stdout, re.M)
    if done.returncode != 0 or not picked:
        raise RuntimeError(f"{path} gave {done.returncode}: {done.stdout!r} {done.stderr!r}")
    return picked.group(1), int(picked.group(2)), done.stdout + done.stderr


def check(binary, daemon, directory):
    turn = [{"role": "system", "content": POLICY}, {"role": "user", "content": "Returns?"}]
    later = [*turn, {"role": "assistant", "content": ANSWER}, {"role": "user", "content": "And frames?"}]
    answer = os.path.join(directory, "answer")
    with open(answer, "w", encoding="utf-8", newline="") as out:
        out.write(STREAM)

    first, cached, told = run(binary, daemon, "/v1/chat/completions", json.dumps({"model": "m", "messages": turn}), answer)
    assert cached == 0 and "prompt 812, cached 64, output 5 tokens" in told, told
    again, cached, _ = run(binary, daemon, "/v1/chat/completions?x=1",
                           json.dumps({"temperature": 1, "messages": later, "model": "m"}))
    both = (len(POLICY) + len(ANSWER)) // 256 * 64
    assert again == first and cached >= both, f"{first}, then {again} with {cached} of {both}: the answer counts"
    _, cached, _ = run(binary, daemon, "/v1/chat/completions",
                       json.dumps({"model": "m", "cache_salt": "other", "messages": later}))
    assert cached == 0, f"{cached} tokens of another salt"
    messages = {"model": "m", "system": POLICY, "messages": [{"role": "user", "content": "Returns?"}]}
    first, _, _ = run(binary, daemon, "/v1/messages?beta=true", json.dumps({**messages, "cache_salt": "anthropic"}))
    again, cached, _ = run(binary, daemon, "/v1/messages", json.dumps({**messages, "cache_salt": "anthropic"}))
    assert again == first and cached > 0, f"{first}, then {again} with {cached}"
    _, cached, told = run(binary, daemon, "/v1/chat/completions", '{"messages": [{"role"')
    assert cached == 0 and "no prompt" in told, told


def main():
    binary = os.path.abspath(sys.argv[2])
    for name in ("pickd", "example_body"):
        if not os.path.exists(os.path.join(binary, "bin", name)):
            print(f"skipped: {name} was not built")
            return 77
    with tempfile.TemporaryDirectory() as directory:
        daemon = Daemon(binary, directory)
        try:
            check(binary, daemon, directory)
        finally:
            daemon.stop()
    print("turns met, salts did not, usage was reported, and what is no JSON was picked by load")
    return 0


if __name__ == "__main__":
    sys.exit(main())
