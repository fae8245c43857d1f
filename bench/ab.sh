#!/usr/bin/env bash
# Compares two commits: builds both and runs their benchmarks in turns.
#
#   bench/ab.sh REV1 REV2 [FILTER]   FILTER is a regular expression for the benchmarks' names (BM_..)
#
#   bench/ab.sh main HEAD BM_Wire    how this branch changes the speed of the wire
#
# Runs the benchmarks of each commit five times, in turns (A B A B ..). Each run measures as much as
# `bench/run.sh --quick`. For each figure the script prints both medians, and the median, min and
# max of the ratio B / A. The commits are checked out and built under a temporary folder, which is
# removed at the end. The script does not change the working tree.
set -euo pipefail

readonly runs=5
if [[ $# -lt 2 || $# -gt 3 || $1 == -* ]]; then
  echo "usage: $0 REV1 REV2 [FILTER]   such as: $0 main HEAD BM_Wire" >&2
  exit 2
fi
readonly filter=${3:-.}
readonly jobs=${SYSTOLE_JOBS:-$(nproc)}
cd "$(dirname "${BASH_SOURCE[0]}")/.."

declare -A revision
for side in A B; do
  name=$1
  shift
  if ! revision[$side]=$(git rev-parse --verify --quiet "$name^{commit}"); then
    echo "$0: '$name' is not a commit of this repository" >&2
    exit 2
  fi
done
readonly revision

work=$(mktemp -d)
clean_up() {
  for side in A B; do
    git worktree remove --force "$work/$side" 2>/dev/null || true
  done
  rm -rf "$work"
  git worktree prune
}
trap clean_up EXIT

for side in A B; do
  echo "building $side = $(git log -1 --format='%h %s' "${revision[$side]}")" >&2
  git worktree add --quiet --detach "$work/$side" "${revision[$side]}"
  {
    (cd "$work/$side" && cmake --preset release)
    # CMake wrote this file when it configured: one benchmark program a line.
    mapfile -t programs <"$work/$side/build/release/bench/benchmarks.txt"
    cmake --build "$work/$side/build/release" -j "$jobs" --target "${programs[@]##*/}"
  } >"$work/$side.log" 2>&1 </dev/null || {
    tail -30 "$work/$side.log" >&2
    echo "$0: $side = ${revision[$side]} does not build" >&2
    exit 1
  }
  # The benchmarks of this side, one a line: the program and the benchmark's name.
  for program in "${programs[@]}"; do
    "$program" --benchmark_filter="$filter" --benchmark_list_tests 2>/dev/null |
      sed "s|^|${program##*/} |" || true
  done | sort >"$work/$side.names"
done

comm -3 "$work/A.names" "$work/B.names" >"$work/lacking"
if [[ -s "$work/lacking" ]]; then
  echo "left out, because only A (left) or only B (right) has them:" >&2
  cat "$work/lacking" >&2
fi
# The lines that are in both files: the benchmarks that both commits have.
comm -12 "$work/A.names" "$work/B.names" >"$work/common"
if [[ ! -s "$work/common" ]]; then
  echo "$0: the two commits have no benchmark in common that matches '$filter'" >&2
  exit 1
fi
mapfile -t common < <(cut -d ' ' -f 1 "$work/common" | sort -u)

export SYSTOLE_BENCH=quick
for program in "${common[@]}"; do
  # A regular expression that matches exactly the program's common benchmarks. ($filter may match
  # others, too.) The names are escaped, because a name may hold characters that have a meaning in a regular expression.
  names=$(sed -n "s/^$program //p" "$work/common" | sed 's/[][().*+?^$|{}\\]/\\&/g' | paste -sd '|')
  for ((run = 1; run <= runs; ++run)); do
    for side in A B; do
      [[ ! -t 2 ]] || printf '\r\033[K%s, run %d of %d, %s' "$program" "$run" "$runs" "$side" >&2
      SYSTOLE_BENCH_RESULTS=$work/$side.jsonl "$work/$side/build/release/bench/$program" \
        --benchmark_filter="^($names)\$" >"$work/$side.log" 2>&1 </dev/null || {
        cat "$work/$side.log" >&2
        echo "$0: $program of $side = ${revision[$side]} failed" >&2
        exit 1
      }
    done
  done
  [[ ! -t 2 ]] || printf '\r\033[K' >&2
done
for side in A B; do
  if [[ ! -e $work/$side.jsonl ]]; then
    echo "$0: $side = ${revision[$side]} reported no figure: no benchmark that matches '$filter'" \
      "is compared with a ceiling (bench/README.md), or the commit is older than bench/rounds.h" >&2
    exit 1
  fi
done
python3 bench/compare.py "$work/A.jsonl" "${revision[A]:0:12}" "$work/B.jsonl" "${revision[B]:0:12}"
