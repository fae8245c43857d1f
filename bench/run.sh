#!/usr/bin/env bash
# Builds the release preset, makes the corpora, runs every benchmark of bench/ and prints one table.
#
#   bench/run.sh [FILTER]           full runs; FILTER is a regular expression for the benchmarks'
#                                   names (BM_..). Empties bench/results/, then writes the table,
#                                   JSON, plots and each program's output there.
#   bench/run.sh --quick [FILTER]   3 rounds and a quarter of the work: too little for figures that
#                                   are published
#   bench/run.sh --smoke [FILTER]   1 round and next to no work: shows that all benchmarks run.
#                                   Prints a line for each program that ran, and no figures
#
# Exits with 0 if every benchmark ran, even if a figure missed its wanted ratio. The corpora are
# kept in $SYSTOLE_BENCH_CORPORA (default /tmp/systole-bench-corpora) for later runs.
set -euo pipefail

amount=full
filter=.
for argument in "$@"; do
  case "$argument" in
    --quick | --smoke) amount=${argument#--} ;;
    -*)
      echo "usage: $0 [--quick | --smoke] [FILTER]" >&2
      exit 2
      ;;
    *) filter=$argument ;;
  esac
done
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly build=build/release
readonly jobs=${SYSTOLE_JOBS:-$(nproc)}

cmake --preset release >/dev/null </dev/null
# `cmake --preset` wrote this file. Each line is the path of a benchmark program.
mapfile -t declared <"$build/bench/benchmarks.txt"
cmake --build "$build" -j "$jobs" --target make_corpus versions "${declared[@]##*/}" </dev/null

if [[ $amount == smoke ]]; then
  # A smoke run does not overwrite the results in bench/results/.
  results=$(mktemp -d)
  trap 'rm -rf "$results"' EXIT
  options=(--benchmark_min_time=0.01)
else
  results=$PWD/bench/results
  rm -rf "$results"
  mkdir -p "$results"
  options=()
fi
export SYSTOLE_BENCH=$amount
export SYSTOLE_BENCH_RESULTS=$results/results.jsonl
export SYSTOLE_BENCH_CORPORA=${SYSTOLE_BENCH_CORPORA:-/tmp/systole-bench-corpora}
: >"$SYSTOLE_BENCH_RESULTS"
"$build/bench/make_corpus" >/dev/null
"$build/bench/versions" >"$results/versions.json"

programs=()
for program in "${declared[@]}"; do
  if [[ -n $("$program" --benchmark_filter="$filter" --benchmark_list_tests 2>/dev/null) ]]; then
    programs+=("$program")
  fi
done
if [[ ${#programs[@]} -eq 0 ]]; then
  echo "$0: no benchmark's name matches '$filter'" >&2
  exit 1
fi

# Writes the running program, and the time that bench/run.sh has taken so far, on one line of the
# terminal. Rewrites this line once a second.
show_progress() {
  while :; do
    printf '\r\033[K[%d of %d] %s, %d:%02d in all' "$1" "${#programs[@]}" "$2" \
      $((SECONDS / 60)) $((SECONDS % 60))
    sleep 1
  done
}

# Says how many figures a program has appended to the results, and how long it took.
say_ok() {
  local name=$1 lines=$2 microseconds=$3 measured not_measured
  not_measured=$(grep -c '^{"not_measured"' <<<"$lines" || true)
  measured=$(($(grep -c . <<<"$lines" || true) - not_measured))
  printf 'ok  %-16s %3d %-7s %6.1f s%s\n' "$name" "$measured" \
    "$([[ $measured -eq 1 ]] && echo figure || echo figures)" "${microseconds}e-6" \
    "$([[ $not_measured -eq 0 ]] || echo ", $not_measured not measurable on this machine")"
}

failed=()
for i in "${!programs[@]}"; do
  name=$(basename "${programs[i]}")
  lines_before=$(wc -l <"$SYSTOLE_BENCH_RESULTS")
  begin=${EPOCHREALTIME/./}
  ticker=
  if [[ -t 2 ]]; then
    show_progress $((i + 1)) "$name" >&2 &
    ticker=$!
  fi
  status=0
  "${programs[i]}" --benchmark_filter="$filter" "${options[@]}" --benchmark_out_format=json \
    --benchmark_out="$results/$name.json" >"$results/$name.txt" 2>&1 </dev/null || status=$?
  if [[ -n $ticker ]]; then
    kill "$ticker"
    wait "$ticker" 2>/dev/null || true
    printf '\r\033[K' >&2
  fi
  if [[ $status -ne 0 ]] || grep -q '"error_occurred": true' "$results/$name.json"; then
    failed+=("$name")
    echo "=== $name failed with exit status $status; it printed:" >&2
    cat "$results/$name.txt" >&2
  elif [[ $amount == smoke ]]; then
    say_ok "$name" "$(tail -n "+$((lines_before + 1))" "$SYSTOLE_BENCH_RESULTS")" \
      $((${EPOCHREALTIME/./} - begin))
  fi
done

if [[ $amount == smoke ]]; then
  # A smoke run makes the table only to test table.py. The table is not shown, because nobody should
  # take its ratios for results.
  exec 3>/dev/null
else
  exec 3>&1
fi
python3 bench/table.py "$SYSTOLE_BENCH_RESULTS" "$results" --versions "$results/versions.json" >&3
if [[ ${#failed[@]} -gt 0 ]]; then
  echo "$0: ${#failed[@]} of ${#programs[@]} benchmarks failed: ${failed[*]}" >&2
  exit 1
fi
if [[ $amount == smoke ]]; then
  echo "smoke run: every benchmark runs; \`bench/run.sh\` says how fast"
else
  echo "results: $results"
fi
