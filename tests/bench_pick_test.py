#!/usr/bin/env python3
"""`pickd-bench pick` in its three forms, each for a moment: every key of the JSON is there and makes sense.

Usage: bench_pick_test.py SOURCE_DIR BINARY_DIR
"""
import json
import os
import subprocess
import sys

POSITIVE = ["pick_p50_ns", "pick_p99_ns", "pick_p999_ns", "ring_p50_ns", "eventfd_p50_ns", "unix_p50_ns",
            "hash_p50_ns", "daemon_p50_ns", "wait_p50_ns", "clock_p50_ns", "pipelined_picks_s", "pipelined_best_picks_s",
            "pipelined_worker_p50_ns"]


def run(program, *arguments):
    return json.loads(subprocess.run([program, "pick", *arguments, "--json"], check=True, capture_output=True,
                                     text=True).stdout)


def round_trips(program):
    figures = run(program, "--rounds", "2", "--picks", "100", "--prompt-tokens", "1000", "--pipelined-seconds", "0.05")
    for key in POSITIVE:
        assert figures[key] > 0, f"{key} is {figures[key]}"
    assert figures["pick_p50_ns"] <= figures["pick_p99_ns"] <= figures["pick_p999_ns"]
    assert figures["grpc_p50_ns"] is None or figures["grpc_p50_ns"] > 0
    # The bytes that the probes carry are those of the pick: 16 keys out, eight endpoints back.
    assert figures["record_bytes"] == 256, figures["record_bytes"]
    assert figures["answer_bytes"] > 128, figures["answer_bytes"]
    parts = sum(figures[key] for key in ("hash_p50_ns", "library_p50_ns", "wait_p50_ns", "rest_p50_ns"))
    assert abs(parts - figures["pick_p50_ns"]) < 1, "the parts of a pick make the whole"
    waiting = sum(figures[key] for key in ("ring_p50_ns", "daemon_p50_ns", "crossing_p50_ns"))
    assert abs(waiting - figures["wait_p50_ns"]) < 1, "and so do those of the wait"
    costs = figures["hash_by_tokens"]
    assert costs[-1]["tokens"] == 131072
    assert costs[-1]["p50_ns"] > costs[0]["p50_ns"] > 0, costs


def open_loop(program):
    figures = run(program, "--rate", "500", "--hogs", "1", "--slices", "1", "--slice-seconds", "0.1")
    assert figures["hogs"] == 1
    for wait in ("block", "default", "spin"):
        assert 0 < figures[f"{wait}_p50_ns"] <= figures[f"{wait}_p99_ns"], (wait, figures)


def standard(program):
    rows = run(program, "--standard", "--slices", "1", "--slice-seconds", "0.03")
    assert sorted({row["hogs"] for row in rows}) == [0, 1, 2, 4]
    assert len({row["rate"] for row in rows}) == 2
    for row in rows:
        for name in ("wake", "block", "default", "spin"):
            assert 0 < row[f"{name}_p50_ns"] <= row[f"{name}_p99_ns"], (name, row)
        assert abs(row["default_p99_to_block"] - row["default_p99_ns"] / row["block_p99_ns"]) < 1e-6 * row["default_p99_to_block"]


def main():
    program = os.path.join(os.path.abspath(sys.argv[2]), "bin", "pickd-bench")
    if not os.path.exists(program):
        print(f"skipped: {program} is not built")
        return 77
    round_trips(program)
    open_loop(program)
    standard(program)
    print("pick benchmark: every key, in all three forms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
