#!/usr/bin/env bash
# make_sysroot.sh ROOT PACKAGE...: Debian's arm64 packages of these names, with what they depend on,
# unpacked in ROOT to compile and link against. Nothing of this machine's own packages changes. Kept
# until the list of packages is another. Needs root and mmdebstrap.
set -euo pipefail
root=$(readlink -m "$1")
shift
list=$root/packages.list
if [[ -f $list && $(<"$list") == "$*" ]]; then exit 0; fi
# shellcheck source=/dev/null
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
rm -rf "$root"
mmdebstrap --quiet --variant=extract --architectures=arm64 \
  --include="libc6-dev,libstdc++-12-dev,$(IFS=, && echo "$*")" "$suite" "$root"
echo "$*" >"$list"
