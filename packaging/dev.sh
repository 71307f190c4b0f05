# shellcheck shell=bash
# How `./dev package` and `./dev arm64` make packages, an image and programs for another processor,
# and try them. Sourced by ./dev, whose functions it uses.

readonly PACKAGE_PACKAGES=(scdoc debhelper dpkg-dev fakeroot lintian debootstrap)
readonly PACKAGE_PACKAGES_ALL=(rpm rpmlint debugedit elfutils systemd-container)
readonly ARM64_PACKAGES=(mmdebstrap g++-aarch64-linux-gnu qemu-user-static)
readonly IMAGE_PACKAGES=(mmdebstrap buildah skopeo)

# Tests that say something about another processor: shared memory, words, keys, arithmetic.
readonly ARM64_TESTS=(abi base state prefix endpoints latency libclient libbody)
readonly ARM64_TESTS_QUICK=(abi base state)

# What a mirror that hangs may cost.
readonly PACKAGE_SECONDS_MAX=900

# Packages of the sources as they are, into dist/.
dev_package() {
  local flags=() tested=no image=no if_possible=no option
  for option in "$@"; do
    case $option in
      --quick) flags=(--quick) ;;
      --image) image=yes ;;
      --test) tested=yes ;;
      --if-possible) if_possible=yes ;;
      *)
        die "package: unknown option $option; there are --quick, --image, --test and --if-possible"
        ;;
    esac
  done
  need "${BUILD_PACKAGES[@]}"
  package_needs "${PACKAGE_PACKAGES[@]}" || return 0
  rm -rf dist
  say "Debian packages"
  packaging/build_deb.sh . build/package/deb dist "${flags[@]}"
  if [[ ${#flags[@]} -gt 0 ]]; then
    [[ $tested == no ]] || package_step test/deb.sh dist build/package/test
  else
    package_needs "${PACKAGE_PACKAGES_ALL[@]}" || return 0
    say "RPM packages"
    packaging/build_rpm.sh . build/package/rpm dist build/package/deb
    if [[ $tested == yes ]]; then
      package_step test/deb.sh dist build/package/test --boot
      package_step test/rpm.sh dist build/package/rpm/older build/package/test
    fi
  fi
  if [[ $image == yes ]]; then
    package_needs "${IMAGE_PACKAGES[@]}" || return 0
    say "an OCI image"
    package_step container/build_image.sh dist build/package/image dist
    if [[ $tested == yes && -f dist/rootfs.tar ]]; then
      package_step test/image.sh dist build/package/test
    fi
  fi
  finish package "${flags:+to try, not to ship: }what was made is in dist/"
}

# package_needs PACKAGE...: installs them; with --if-possible, fails with a word where it cannot.
package_needs() {
  if [[ $if_possible == no ]]; then
    need "$@"
  elif ! (need "$@"); then
    finish package "skipped: this machine cannot get ${*}"
    return 1
  fi
}

# package_step SCRIPT ARGUMENT...: one of packaging/; what this machine cannot do says why. With
# --if-possible a step that fails is tried once more, and one that waits for a mirror is given up:
# what a busy machine or a slow network may be behind is not the packages' fault.
package_step() {
  local result=0 before=()
  if [[ $if_possible == yes ]]; then before=(timeout --foreground "$PACKAGE_SECONDS_MAX"); fi
  "${before[@]}" "packaging/$1" "${@:2}" || result=$?
  if [[ $if_possible == yes && $result -ne 0 && $result -ne 77 && $result -ne 124 ]]; then
    say "$1 failed ($result); once more"
    result=0
    "${before[@]}" "packaging/$1" "${@:2}" || result=$?
  fi
  if [[ $if_possible == yes && $result -eq 124 ]]; then
    say "skipped: $1 took more than $PACKAGE_SECONDS_MAX s here"
    return 0
  fi
  [[ $result -eq 0 || $result -eq 77 ]] || die "package: $1 failed"
}

# Cross-compiled, and the unit tests run by qemu. What qemu cannot do for them is named in
# packaging/arm64/run.sh.
dev_arm64() {
  local package library=() folder failed=() tests=("${ARM64_TESTS[@]}")
  local targets=(pickd pickctl pickd_client_shared pickd_body_shared)
  case ${1:-} in
    '') ;;
    --quick)
      tests=("${ARM64_TESTS_QUICK[@]}")
      targets=()
      ;;
    *) die "arm64: unknown option $1; there is --quick" ;;
  esac
  need "${BUILD_PACKAGES[@]}" "${ARM64_PACKAGES[@]}"
  for package in "${BUILD_PACKAGES[@]}"; do
    if [[ $package == lib*-dev || $package == nlohmann* ]]; then library+=("$package"); fi
  done
  say "arm64 libraries"
  packaging/arm64/make_sysroot.sh build/arm64-sysroot "${library[@]}"
  build arm64 "${targets[@]}" "${tests[@]/#/test_}"
  for folder in "${tests[@]}"; do
    say "testing $folder under qemu"
    packaging/arm64/run.sh "build/arm64/bin/test_$folder" || failed+=("$folder")
  done
  [[ ${#failed[@]} -eq 0 ]] || die "arm64: FAILED: ${failed[*]}"
  finish arm64 "passed: ${tests[*]}"
}
