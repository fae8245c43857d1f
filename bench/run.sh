#!/usr/bin/env bash
# Builds the release preset and runs every benchmark of bench/.
#
#   bench/run.sh [FILTER]   full runs; FILTER is a regular expression for the benchmarks' names.
#                           Results also go to bench/results/<binary>.json.
#   bench/run.sh --smoke    each once and briefly: shows that none has rotted, measures nothing
set -euo pipefail

smoke=0
filter=.
case "${1:-}" in
  --smoke) smoke=1 ;;
  -*)
    echo "usage: $0 [--smoke | FILTER]" >&2
    exit 2
    ;;
  ?*) filter=$1 ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
jobs=${SYSTOLE_JOBS:-$(nproc)}

cmake --preset release >/dev/null </dev/null
cmake --build build/release -j "$jobs" </dev/null
# Written by bench/CMakeLists.txt at configuration: one benchmark binary a line.
mapfile -t binaries <build/release/bench/benchmarks.txt
if [[ ${#binaries[@]} -eq 0 ]]; then
  echo "bench/CMakeLists.txt declares no benchmark" >&2
  exit 1
fi
for binary in "${binaries[@]}"; do
  echo "--- $(basename "$binary")"
  if [[ $smoke -eq 1 ]]; then
    "$binary" --benchmark_min_time=0.01 </dev/null
  else
    mkdir -p bench/results
    "$binary" --benchmark_filter="$filter" --benchmark_out_format=json \
      --benchmark_out="bench/results/$(basename "$binary").json" </dev/null
  fi
done
