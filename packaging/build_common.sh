# shellcheck shell=bash
# What build_deb.sh and build_rpm.sh share: sources, version, date, the compiler's cache. Sourced.

export MAINTAINER="The pickd authors <pickd@example.org>"

version_of() { sed -n 's/^project(pickd VERSION \([0-9.]*\).*/\1/p' "$1/CMakeLists.txt"; }

# date_of SOURCE FORMAT: when it was last committed, so that equal sources make equal packages.
date_of() { date -u "${@:2}" -d "@$(git -C "$1" log -1 --format=%ct)"; }

# copy_sources SOURCE TREE: the files that git tracks or would track.
copy_sources() {
  git -C "$1" ls-files -z -co --exclude-standard | while IFS= read -r -d '' file; do
    if [[ -e $1/$file ]]; then printf '%s\0' "$file"; fi
  done | tar -C "$1" --null -T - -cf - | tar -C "$2" -xf -
}

# share_ccache TREE: objects are found in the cache whatever TREE is called, and where debhelper has
# set HOME.
share_ccache() {
  command -v ccache >/dev/null || return 0
  CCACHE_DIR=$(ccache --get-config cache_dir)
  export CCACHE_DIR CCACHE_BASEDIR=$1 CCACHE_NOHASHDIR=1
}
