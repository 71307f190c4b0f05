#!/usr/bin/env bash
# run.sh PROGRAM [ARGUMENT...]: runs a test program that was cross-compiled, by qemu's user mode.
# Left out is what qemu lacks, not what the processor does.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
left_out=()
exec qemu-aarch64-static -L "$here/../../build/arm64-sysroot" "$1" --gtest_brief=1 \
  --gtest_filter="-$(IFS=: && echo "${left_out[*]}")" "${@:2}"
