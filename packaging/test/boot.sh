# shellcheck shell=bash
# shellcheck disable=SC2154 # $root and $work are deb.sh's
# Part of deb.sh: the service under a systemd that is booted in $root, with the older packages
# installed and the programs /root/pick and /root/load. Sourced: uses deb.sh's functions and
# variables; ends with the newer ones installed.

say "booting systemd"
command -v systemd-nspawn >/dev/null ||
  skip "there is no systemd-nspawn (package systemd-container)"
cat >"$root/etc/pickd/pickd.yaml" <<'YAML'
scrape: {enabled: false}
state: {size_mib: 32}
scheduling: {profile: prefix-load}
endpoints:
  - {name: gpu-0, address: "10.0.0.1:8000"}
  - {name: gpu-1, address: "10.0.0.2:8000"}
YAML
systemd-nspawn --register=no --keep-unit -D "$root" --private-network -b \
  </dev/null >"$work/boot.log" 2>&1 &
nspawn=$!
has_init() { pgrep -P "$nspawn" >/dev/null || ! kill -0 "$nspawn" 2>/dev/null; }
until_true "no container starts" has_init
init=$(pgrep -P "$nspawn") ||
  skip "no container can be booted here: $(tail -1 "$work/boot.log")"
booted() {
  nsenter -t "$init" -m -u -i -n -p -C env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive SYSTEMD_PAGER= "$@"
}
explain() { booted journalctl -u pickd.service -u pickd.socket --no-pager | tail -30; }
is_up() {
  booted systemctl is-system-running 2>/dev/null | grep 'running\|degraded' >/dev/null ||
    ! kill -0 "$nspawn" 2>/dev/null
}
MINUTES_MAX=3 until_true "systemd does not come up" is_up
kill -0 "$nspawn" 2>/dev/null ||
  skip "systemd does not come up in a container here: $(tail -1 "$work/boot.log")"

property() { booted systemctl show -p "$1" --value pickd.service; }
is_active() { [[ $(property ActiveState) == active ]]; }
journal_has() { booted journalctl -u pickd.service --no-pager | grep "$@" >/dev/null; }
# The prompt is longer than a block, so that picks of it find each other's.
prompt=$(printf 'a prompt that is longer than a block %.0s' {1..40})
pick() { booted /root/pick "" "$prompt"; }
# cached: whether a pick finds what a pick before it left.
cached() {
  local said
  said=$(pick) || fail "no pick: $said"
  echo "$said" | tee "$work/pick.out"
  grep -Eq '[1-9][0-9]* of [0-9]+ tokens cached' "$work/pick.out"
}
# restarted PID WHAT: the service is active again, as another process.
restarted() { is_active && [[ $(property MainPID) != "$1" && $(property MainPID) != 0 ]]; }
# load_begin, load_end WHAT: picks and reports from one client all the time in between; none may
# fail.
load_begin() {
  rm -f "$work/load.out"
  booted /root/load >"$work/load.out" 2>&1 &
  load=$!
  until_true "the load does not start" test -s "$work/load.out"
}
load_end() {
  booted pkill -TERM -x load || true
  wait "$load" || true
  tail -1 "$work/load.out"
  grep -q ', 0 failed,' "$work/load.out" || fail "picks failed: $1"
}

say "start"
booted systemctl enable --now pickd.socket pickd.service
until_true "the service does not become active" is_active
pick
[[ $(booted stat -c '%U %a' /run/pickd/pickd.sock) == "pickd 660" ]] ||
  fail "the socket is not pickd's, 0660"

say "exposure"
booted systemd-analyze verify --man=no pickd.service pickd.socket ||
  fail "systemd-analyze finds mistakes in the units"
booted systemd-analyze security --no-pager pickd.service >"$work/security"
tail -1 "$work/security"
exposure=$(sed -n 's/.*exposure level for pickd.service: \([0-9.]*\).*/\1/p' "$work/security")
awk -v e="$exposure" 'BEGIN { exit !(e != "" && e <= 1.3) }' ||
  fail "exposure $exposure; at most 1.3 is wanted"

