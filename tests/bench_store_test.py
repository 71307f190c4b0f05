#!/usr/bin/env python3
"""`pickd-bench store` from a directory without a trace: it makes its own, and its JSON has every key.

Usage: bench_store_test.py SOURCE_DIR BINARY_DIR
"""
import json
import os
import subprocess
import sys
import tempfile

KEYS = ["find_p50_ns", "find_p99_ns", "insert_mblocks_s", "combined_mops_s", "steady_insert_mblocks_s",
        "steady_combined_mops_s", "evict_mentries_s", "bytes_per_holding"]


def main():
    program = os.path.join(os.path.abspath(sys.argv[2]), "bin", "pickd-bench")
    if not os.path.exists(program):
        print(f"skipped: {program} is not built")
        return 77
    with tempfile.TemporaryDirectory() as directory:
        command = [program, "store", "--expand", "8", "--endpoints", "12", "--state-mib", "4", "--requests", "600",
                   "--shared-blocks", "10", "--ttl-ticks", "150", "--loops", "2", "--json"]
        printed = subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True).stdout
        again = subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True).stdout
    figures = json.loads(printed)
    of_references = figures["reference"]
    assert sorted(of_references) == ["char_radix", "hash_radix", "locked_lru"], of_references.keys()
    for name, of in [("pickd", figures), *of_references.items()]:
        for key in KEYS:
            assert of[key] > 0, f"{name}: {key} is {of[key]}"
    assert figures["line_read_ns"] > 0
    assert 0 < figures["load"] <= 0.76, figures["load"]
    assert figures["shared_found"] == 1, "twelve endpoints got the common prompt"
    # Figures differ from run to run, what is held does not: the workload follows from its seed.
    assert json.loads(again)["load"] == figures["load"], "two runs replay the same"
    print("store benchmark: every key, from a workload of its own")
    return 0


if __name__ == "__main__":
    sys.exit(main())
