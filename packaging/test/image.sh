#!/usr/bin/env bash
# image.sh DIST WORK: runs the file system of the image in DIST as a container engine would: as its
# user, on a read-only root, with processes and mounts of its own, and the directory of the socket
# shared. A gateway of another user and other processes picks. Exit 77: this machine cannot.
set -euo pipefail
dist=$(readlink -f "$1") work=$(readlink -m "$2")
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
mkdir -p "$work"
# shellcheck source=packaging/test/root.sh
. "$here/root.sh"
readonly USER_ID=65532
[[ $(id -u) -eq 0 ]] || skip "needs root, for namespaces"
unshare --mount --pid --fork true 2>/dev/null || skip "there are no namespaces to be had"
image=$(compgen -G "$dist/pickd-*-oci.tar") || fail "there is no image in $dist"

cleanup() {
  if [[ -n ${daemon:-} ]]; then kill "$daemon" 2>/dev/null || true; fi
}
trap cleanup EXIT

say "what the image says"
skopeo inspect --config "oci-archive:$image" >"$work/config.json"
python3 - "$work/config.json" <<'PY'
import json, sys
config = json.load(open(sys.argv[1], encoding="utf-8"))["config"]
print(json.dumps({key: config[key] for key in ("User", "Entrypoint", "Cmd", "Volumes")}))
assert config["User"] == "65532:65532" and config["Entrypoint"] == ["/usr/sbin/pickd"]
PY
ls -s --block-size=MiB "$image"

root=$work/image-root
rm -rf "$root" && mkdir -p "$root" && tar -C "$root" -xf "$dist/rootfs.tar"
for shell in bin/sh bin/bash usr/bin/dpkg usr/bin/apt; do
  [[ ! -e $root/$shell ]] || fail "the image has $shell"
done
shared=$work/run
rm -rf "$shared" && mkdir "$shared"
mkdir -p "$root/etc/pickd"
python3 - "$here/../kubernetes/config.yaml" "$root/etc/pickd/pickd.yaml" <<'PY'
import sys
text = open(sys.argv[1], encoding="utf-8").read().split("pickd.yaml: |\n")[1]
lines = [line[4:] for line in text.split("\n")]
settings = "\n".join(lines).split("pools:")[0]  # there is no cluster to find engines in
open(sys.argv[2], "w", encoding="utf-8").write(settings + 'scrape: {enabled: false}\nendpoints:\n'
    '  - {name: gpu-0, address: "10.0.0.1:8000"}\n')
PY

say "the init container hands the directory over"
chroot "$root" /bin/busybox chown "$USER_ID:$USER_ID" /run/pickd || fail "busybox does not run"
chown "$USER_ID:$USER_ID" "$shared" # what it does to the mounted directory

# container COMMAND...: as the manifests have it run: the image's user, nothing of root's rights, a
# read-only root, processes of its own, only the shared directory to write into.
container() {
  # shellcheck disable=SC2016 # for the shell inside
  exec unshare --mount --pid --fork --kill-child sh -ec 'root=$1 shared=$2 user=$3
    shift 3
    mount --make-rprivate /
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount --bind "$shared" "$root/run/pickd"
    mount -o remount,ro,bind "$root"
    exec chroot --userspec="$user:$user" --groups= "$root" "$@"' \
    sh "$root" "$shared" "$USER_ID" "$@"
}

say "the daemon"
(container /usr/sbin/pickd --config /etc/pickd/pickd.yaml) 2>"$work/image.log" &
daemon=$!
explain() { cat "$work/image.log"; }
until_true "the daemon does not become ready" grep -qs 'ready on' "$work/image.log"
cat "$work/image.log"
(container /usr/bin/pickctl status) >"$work/status" || fail "the probe fails"
pid=$(pgrep -f -n "^/usr/sbin/pickd --config /etc/pickd/pickd.yaml") ||
  fail "where is the daemon?"
grep -E '^(Uid|CapEff|VmRSS|RssAnon|RssShmem):' "/proc/$pid/status"

say "a gateway of another user"
dpkg-deb -x "$(compgen -G "$dist/libpickd0_*.deb")" "$work/library"
dpkg-deb -x "$(compgen -G "$dist/libpickd-dev_*.deb")" "$work/library"
libraries=$(dirname "$(compgen -G "$work/library/usr/lib/*/libpickd.so.0")")
cc -Wall -Werror -o "$work/pick" "$here/../../examples/pick.c" -I"$work/library/usr/include" \
  -L"$libraries" -lpickd
gateway() {
  unshare --pid --fork setpriv --reuid 12345 --regid 12345 --groups "$1" \
    env PICKD_SOCKET="$shared/pickd.sock" LD_LIBRARY_PATH="$libraries" "$work/pick"
}
chmod o+x "$work" # and those above it let everybody through
gateway "$USER_ID" | tee "$work/pick.out"
grep -q '10\.0\.0\.1:8000' "$work/pick.out" || fail "no endpoint was picked"
if gateway 12345 2>/dev/null; then fail "a user who is not in the group was let in"; fi

say "it ends in order"
kill "$pid"
wait "$daemon" || fail "the daemon did not end in order"
daemon=
say "the image works"
