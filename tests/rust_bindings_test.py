#!/usr/bin/env python3
"""Tests bindings/rust against real daemons: format, clippy, tests, examples of the documentation, the example program,
and under Miri, where this machine has it, what calls no C.

Usage: rust_bindings_test.py SOURCE_DIR BINARY_DIR
"""
import os
import re
import subprocess
import sys

import rust_tools


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def readme_mistakes(folder):
    shown = re.findall(r"```rust\n(.*?)```", read(folder, "README.md"), re.DOTALL)
    if shown == [read(folder, "pickd/examples/pick.rs")]:
        return []
    return ["the program in README.md is not pickd/examples/pick.rs; copy it there"]


def version_mistakes(source, folder):
    project = re.search(r"project\(pickd VERSION (\S+)", read(source, "CMakeLists.txt")).group(1)
    workspace = re.search(r'^version = "(\S+)"', read(folder, "Cargo.toml"), re.MULTILINE).group(1)
    return [] if project == workspace else ["Cargo.toml says version %s, the project is %s" % (workspace, project)]


def doc_and_example_mistakes(folder, binary, env):
    """With a daemon to ask, the documentation's examples run; without one they only compile."""
    wrong = []
    with rust_tools.Daemon(binary, env) as daemon:
        asking = {**env, "PICKD_SOCKET": daemon.socket}
        if not rust_tools.run(["cargo", "test", "--locked", "--doc", "--all-features"], folder, asking):
            wrong.append("cargo test --doc")
        said = subprocess.run(["cargo", "run", "--locked", "--quiet", "--example", "pick", "--", "m", "Once upon a time"],
                              cwd=folder, env=asking, capture_output=True, text=True, check=False)
        if said.stdout != "127.0.0.1:9000 (only), 0 of 4 tokens cached\n":
            wrong.append("the example said %r and %r" % (said.stdout, said.stderr))
    return wrong


def documentation_mistakes(folder, env):
    strict = {**env, "RUSTDOCFLAGS": "-D warnings"}
    built = rust_tools.run(["cargo", "doc", "--locked", "--no-deps", "--all-features", "--quiet"], folder, strict)
    return [] if built else ["cargo doc"]


def miri_mistakes(folder, binary, env):
    """Of what calls no C; the whole of it needs a nightly toolchain, which few machines have."""
    if subprocess.run(["cargo", "+nightly", "miri", "--version"], env=env, capture_output=True,
                      check=False).returncode != 0:
        print("left out: there is no Miri (rustup component add miri rust-src --toolchain nightly)")
        return []
    own = {**env, "CARGO_TARGET_DIR": os.path.join(binary, "rust-miri"), "MIRIFLAGS": "-Zmiri-strict-provenance"}
    ran = rust_tools.run(["cargo", "+nightly", "miri", "test", "--locked", "-p", "pickd", "--lib",
                          "--no-default-features", "--features", "body"], folder, own)
    return [] if ran else ["Miri"]


def main():
    source, binary = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    folder = os.path.join(source, "bindings/rust")
    wrong = readme_mistakes(folder) + version_mistakes(source, folder)
    if wrong:
        return rust_tools.finish(wrong)
    rust_tools.need_rust(binary)
    env = rust_tools.environment(binary)
    rust_tools.need_crates(folder, env)
    wrong = rust_tools.check_workspace(folder, env)
    wrong += doc_and_example_mistakes(folder, binary, env)
    wrong += documentation_mistakes(folder, env)
    wrong += miri_mistakes(folder, binary, env)
    return rust_tools.finish(wrong)


if __name__ == "__main__":
    sys.exit(main())
