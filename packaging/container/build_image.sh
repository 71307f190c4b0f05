#!/usr/bin/env bash
# build_image.sh DEBS WORK DIST: an OCI image of the Debian packages in DEBS, without a running
# container engine: DIST/pickd-VERSION-oci.tar (skopeo and podman read it, docker load takes it
# after skopeo copy), and its file system as DIST/rootfs.tar. Needs root, mmdebstrap and buildah.
# Exit 77: this machine cannot, and why.
set -euo pipefail
debs=$(readlink -f "$1") work=$(readlink -m "$2") dist=$(readlink -m "$3")
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")

skip() {
  echo "skipped: $*"
  exit 77
}
[[ $(id -u) -eq 0 ]] || skip "needs root, for files of other owners"
for tool in mmdebstrap buildah; do
  command -v "$tool" >/dev/null || skip "there is no $tool"
done
rm -rf "$work" && mkdir -p "$work/context" "$dist"

version=$(dpkg-deb -f "$debs"/pickd_*.deb Version)
# shellcheck source=/dev/null
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
root=$work/rootfs

# libraries DEB: those that it depends on; systemd is there to make users, which is done below.
libraries() {
  dpkg-deb -f "$1" Depends | tr ',' '\n' | sed 's/[|(].*//' | tr -d ' ' | grep -v '^systemd'
}

# Packages are unpacked and not configured: there is no shell and no package manager. busybox is for
# kubernetes/daemonset.yaml, which has to hand a directory over.
readarray -t needed < <({
  libraries "$debs"/pickd_*.deb
  echo busybox-static
} | sort -u)
mmdebstrap --quiet --variant=extract --include="${needed[*]}" "$suite" "$root" \
  >"$work/log" 2>&1 || {
  tail -5 "$work/log"
  skip "mmdebstrap cannot make a root here"
}
dpkg-deb -x "$debs"/pickd_*.deb "$root"
dpkg-deb -x "$debs"/pickd-tools_*.deb "$work/tools"
install -D "$work/tools/usr/bin/pickctl" "$root/usr/bin/pickctl"

# Authorities for engines and API servers behind TLS.
mkdir "$work/certificates"
(cd "$work/certificates" && apt-get download ca-certificates >>"$work/log" 2>&1) ||
  skip "apt cannot download"
dpkg-deb -x "$work"/certificates/*.deb "$work/certificates/root"
mkdir -p "$root/etc/ssl/certs"
cat "$work"/certificates/root/usr/share/ca-certificates/mozilla/*.crt \
  >"$root/etc/ssl/certs/ca-certificates.crt"

rm -rf "$root"/usr/share/{doc,man,locale,lintian,bug,doc-base,bash-completion,zsh} \
  "$root"/var/{cache,log,lib} "$root"/usr/lib/{systemd,sysusers.d,tmpfiles.d} \
  "${root:?}"/{boot,dev,media,mnt,opt,srv,home}
cat >"$root/etc/passwd" <<'TXT'
root:x:0:0:root:/:/bin/false
nonroot:x:65532:65532:pickd:/:/bin/false
TXT
cat >"$root/etc/group" <<'TXT'
root:x:0:
nonroot:x:65532:
TXT
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
mkdir -p "$root/run/pickd" "$root/tmp" "$root/dev" "$root/proc" "$root/sys"
chown 65532:65532 "$root/run/pickd"
chmod 1777 "$root/tmp"

# Equal packages make an equal image.
epoch=$(stat -c %Y "$debs"/pickd_*.deb)
tar -C "$root" --sort=name --mtime="@$epoch" --numeric-owner -cf "$work/context/rootfs.tar" .
cp "$here/Containerfile" "$work/context/"
storage=(--root "$work/storage" --runroot "$work/run" --storage-driver vfs)
buildah "${storage[@]}" build --isolation chroot --timestamp "$epoch" -t "pickd:$version" \
  "$work/context" >>"$work/log" 2>&1 || {
  tail -20 "$work/log"
  echo "build_image: buildah failed" >&2
  exit 1
}
image=$dist/pickd-$version-oci.tar
rm -f "$image"
buildah "${storage[@]}" push "pickd:$version" "oci-archive:$image:pickd:$version" >>"$work/log" 2>&1
cp "$work/context/rootfs.tar" "$dist/"
(cd "$dist" && ls -sh --block-size=KiB -- *.tar)
