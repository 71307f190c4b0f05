#!/usr/bin/env bash
# rpm.sh DIST OLDER WORK: installs the RPM packages of OLDER in a throw-away root, runs what they
# hold, upgrades to those of DIST and erases them. The root is a Debian's, so what they need of a
# distribution is put there by apt, and rpm is told not to ask for it; their scriptlets run. Exit
# 77: this machine cannot, and why.
set -euo pipefail
dist=$(readlink -f "$1") older=$(readlink -f "$2") work=$(readlink -m "$3")
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
readonly PACKAGES=(pickd libpickd0 libpickd-body0 libpickd-devel pickd-tools)
mkdir -p "$work"
# shellcheck source=packaging/test/root.sh
. "$here/root.sh"
command -v rpm >/dev/null || skip "there is no rpm"

cleanup() {
  if [[ -n ${daemon:-} ]]; then
    kill "$daemon" 2>/dev/null || true
    wait "$daemon" || true
  fi
  without_proc
}
trap cleanup EXIT

fresh_root systemd systemd-sysv dbus procps
in_rpm() { rpm --root "$root" --define '_dbpath /var/lib/rpm' "$@"; }
# packages DIRECTORY: those to install, without debug information and sources.
packages() { find "$1" -name '*.rpm' -not -name '*debug*' -not -name '*.src.rpm'; }
in_rpm --initdb

say "installing"
readarray -t files < <(packages "$older")
in_rpm -i --nodeps "${files[@]}" 2>&1 | tee "$work/rpm.log"
if grep -q 'scriptlet failed\|error:' "$work/rpm.log"; then fail "a scriptlet failed"; fi
inside getent passwd pickd >/dev/null || fail "there is no user pickd"
in_rpm -V --nodeps --nouser --nogroup "${PACKAGES[@]}" ||
  fail "what was installed is not what the packages say"

say "libraries that the programs need"
readarray -t needed < <(ldd "$root/usr/sbin/pickd" | awk '$3 ~ /^\// { print $3 }' |
  xargs readlink -f | xargs dpkg-query -S 2>/dev/null | cut -d: -f1 | sort -u)
inside apt-get install -y --no-install-recommends "${needed[@]}" >"$work/apt.log" 2>&1 ||
  skip "apt cannot install ${needed[*]} there; see $work/apt.log"
inside pickd --check-config /etc/pickd/pickd.yaml || fail "the shipped configuration is bad"

say "a picked endpoint"
cat >"$root/root/pickd.yaml" <<'YAML'
state: {size_mib: 16}
scrape: {enabled: false}
endpoints:
  - {name: gpu-0, address: "10.0.0.1:8000"}
YAML
libraries=$(dirname "$(find "$root/usr" -name libpickd.so.0)")
cc -Wall -Werror -o "$root/root/pick" "$here/../../examples/pick.c" -I"$root/usr/include" \
  -L"$libraries" -lpickd
inside mkdir -p /run/pickd
with_proc
"${INSIDE[@]}" pickd --config /root/pickd.yaml 2>"$work/pickd.log" &
daemon=$!
explain() { cat "$work/pickd.log"; }
until_true "pickd does not become ready" grep -qs 'ready on' "$work/pickd.log"
inside env LD_LIBRARY_PATH="${libraries#"$root"}" /root/pick | tee "$work/pick.out"
grep -q '10\.0\.0\.1:8000' "$work/pick.out" || fail "no endpoint was picked"
inside pickctl status >/dev/null || fail "pickctl cannot ask the daemon"
kill "$daemon"
wait "$daemon" || fail "pickd did not stop in order"
daemon=
rm -rf "$root/run/pickd"

say "upgrading"
echo '# a line of the administrator' >>"$root/etc/pickd/pickd.yaml"
readarray -t files < <(packages "$dist")
in_rpm -U --nodeps "${files[@]}" 2>&1 | tee "$work/rpm.log"
if grep -q 'scriptlet failed\|error:' "$work/rpm.log"; then fail "a scriptlet failed"; fi
grep -q 'line of the administrator' "$root/etc/pickd/pickd.yaml" ||
  fail "the upgrade took the administrator's configuration"
in_rpm -q "${PACKAGES[@]}" | tee "$work/versions"
[[ $(grep -c -- '-1\.' "$work/versions") -eq ${#PACKAGES[@]} ]] ||
  fail "an older release is still there"

say "back to the older release, and forward"
readarray -t old < <(packages "$older")
in_rpm -U --oldpackage --nodeps "${old[@]}" 2>&1 | tee "$work/rpm.log"
in_rpm -U --nodeps "${files[@]}" 2>&1 | tee -a "$work/rpm.log"
if grep -q 'scriptlet failed\|error:' "$work/rpm.log"; then fail "a scriptlet failed"; fi
grep -q 'line of the administrator' "$root/etc/pickd/pickd.yaml" ||
  fail "going back took the administrator's configuration"

say "erasing"
in_rpm -e --nodeps "${PACKAGES[@]}" 2>&1 | tee "$work/rpm.log"
if grep -q 'scriptlet failed\|error:' "$work/rpm.log"; then fail "a scriptlet failed"; fi
[[ -f $root/etc/pickd/pickd.yaml.rpmsave ]] ||
  fail "the administrator's configuration was not saved"
rm -rf "$root/etc/pickd"
left=$(leftovers)
[[ -z $left ]] || fail "erase left behind: $left"
say "installed, picked, upgraded and erased"
