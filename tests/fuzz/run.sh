#!/usr/bin/env bash
# Builds the fuzzers (clang, libFuzzer, AddressSanitizer) and runs them, each for an equal share of
# the time. Fails if one finds something, and says how to repeat it.
#
#   tests/fuzz/run.sh [SECONDS [NAME..]]   SECONDS of fuzzing in all (default 120) for every fuzzer, or
#                                          for those named (`jpeg` for jpeg_fuzzer.cc)
#
# Each starts from tests/fuzz/corpus/NAME, which stays as it is; what it adds to it is dropped at the
# end. SYSTOLE_JOBS fuzzers run at a time (default: the number of CPUs), so that on two CPUs 120
# seconds are over in some 130. Reproducers and logs are kept in build/asan/found/.
set -euo pipefail

seconds=${1:-120}
if [[ ! $seconds =~ ^[1-9][0-9]*$ ]]; then
  echo "usage: $0 [SECONDS [NAME..]]" >&2
  exit 2
fi
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
readonly jobs=${SYSTOLE_JOBS:-$(nproc)}
names=("${@:2}")
if [[ ${#names[@]} -eq 0 ]]; then
  mapfile -t names < <(cd tests/fuzz && printf '%s\n' *_fuzzer.cc | sed 's/_fuzzer\.cc$//')
fi
share=$((seconds / ${#names[@]}))
[[ $share -gt 0 ]] || share=1

cmake --preset asan >/dev/null </dev/null
cmake --build build/asan -j "$jobs" --target "${names[@]/%/_fuzzer}" </dev/null

found=$PWD/build/asan/found
mkdir -p "$found"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
touch "$scratch/begin"  # What is older in $found is of another run.
# As the tests do: where malloc would return nullptr, which our code handles, ASan ends the program.
export ASAN_OPTIONS=allocator_may_return_null=1

# Runs one fuzzer and prints one line, or what it found.
fuzz() {
  local name=$1 status=0
  local program=$PWD/build/asan/fuzz/${name}_fuzzer
  mkdir "$scratch/$name"
  # New inputs go to the first folder. An input that takes 20 s is a finding too.
  "$program" -max_total_time="$share" -timeout=20 -artifact_prefix="$found/$name-" \
    -print_final_stats=1 "$scratch/$name" "tests/fuzz/corpus/$name" \
    >"$found/$name.log" 2>&1 </dev/null || status=$?
  if [[ $status -eq 0 ]]; then
    printf 'ok  %-13s %4d s %10d inputs tried, %5d edges reached\n' "$name" "$share" \
      "$(sed -n 's/^stat::number_of_executed_units: *//p' "$found/$name.log")" \
      "$(sed -n 's/^#[0-9]*[[:space:]]*DONE.* cov: \([0-9]*\).*/\1/p' "$found/$name.log")"
    return
  fi
  {
    echo "=== ${name}_fuzzer failed with exit status $status; it printed:"
    tail -n 60 "$found/$name.log"
    find "$found" -name "$name-*" -newer "$scratch/begin" | while IFS= read -r reproducer; do
      echo "=== reproducer: $reproducer"
      echo "=== repeat it with: ASAN_OPTIONS=$ASAN_OPTIONS $(printf '%q %q' "$program" "$reproducer")"
    done
  } >&2
  return 1
}
export -f fuzz
export found scratch share

status=0
printf '%s\0' "${names[@]}" | xargs -0 -n 1 -P "$jobs" bash -c 'fuzz "$1"' fuzz || status=$?
if [[ $status -ne 0 ]]; then
  echo "$0: a fuzzer found something" >&2
  exit 1
fi
