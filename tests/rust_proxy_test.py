#!/usr/bin/env python3
"""Tests gateways/rust-proxy with a real daemon and simulated engines, and runs the commands of its README.

Usage: rust_proxy_test.py SOURCE_DIR BINARY_DIR
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import rust_tools


def readme_mistakes(source, folder, binary, env):
    """The commands as they stand there, in bash, in the source tree."""
    if shutil.which("curl") is None:
        print("left out: the README's commands need curl")
        return ["curl is not there"] if os.environ.get("REQUIRE_RUST") else []
    with open(os.path.join(folder, "README.md"), encoding="utf-8") as file:
        commands = re.search(r"```sh\n(.*?)```", file.read(), re.DOTALL).group(1)
    if binary != os.path.join(source, "build/release"):
        commands = commands.replace("$PWD/build/release", binary)
    commands = commands.replace("$PWD/gateways/rust-proxy/target", env["CARGO_TARGET_DIR"])
    # What it starts ends with it, also where it fails; and it does not keep a pipe open that is read to its end.
    with tempfile.TemporaryFile("w+") as output:
        ran = subprocess.run(["timeout", "600", "bash", "-eu"], input="trap 'kill $(jobs -p) || true' EXIT\n" + commands,
                             cwd=source, text=True, env=env, stdout=output, stderr=subprocess.STDOUT, check=False)
        output.seek(0)
        said = output.read()
    print(said)
    wrong = []
    if ran.returncode != 0:
        wrong.append("the README's commands gave %d" % ran.returncode)
    served = re.findall(r"x-pickd-endpoint: (engine-\d)", said)
    if len(served) != 2 or served[0] != served[1]:
        wrong.append("the README's two turns were served by %s" % served)
    if "data: [DONE]" not in said:
        wrong.append("the README's stream did not end")
    return wrong


def main():
    source, binary = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    folder = os.path.join(source, "gateways/rust-proxy")
    rust_tools.need_rust(binary)
    env = rust_tools.environment(binary)
    # Its own: cargo lets one build at a time into a directory, and the other crates' tests run beside these.
    env["CARGO_TARGET_DIR"] += "-proxy"
    rust_tools.need_crates(folder, env)
    wrong = rust_tools.check_workspace(folder, env)
    wrong += readme_mistakes(source, folder, binary, env)
    return rust_tools.finish(wrong)


if __name__ == "__main__":
    sys.exit(main())
