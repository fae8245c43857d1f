#!/usr/bin/env bash
# Checks deploy/prometheus and deploy/grafana with Debian's Prometheus, beside a real server.
#
#   tests/deploy/prometheus.sh BUILD_DIR   such as build/release: where systole and systole-server are
#
# If Prometheus is not installed, its package is only unpacked, under build/prometheus, because installing
# it would start a Prometheus on this machine. Everything else lies in a temporary folder. That folder, the
# server and Prometheus are gone when the script ends, however it ends. Exit code: 0 if every check
# passed.
set -euo pipefail

if [[ $# -ne 1 || $1 == -* ]]; then
  echo "usage: $0 BUILD_DIR" >&2
  exit 2
fi
build=$(realpath -- "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
readonly unpacked=$PWD/build/prometheus
work=$(mktemp -d /tmp/systole-prometheus.XXXXXX)
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

# If the download fails, the lists of packages may be too old for the mirror. Then they are updated, and the
# download is tried again.
download() {
  (cd "$work" && apt-get download prometheus >/dev/null) && return
  local as_root=()
  [[ $EUID -eq 0 ]] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  (cd "$work" && apt-get download prometheus >/dev/null)
}
if prometheus=$(command -v prometheus) && promtool=$(command -v promtool); then
  readonly prometheus promtool
else
  if [[ ! -x $unpacked/usr/bin/promtool ]]; then
    download
    mkdir -p "$unpacked"
    dpkg-deb -x "$work"/prometheus_*.deb "$unpacked"
  fi
  readonly prometheus=$unpacked/usr/bin/prometheus
  readonly promtool=$unpacked/usr/bin/promtool
fi

"$promtool" check rules deploy/prometheus/alerts.yml
"$promtool" test rules deploy/prometheus/alerts_test.yml
"$promtool" check config deploy/prometheus/prometheus.yml
"$build/systole" pack --help >/dev/null  # Fails if there is no build.
python3 tests/deploy/scraped_server.py --build "$build" --prometheus "$prometheus" \
  --promtool "$promtool" --work "$work"
