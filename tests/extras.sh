# shellcheck shell=bash
# What some tests run and are skipped without, and how `./dev extras` gets it. Sourced by ./dev,
# whose functions it uses.

readonly CHROMIUM_PACKAGES=(chromium)
# Where promtool is put; what it is found by.
readonly EXTRAS=$PWD/build/extras
PATH=$PATH:$EXTRAS/usr/bin

# What the tests of pages and of metrics run, where there is none.
dev_extras() {
  need "${CHROMIUM_PACKAGES[@]}"
  if ! command -v promtool >/dev/null; then
    say "getting promtool out of Debian's prometheus (20 MB), whose service is not installed"
    rm -rf "$EXTRAS" && mkdir -p "$EXTRAS"
    (cd "$EXTRAS" && chmod a+rwx . && apt-get download prometheus && dpkg-deb -x prometheus_*.deb .)
    rm -f "$EXTRAS"/*.deb
    command -v promtool >/dev/null || die "extras: promtool does not run"
  fi
  finish extras "$(chromium --version), $(promtool --version 2>&1 | head -n 1)"
}
