#!/usr/bin/env bash
# Builds the fuzzers (clang, libFuzzer, AddressSanitizer) and runs them. If a fuzzer fails, the script
# fails too and says how to repeat the failure.
#
#   tests/fuzz/run.sh --fixed [NAME..]     tries the same inputs each time, for about five seconds per
#                                          fuzzer. NAME `jpeg` means jpeg_fuzzer.cc (default: all fuzzers)
#   tests/fuzz/run.sh [SECONDS [NAME..]]   searches for new inputs: SECONDS of fuzzing in all (default
#                                          120), an equal share for each fuzzer. If an input fails, add
#                                          it to tests/fuzz/corpus/NAME and mend the bug
#
# Each fuzzer starts with the inputs in tests/fuzz/corpus/NAME, and does not change this folder. At the end
# the script deletes new inputs. SYSTOLE_JOBS fuzzers run at a time (default: the number of CPUs).
# Reproducers and logs are kept in build/asan/found/.
#
# libFuzzer makes random inputs, and keeps each input that reaches new edges of the code. With --fixed, its
# inputs depend only on the seed, the number of inputs and the code. The script excludes other influences:
#   * the clock: there is no -max_total_time, and -reload=0;
#   * values that the code compares, such as pointers and times: with -use_cmp=0, libFuzzer does not copy
#     these values into its inputs;
#   * addresses, which decide the order of some tables of Abseil and protobuf: they are the same each time
#     (setarch -R, and the same environment and arguments).
# For each fuzzer that passes, the script prints a line. The line ends with a digest of the kept inputs. While
# the code does not change, this digest is the same each time, and a fuzzer that fails once always fails.
set -euo pipefail

# For each fuzzer, the number of inputs that it tries in about ten seconds on one core. --fixed tries half
# of this number.
declare -A inputs=(
  [answer]=600000 [arrivals]=60000 [bucket_list]=200000 [bucket_name]=100000 [cache_entry]=2000000 [checkpoint]=60000
  [chip]=100000 [chunk]=150000 [column_file]=800000 [compressed]=8000 [credential_answer]=50000 [example]=100000 [folder_index]=800000
  [frame_scanner]=1000000 [hash_file]=400000 [http_headers]=250000 [http_request]=100000 [http_url]=40000
  [image_index]=800000 [index]=2000000 [ini_file]=400000
  [jpeg]=9000 [labels]=60000
  [manifest]=100000 [model]=120000 [operations]=6000 [otel_pairs]=80000 [pattern]=150000 [png]=250000 [record]=9000 [restart_table]=2000000
  [resume_token]=500000 [server_file]=120000 [slot_message]=600000 [spec]=80000 [token_file]=700000
  [trace_context]=1500000
  [webdataset]=6000 [zip_record]=150000
)

fixed=0
seconds=120
if [[ ${1:-} == --fixed ]]; then
  fixed=1
  shift
elif [[ $# -gt 0 ]]; then
  seconds=$1
  shift
fi
if [[ ! $seconds =~ ^[1-9][0-9]*$ ]]; then
  echo "usage: $0 [--fixed | SECONDS] [NAME..]" >&2
  exit 2
fi
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
readonly jobs=${SYSTOLE_JOBS:-$(nproc)}
names=("$@")
if [[ ${#names[@]} -eq 0 ]]; then
  mapfile -t names < <(cd tests/fuzz && printf '%s\n' *_fuzzer.cc | sed 's/_fuzzer\.cc$//')
fi
share=$((seconds / ${#names[@]}))
[[ $share -gt 0 ]] || share=1
for name in "${names[@]}"; do
  if [[ -z ${inputs[$name]:-} ]]; then
    echo "$0: unknown fuzzer '$name': this script has no number of inputs for it" >&2
    exit 2
  fi
done

cmake --preset asan >/dev/null </dev/null
cmake --build build/asan -j "$jobs" --target "${names[@]/%/_fuzzer}" </dev/null

# The path is relative, so that a fuzzer's arguments do not depend on where this tree is.
readonly found=build/asan/found
readonly scratch=$found/new
rm -rf "$scratch"
mkdir -p "$scratch"
trap 'rm -rf "$scratch"' EXIT
touch "$scratch/begin"  # Files in $found that are older than this file are from an earlier run.
# As in the tests, a malloc that ASan refuses returns nullptr, which our code handles. By default ASan would
# end the program.
readonly asan=ASAN_OPTIONS=allocator_may_return_null=1
launcher=
if [[ $fixed -eq 1 ]]; then
  if setarch -R true 2>/dev/null; then
    launcher="setarch -R"
  else
    echo "$0: setarch -R fails here, so addresses are random and inputs differ a little" >&2
  fi
fi

# Runs one fuzzer. Prints one line if it passes, otherwise its log and reproducers.
fuzz() {
  local name=$1 status=0 begin=$SECONDS
  local program=build/asan/fuzz/${name}_fuzzer
  mkdir "$scratch/$name"
  # Sorted, because otherwise the order of the inputs could depend on the machine.
  LC_ALL=C printf '%s\n' "tests/fuzz/corpus/$name"/* | LC_ALL=C sort | paste -sd, |
    tr -d '\n' >"$scratch/$name.list"
  # The fuzzer writes new inputs to the folder.
  # shellcheck disable=SC2086  # $launcher and $2 are lists of words.
  env -i PATH=/usr/local/bin:/usr/bin:/bin "$asan" $launcher "$program" $2 -seed_inputs=@"$scratch/$name.list" -reload=0 \
    -artifact_prefix="$found/$name-" -print_final_stats=1 "$scratch/$name" \
    >"$found/$name.log" 2>&1 </dev/null || status=$?
  if [[ $status -eq 0 ]]; then
    printf 'ok  %-13s %4d s %10d inputs tried, %5d edges reached, %5d inputs new: %s\n' "$name" \
      $((SECONDS - begin)) \
      "$(sed -n 's/^stat::number_of_executed_units: *//p' "$found/$name.log")" \
      "$(sed -n 's/^#[0-9]*[[:space:]]*DONE.* cov: \([0-9]*\).*/\1/p' "$found/$name.log")" \
      "$(find "$scratch/$name" -type f | wc -l)" \
      "$(find "$scratch/$name" -type f | LC_ALL=C sort | sha256sum | cut -c 1-12)"
    return
  fi
  {
    echo "=== ${name}_fuzzer failed with exit status $status; it printed:"
    tail -n 60 "$found/$name.log"
    find "$found" -maxdepth 1 -name "$name-*" -newer "$scratch/begin" |
      while IFS= read -r reproducer; do
        echo "=== reproducer: $PWD/$reproducer"
        echo "=== repeat it with: $asan $(printf '%q %q' "$PWD/$program" "$PWD/$reproducer")"
      done
  } >&2
  return 1
}
export -f fuzz
export found scratch asan launcher

status=0
for name in "${names[@]}"; do
  if [[ $fixed -eq 1 ]]; then
    # -timeout is in seconds. Even on a slow machine, no input takes 1200 s.
    options="-seed=1 -runs=$((${inputs[$name]} / 2)) -timeout=1200 -use_cmp=0"
  else
    options="-max_total_time=$share -timeout=20"
  fi
  printf '%s\0%s\0' "$name" "$options"
done | xargs -0 -n 2 -P "$jobs" bash -c 'fuzz "$1" "$2"' fuzz || status=$?
if [[ $status -ne 0 ]]; then
  echo "$0: a fuzzer failed: see its messages above" >&2
  exit 1
fi
