#!/usr/bin/env bash
# build_rpm.sh SOURCE WORK DIST: RPM packages of the files in SOURCE that git tracks or would track,
# into DIST, and an older release of each into WORK/older, for tests of the upgrade. Works on Debian
# too (packages rpm, debugedit, elfutils). Fails when rpmlint finds something that
# packaging/rpm/rpmlint.toml does not allow.
set -euo pipefail
source=$(readlink -f "$1") work=$(readlink -m "$2") dist=$(readlink -m "$3")
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

# Where rpm has no flags of its distribution, Debian's, which also finds the objects of build_deb.sh
# in the cache.
flags=()
tree=$work/BUILD/pickd-$version
if ! rpm --eval '%{optflags}' | grep -q stack-protector &&
  command -v dpkg-buildflags >/dev/null; then
  extra="-g1 -fstack-clash-protection"
  [[ $(dpkg-architecture -qDEB_HOST_ARCH) != amd64 ]] || extra+=" -fcf-protection"
  mkdir -p "$tree" && cd "$tree" # the flags name it, to leave it out of the debug information
  export DEB_BUILD_MAINT_OPTIONS=hardening=+all
  compiler="$(dpkg-buildflags --get CXXFLAGS) $extra $(dpkg-buildflags --get CPPFLAGS)"
  flags=(--define "optflags $compiler"
    --define "build_ldflags $(dpkg-buildflags --get LDFLAGS)")
fi
share_ccache "$tree"

# rpm_build RELEASE ARGUMENT...
rpm_build() {
  (cd "$work" && rpmbuild --nodeps --define "_topdir $work" --define "pickd_release $1" \
    "${flags[@]}" "${@:2}" "$spec") >>"$work/build.log" 2>&1 || {
    tail -40 "$work/build.log"
    echo "build_rpm: rpmbuild failed; all of it is in $work/build.log" >&2
    exit 1
  }
}
rpm_build 0 -bb
mv "$work"/RPMS/*/*.rpm "$work/older/"
rpm_build 1 -ba --noprep # what is compiled already stays
rpmlint --config "$source/packaging/rpm/rpmlint.toml" "$spec" "$work"/RPMS/*/*.rpm
cp "$work"/RPMS/*/*.rpm "$work"/SRPMS/*.rpm "$dist/"
(cd "$dist" && ls -sh --block-size=KiB -- *.rpm)