say "reload"
sed -i 's/profile: .*}/profile: epp-default}/' "$root/etc/pickd/pickd.yaml"
pid=$(property MainPID)
booted systemctl reload pickd.service
until_true "the reload does not show" journal_has "epp-default"
[[ $(property MainPID) == "$pid" ]] || fail "the reload started another process"
cp "$root/etc/pickd/pickd.yaml" "$work/good.yaml"
echo 'scheduling: {profile: none-such}' >"$root/etc/pickd/pickd.yaml"
if booted systemctl reload pickd.service 2>/dev/null; then
  fail "a reload took a bad configuration for good"
fi
cp "$work/good.yaml" "$root/etc/pickd/pickd.yaml"
is_active || fail "a bad configuration ended the service"
[[ $(property MainPID) == "$pid" ]] || fail "a bad configuration started another process"
pick

say "warm restart under load"
load_begin
booted systemctl restart pickd.service
until_true "not active after a restart" restarted "$pid"
load_end "while the service restarted"
cached || fail "the restart lost the state"

say "kill -9 under load"
pid=$(property MainPID)
load_begin
booted kill -KILL "$pid"
until_true "it is not started again after a kill" restarted "$pid"
load_end "after kill -9"
cached || fail "the kill lost the state"

say "kill after kill"
for _ in 1 2 3 4 5 6 7; do
  pid=$(property MainPID)
  booted kill -KILL "$pid"
  until_true "it is not started again after several kills" restarted "$pid"
done
[[ $(booted systemctl show -p ActiveState --value pickd.socket) == active ]] ||
  fail "the socket gave up after several kills"
cached || fail "the kills lost the state"

say "a configuration that is wrong, and then mended"
cp "$root/etc/pickd/pickd.yaml" "$work/good.yaml"
echo 'nonsense: 1' >>"$root/etc/pickd/pickd.yaml"
booted systemctl restart pickd.service || true
tried_often() { [[ $(property NRestarts) -gt 6 ]]; }
until_true "systemd gave up" tried_often
cp "$work/good.yaml" "$root/etc/pickd/pickd.yaml"
until_true "it does not come back when the configuration is mended" is_active
pick || fail "no client comes in after the configuration was mended"

say "stop and start"
booted systemctl stop pickd.service
booted systemctl start pickd.service
until_true "not active after stop and start" is_active
pick || fail "no client comes in after stop and start"

say "socket activation"
booted systemctl stop pickd.service
pick || fail "a client that connects does not start the service"
is_active || fail "somebody else than the service answered"

say "forget everything"
booted sh -c 'systemctl stop pickd.service pickd.socket && rm /run/pickd/state' ||
  fail "there is no state to forget"
booted systemctl start pickd.socket pickd.service
until_true "not active after the state was removed" is_active
if cached; then fail "it remembers what was removed"; fi

say "upgrade under load"
pid=$(property MainPID)
load_begin
booted sh -c 'dpkg --force-confold -i /new/*.deb' >>"$work/apt.log" 2>&1 ||
  fail "the upgrade failed; see $work/apt.log"
until_true "not active after the upgrade" restarted "$pid"
load_end "during the upgrade"
cached || fail "the upgrade lost the state"

say "watchdog under load"
pid=$(property MainPID)
load_begin
booted kill -STOP "$pid"
until_true "the watchdog does not end a daemon that hangs" restarted "$pid"
load_end "while the daemon hung"
cached || fail "the watchdog lost the state"
journal_has -i 'watchdog timeout' || fail "it was not the watchdog"

say "stop"
booted systemctl stop pickd.socket pickd.service
if pick 2>/dev/null; then fail "somebody answers after the stop"; fi
booted systemctl poweroff || true
wait "$nspawn" || true
init=
