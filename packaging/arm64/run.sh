#!/usr/bin/env bash
# run.sh PROGRAM [ARGUMENT...]: runs a test program that was cross-compiled, by qemu's user mode.
# Left out is what qemu lacks, not what the processor does.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
# It chooses addresses by pages of 4 KiB, and a file of huge pages needs one of theirs.
left_out=(HugePages.CarryAStateFileThatIsGoneOnWith)
exec qemu-aarch64-static -L "$here/../../build/arm64-sysroot" "$1" --gtest_brief=1 \
  --gtest_filter="-$(IFS=: && echo "${left_out[*]}")" "${@:2}"
