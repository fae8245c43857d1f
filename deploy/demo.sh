#!/usr/bin/env bash
# Shows Systole on one machine: draws flowers, packs them into TFRecord shards, serves the shards, and
# trains a small network on eight emulated cores. The last line is `validation accuracy 0.NNN`.
#
#   deploy/demo.sh [DIR]   DIR gets the data and the server's log (default: build/demo)
#
# First installs missing Debian packages, except those that only tests need. Uses sudo for this
# unless you are root. A second run reuses the build and the packed data. To draw new flowers, delete
# DIR first. When the script ends or is interrupted, it also ends the server that it started.
set -euo pipefail

if [[ $# -gt 1 || ${1:-} == -* ]]; then
  echo "usage: $0 [DIR]" >&2
  exit 2
fi
readonly caller_dir=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
dir=${1:-build/demo}
[[ $# -eq 0 || $dir == /* ]] || dir=$caller_dir/$dir
readonly dir
readonly build=build/programs
readonly systole=$build/systole
readonly data=$dir/data

server_pid=
train_pid=

# Sends TERM, and KILL if the process still runs 15 s later. (The server drains for up to 10 s.)
stop() {
  local pid=$1
  [[ -n $pid ]] || return 0
  kill -TERM "$pid" 2>/dev/null || true
  for _ in {1..150}; do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  kill -KILL "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || true
}

clean_up() {
  local status=$?
  trap - EXIT INT TERM HUP
  stop "$train_pid"
  stop "$server_pid"
  exit "$status"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

say() { echo "--- $*" >&2; }

say "packages and build"
deploy/install_dependencies.sh >&2
cmake --preset programs >/dev/null </dev/null
# The build's progress is shown on a terminal only. A log gets only warnings and errors.
quiet=()
[[ -t 2 ]] || quiet=(-- --quiet)
cmake --build "$build" -j "$(nproc)" --target systole systole-server ${quiet[@]+"${quiet[@]}"} >&2 </dev/null

# 3,625 images, a fifth of them for validation: 2,900 to train on, 725 to test on.
if [[ ! -e $data/complete ]]; then
  say "drawing and packing flowers into $data"
  rm -rf "$data"
  mkdir -p "$data"
  "$systole" make-flowers "$data/images" --images 3625 --seed 1
  "$systole" pack "$data/images" "$data/flowers" --shards 16 --resize-short 80 --validation 0.2
  rm -rf "$data/images"
  touch "$data/complete"
fi

say "server (log: $dir/server.log)"
rm -f "$dir/port"
"$build/systole-server" --listen 127.0.0.1:0 --port-file "$dir/port" \
  --dataset "flowers=$data/flowers-train-*.tfrecord" \
  --dataset "flowers-validation=$data/flowers-validation-*.tfrecord" \
  >"$dir/server.log" 2>&1 </dev/null &
server_pid=$!
for _ in {1..600}; do
  [[ -s $dir/port ]] && break
  if ! kill -0 "$server_pid" 2>/dev/null; then
    say "the server ended:"
    cat "$dir/server.log" >&2
    exit 1
  fi
  sleep 0.05
done
if [[ ! -s $dir/port ]]; then
  say "the server wrote no port within 30 s"
  cat "$dir/server.log" >&2
  exit 1
fi

say "training on eight emulated cores"
# Training runs in the background, so that a signal to this script is handled at once.
"$systole" train --server "127.0.0.1:$(<"$dir/port")" --spec deploy/specs/flowers.textproto \
  --eval-spec deploy/specs/flowers-eval.textproto --model deploy/models/flowers-cnn.textproto \
  --epochs 5 --report "$dir/report.html" </dev/null >"$dir/report.txt" &
train_pid=$!
status=0
wait "$train_pid" || status=$?
train_pid=
if [[ $status -ne 0 ]]; then
  say "training failed with exit status $status; the server's log:"
  tail -n 20 "$dir/server.log" >&2
  exit "$status"
fi

say "stopping the server (the report stays in $dir/report.txt, as a page in $dir/report.html)"
stop "$server_pid"
server_pid=
cat "$dir/report.txt"
# The report's last line must be the accuracy line that the beginning of this file describes.
tail -n 1 "$dir/report.txt" | grep -Eqx 'validation accuracy [01]\.[0-9]{3}'
