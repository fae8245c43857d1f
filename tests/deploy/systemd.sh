#!/usr/bin/env bash
# Checks deploy/systemd: systemd's tools read the units, and the server does what the units say. No systemd
# runs; the test itself acts as the service manager.
#
#   tests/deploy/systemd.sh BUILD_DIR   such as build/release: where systole and systole-server are
#
# Needs root, because the server runs as another user. Needs systemd-analyze (Debian's package systemd). The
# Python package for the filter of system calls comes from PyPI, once. Everything else lies in a temporary
# folder, which is gone when the script ends. Exit code: 0 if every check passed.
set -euo pipefail

if [[ $# -ne 1 || $1 == -* ]]; then
  echo "usage: $0 BUILD_DIR" >&2
  exit 2
fi
build=$(realpath -- "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if [[ $EUID -ne 0 ]]; then
  echo "$0: run it as root: the server runs as a user that owns nothing" >&2
  exit 3
fi
for program in systemd-analyze setpriv openssl; do
  command -v "$program" >/dev/null && continue
  echo "$0: there is no $program; install Debian's packages systemd, util-linux and openssl" >&2
  exit 3
done
readonly tools=$PWD/build/systemd
work=$(mktemp -d /tmp/systole-systemd.XXXXXX)
readonly work
clean_up() {
  local status=$?
  trap - EXIT INT TERM HUP
  rm -rf "$work"
  exit "$status"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Makes the Python environment, also if an interrupted run has left an incomplete one.
if [[ ! -e $tools/env/complete ]]; then
  python3 -m venv --clear "$tools/env"
  "$tools/env/bin/pip" install -q pyseccomp==0.1.2 PyYAML==6.0.3 </dev/null
  touch "$tools/env/complete"
fi
readonly python=$tools/env/bin/python

"$build/systole" feed --help >/dev/null  # Fails if there is no build.
"$python" -B tests/deploy/check_units.py --build "$build" --work "$work" </dev/null
"$python" -B tests/deploy/run_units.py --build "$build" --work "$work" </dev/null
