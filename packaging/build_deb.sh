#!/usr/bin/env bash
# build_deb.sh SOURCE WORK DIST [--quick]: Debian packages of the files in SOURCE that git tracks or
# would track, into DIST. Fails when lintian finds something that debian/*.lintian-overrides does
# not allow. --quick: compiled with the flags of the preset `release`, so that ccache has the
# objects after ./dev build; without the hardening of the compiler, so to try packaging and not to
# ship.
set -euo pipefail
source=$(readlink -f "$1") work=$(readlink -m "$2") dist=$(readlink -m "$3") quick=${4:-}
# shellcheck source=packaging/build_common.sh
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/build_common.sh"

version=$(version_of "$source")
tree=$work/pickd-$version
rm -rf "$work" && mkdir -p "$tree" "$dist"
copy_sources "$source" "$tree"
cp -r "$tree/packaging/debian" "$tree/debian"
cat >"$tree/debian/changelog" <<TEXT
pickd ($version) unstable; urgency=medium

  * See CHANGELOG.md.

 -- $MAINTAINER  $(date_of "$source" -R)
TEXT

share_ccache "$tree"
profiles=()
suppressed=initial-upload-closes-no-bugs
if [[ $quick == --quick ]]; then
  profiles=(--build-profiles=pkg.pickd.quick)
  suppressed+=,hardening-no-fortify-functions,hardening-no-bindnow
fi
(cd "$tree" && DEB_BUILD_OPTIONS="parallel=$(nproc) ${DEB_BUILD_OPTIONS:-}" \
  dpkg-buildpackage -us -uc -b -nc --no-pre-clean "${profiles[@]}" >"$work/build.log" 2>&1) || {
  tail -40 "$work/build.log"
  echo "build_deb: dpkg-buildpackage failed; all of it is in $work/build.log" >&2
  exit 1
}
lintian --allow-root --fail-on error,warning,info --tag-display-limit 0 \
  --suppress-tags "$suppressed" "$work"/*.changes
cp "$work"/*.deb "$dist/"
(cd "$dist" && ls -sh --block-size=KiB -- *.deb)
