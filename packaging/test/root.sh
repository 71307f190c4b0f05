# shellcheck shell=bash
# What the package tests share: a throw-away root directory and commands in it. Sourced, with $work
# set.

say() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }
skip() {
  echo "skipped: $*"
  exit 77
}
fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# shellcheck disable=SC2154 # set by whoever sources this
root=$work/root

# What there still is of the packages, by name.
leftovers() {
  for place in etc usr var/lib run; do
    find "$root/$place" -iname '*pickd*' -not -path "$root/var/lib/apt/*"
  done
}

# fresh_root PACKAGE...: a minimal Debian of this machine's release with these packages, in $root.
# The first one that is made is kept in $work/base.tar and unpacked again afterwards.
fresh_root() {
  local base=$work/base.tar mirror suite
  without_proc
  [[ $(id -u) -eq 0 ]] || skip "needs root, for a root directory of its own"
  command -v debootstrap >/dev/null || skip "there is no debootstrap"
  # shellcheck source=/dev/null
  suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  # shellcheck disable=SC2016 # apt's own variables
  mirror=$(apt-get indextargets --format '$(SUITE) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    awk '$2 !~ /security/ { print $2; exit }')
  [[ -n $suite && -n $mirror ]] || skip "this machine's apt names no mirror to make a root from"
  if [[ ! -f $base ]]; then
    say "making a root of $suite"
    rm -rf "$root"
    debootstrap --variant=minbase --include="$(IFS=, && echo "$*")" "$suite" "$root" "$mirror" \
      >"$work/debootstrap.log" 2>&1 || {
      tail -5 "$work/debootstrap.log"
      skip "debootstrap cannot make a root here"
    }
    tar -C "$root" -cf "$base.new" . && mv "$base.new" "$base"
  fi
  rm -rf "$root" && mkdir "$root" && tar -C "$root" -xf "$base"
  cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
  cp -r /etc/apt/. "$root/etc/apt/"
  cp -r /var/lib/apt/lists/. "$root/var/lib/apt/lists/" # what this machine's apt knows
}

# inside COMMAND...: in $root, with the way to the package registry and nothing else of this
# environment. In the background write "${INSIDE[@]}" COMMAND..., so that $! is the command itself.
INSIDE=(env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
  DEBIAN_FRONTEND=noninteractive ${http_proxy:+http_proxy="$http_proxy"}
  ${https_proxy:+https_proxy="$https_proxy"} chroot "$root")
inside() { "${INSIDE[@]}" "$@"; }

# with_proc, without_proc: the daemon hands its state out by way of /proc.
with_proc() { mount -t proc proc "$root/proc" || skip "proc cannot be mounted here"; }
without_proc() {
  if mountpoint -q "$root/proc"; then umount "$root/proc"; fi
}

# until_true WHAT COMMAND...: asks until it is so; after a minute (MINUTES_MAX) WHAT is what failed.
until_true() {
  local what=$1 until=$((SECONDS + 60 * ${MINUTES_MAX:-1}))
  shift
  until "$@"; do
    if ((SECONDS > until)); then
      declare -F explain >/dev/null && explain
      fail "$what"
    fi
    sleep 0.2
  done
}
