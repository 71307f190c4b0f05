#!/usr/bin/env bash
# deb.sh DIST WORK [--boot]: installs the packages of DIST in a throw-away root as a user would,
# picks an endpoint with nothing but them, upgrades from an older version, removes and purges.
# --boot: systemd is booted in that root too (boot.sh), the example is compiled in it, and the
# upgrade is one under load. Exit 77: this machine cannot, and why.
set -euo pipefail
dist=$(readlink -f "$1") work=$(readlink -m "$2") boot=${3:-}
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
readonly PACKAGES=(pickd libpickd0 libpickd-body0 libpickd-dev pickd-tools)
mkdir -p "$work"
# shellcheck source=packaging/test/root.sh
. "$here/root.sh"

cleanup() {
  if [[ -n ${init:-} ]]; then kill -KILL "$init" 2>/dev/null || true; fi
  if [[ -n ${daemon:-} ]]; then
    kill "$daemon" 2>/dev/null || true
    wait "$daemon" || true
  fi
  without_proc
}
trap cleanup EXIT

fresh_root systemd systemd-sysv dbus procps
mkdir "$root/new" "$root/old"
cp "$dist"/*.deb "$root/new/"
rm -f "$root"/new/*dbgsym*

# The same packages under a lower version number, as the version before.
say "an older version of each package"
for deb in "$root"/new/*.deb; do
  rm -rf "$work/repack"
  dpkg-deb -R "$deb" "$work/repack"
  version=$(sed -n 's/^Version: //p' "$work/repack/DEBIAN/control")
  sed -i "s/^Version: .*/Version: $version~before/; s/(= $version)/(= $version~before)/g" \
    "$work/repack/DEBIAN/control"
  dpkg-deb -Znone --root-owner-group -b "$work/repack" "$root/old/" >/dev/null
done
rm -rf "$work/repack"

say "installing"
# install DIRECTORY: the packages in it, with what they depend on, as a user does.
install() {
  inside sh -c "apt-get install -y --no-install-recommends $1/*.deb" >>"$work/apt.log" 2>&1
}
: >"$work/apt.log"
if ! install /old && ! { inside apt-get update >>"$work/apt.log" 2>&1 && install /old; }; then
  tail -20 "$work/apt.log"
  ! grep -q 'Failed to fetch\|Temporary failure' "$work/apt.log" || skip "no package registry"
  fail "apt cannot install them"
fi
inside getent passwd pickd >/dev/null || fail "there is no user pickd"
inside pickd --check-config /etc/pickd/pickd.yaml || fail "the shipped configuration is bad"
for page in man8/pickd.8 man5/pickd.yaml.5 man1/pickctl.1 man3/pickd_pick.3 man3/pickd-body.3; do
  [[ -f $root/usr/share/man/$page.gz ]] || fail "there is no manual page $page"
done

say "compiling the example against libpickd-dev"
cp "$root/usr/share/doc/libpickd-dev/examples/pick.c" "$here/load.c" "$root/root/"
if [[ $boot == --boot ]]; then
  inside apt-get install -y --no-install-recommends gcc libc6-dev pkg-config \
    >>"$work/apt.log" 2>&1 ||
    fail "no compiler; see $work/apt.log"
  # shellcheck disable=SC2016 # for the shell inside
  inside sh -ec 'cd /root
    for it in pick load; do cc -Wall -Werror -o $it $it.c $(pkg-config --cflags --libs pickd); done'
else # this machine's compiler and C library, that package's header and library
  for it in pick load; do
    cc -Wall -Werror -o "$root/root/$it" "$root/root/$it.c" -I"$root/usr/include" \
      -L"$(dirname "$root"/usr/lib/*/libpickd.so)" -lpickd
  done
fi

# hardened FILE: position-independent, all of it bound and read-only before it runs.
hardened() {
  local file=$1
  readelf -hW "$file" | grep 'Type: *DYN' >/dev/null || fail "$file is not position-independent"
  readelf -dW "$file" | grep 'BIND_NOW' >/dev/null || fail "$file is not bound at the start"
  readelf -lW "$file" | grep 'GNU_RELRO' >/dev/null || fail "$file has no RELRO"
}

if [[ $boot == --boot ]]; then
  say "hardening"
  for it in sbin/pickd bin/pickctl lib/*/libpickd.so.0 lib/*/libpickd-body.so.0; do
    hardened "$(compgen -G "$root/usr/$it")"
  done
  for symbol in __stack_chk_fail '_chk@'; do
    readelf --dyn-syms -W "$root/usr/sbin/pickd" | grep "$symbol" >/dev/null ||
      fail "pickd lacks $symbol"
  done
  # shellcheck source=packaging/test/boot.sh
  . "$here/boot.sh"
else
  say "a picked endpoint with packages only"
  cat >"$root/root/pickd.yaml" <<'YAML'
state: {size_mib: 16}
scrape: {enabled: false}
endpoints:
  - {name: gpu-0, address: "10.0.0.1:8000"}
  - {name: gpu-1, address: "10.0.0.2:8000"}
YAML
  inside mkdir -p /run/pickd
  with_proc
  "${INSIDE[@]}" pickd --config /root/pickd.yaml 2>"$work/pickd.log" &
  daemon=$!
  explain() { cat "$work/pickd.log"; }
  until_true "pickd does not become ready" grep -qs 'ready on' "$work/pickd.log"
  inside /root/pick | tee "$work/pick.out"
  grep -q '10\.0\.0\.' "$work/pick.out" || fail "no endpoint was picked"
  inside pickctl status >/dev/null || fail "pickctl cannot ask the daemon"
  kill "$daemon"
  wait "$daemon" || fail "pickd did not stop in order"
  daemon=
  rm -rf "$root/run/pickd"

  say "upgrading"
  echo '# a line of the administrator' >>"$root/etc/pickd/pickd.yaml"
  install /new || fail "the upgrade failed; see $work/apt.log"
  grep -q 'line of the administrator' "$root/etc/pickd/pickd.yaml" ||
    fail "the upgrade took the administrator's configuration"

  say "back to the older version, and forward"
  inside sh -c 'apt-get install -y --no-install-recommends --allow-downgrades /old/*.deb' \
    >>"$work/apt.log" 2>&1 || fail "the downgrade failed; see $work/apt.log"
  inside pickd --check-config /etc/pickd/pickd.yaml || fail "the downgrade broke the configuration"
  install /new || fail "the upgrade after it failed; see $work/apt.log"
fi
# shellcheck disable=SC2016 # dpkg's own variables
inside dpkg-query -W -f='${Package} ${Version} ${db:Status-Status}\n' "${PACKAGES[@]}" |
  tee "$work/versions"
if grep -q before "$work/versions"; then fail "the older version is still there"; fi

say "removing and purging"
inside apt-get remove -y "${PACKAGES[@]}" >>"$work/apt.log" 2>&1 ||
  fail "remove failed; see $work/apt.log"
[[ -f $root/etc/pickd/pickd.yaml ]] || fail "remove took the configuration"
inside dpkg --purge "${PACKAGES[@]}" >>"$work/apt.log" 2>&1 ||
  fail "purge failed; see $work/apt.log"
left=$(leftovers)
[[ -z $left ]] || fail "purge left behind: $left"
say "installed, picked, upgraded, removed and purged"
