#!/usr/bin/env bash
# build_rpm.sh SOURCE WORK DIST [BUILT]: RPM packages of the files in SOURCE that git tracks or
# would track, into DIST, and an older release of each into WORK/older, for tests of the upgrade.
# BUILT is where build_deb.sh has built the same sources: its objects are taken, so that nothing is
# compiled twice. Works on Debian too (packages rpm, debugedit, elfutils). Fails when rpmlint finds
# something that packaging/rpm/rpmlint.toml does not allow.
set -euo pipefail
source=$(readlink -f "$1") work=$(readlink -m "$2") dist=$(readlink -m "$3") built=${4:-}
# shellcheck source=packaging/build_common.sh
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/build_common.sh"

version=$(version_of "$source")
rm -rf "$work" && mkdir -p "$work"/{SOURCES,SPECS,BUILD,older} "$work/pickd-$version" "$dist"
copy_sources "$source" "$work/pickd-$version"
tar -C "$work" -czf "$work/SOURCES/pickd-$version.tar.gz" "pickd-$version"
rm -rf "$work/pickd-$version"
spec=$work/SPECS/pickd.spec
sed "s/@VERSION@/$version/" "$source/packaging/rpm/pickd.spec" >"$spec"
cat >>"$spec" <<TEXT

%changelog
* $(LC_ALL=C date_of "$source" '+%a %b %d %Y') $MAINTAINER - $version-1
- See CHANGELOG.md.
TEXT

prepared=(-bb)
if [[ -n $built ]]; then
  built=$(readlink -f "$built")
  [[ -f $built/pickd-$version/build/package/build.ninja ]] || {
    echo "build_rpm: there is no build of $version in $built" >&2
    exit 1
  }
  prepared=(-bb --noprep --define "_builddir $built" --define "pickd_built 1")
else
  share_ccache "$work/BUILD/pickd-$version"
fi

# rpm_build RELEASE ARGUMENT...
rpm_build() {
  (cd "$work" && rpmbuild --nodeps --noclean --define "_topdir $work" --define "pickd_release $1" \
    "${@:2}" "$spec") >>"$work/build.log" 2>&1 || {
    tail -40 "$work/build.log"
    echo "build_rpm: rpmbuild failed; all of it is in $work/build.log" >&2
    exit 1
  }
}
rpm_build 0 "${prepared[@]}"
mv "$work"/RPMS/*/*.rpm "$work/older/"
rpm_build 1 "${prepared[@]/#-bb/-ba}" --noprep # what is compiled already stays
rpmlint --config "$source/packaging/rpm/rpmlint.toml" "$spec" "$work"/RPMS/*/*.rpm
cp "$work"/RPMS/*/*.rpm "$work"/SRPMS/*.rpm "$dist/"
(cd "$dist" && ls -sh --block-size=KiB -- *.rpm)
