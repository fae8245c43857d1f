#!/usr/bin/env bash
# Makes the pictures of the documentation, deploy/images/*.png.
#
#   deploy/make_images.sh [REPORT.html]   REPORT.html is the page of a training run. Default: the
#                                         page of deploy/demo.sh. If there is no such page, this
#                                         script runs demo.sh
#
# training-report.png is the upper part of REPORT.html. statusz.png is the page of a server while a
# feed of the demo's data runs. peers.png shows the table in bench/README.md. This script needs
# chromium and Python 3 (deploy/install_dependencies.sh --tests).
set -euo pipefail

if [[ $# -gt 1 || ${1:-} == -* ]]; then
  echo "usage: $0 [REPORT.html]" >&2
  exit 2
fi
report=$(realpath "${1:-$(dirname "${BASH_SOURCE[0]}")/../build/demo/report.html}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [[ $# -eq 0 && ! -e $report ]]; then
  deploy/demo.sh
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# shoot ADDRESS WIDTH HEIGHT NAME: takes a picture of the upper left part of a page. The browser does
# not use the user's settings. The browser's sandbox is off, because root may not use a sandbox.
# This is safe, because the pages are our own.
shoot() {
  HOME=$scratch chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
    --no-first-run --hide-scrollbars --force-color-profile=srgb --user-data-dir="$scratch/profile" \
    --window-size="$2,$3" --force-device-scale-factor=1 \
    --blink-settings=preferredColorScheme=1 --screenshot="$PWD/deploy/images/$4.png" \
    "$1" >"$scratch/log" 2>&1 </dev/null || { cat "$scratch/log" >&2; exit 1; }
  echo "deploy/images/$4.png: $(stat -c %s "deploy/images/$4.png") bytes"
}

mkdir -p deploy/images
shoot "file://$report" 1200 1165 training-report

# Starts a server of the demo's data, and a feed. The server makes pictures of examples only after
# somebody has opened the page. So this script opens the page twice.
readonly build=build/programs data=build/demo/data
"$build/systole-server" --listen 127.0.0.1:0 --port-file "$scratch/port" \
  --admin 127.0.0.1:0 --admin-port-file "$scratch/admin-port" \
  --dataset "flowers=$data/flowers-train-*.tfrecord" \
  --dataset "flowers-validation=$data/flowers-validation-*.tfrecord" >"$scratch/log" 2>&1 &
server=$!
trap 'kill "$server" ${feed:-} 2>/dev/null || true; rm -rf "$scratch"' EXIT
while [[ ! -s $scratch/port ]]; do
  kill -0 "$server" || { cat "$scratch/log" >&2; exit 1; }
  sleep 0.1
done
"$build/systole" feed --server "127.0.0.1:$(<"$scratch/port")" \
  --spec deploy/specs/flowers.textproto --steps 1000000 >"$scratch/feed" 2>&1 </dev/null &
feed=$!
page=http://127.0.0.1:$(<"$scratch/admin-port")/statusz
sleep 30
python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1]).read()' "$page"
sleep 6
shoot "$page" 1200 1165 statusz

python3 bench/peers/picture.py "$scratch/peers.svg"
shoot "file://$scratch/peers.svg" 720 296 peers
