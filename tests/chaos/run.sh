#!/usr/bin/env bash
# Breaks servers, networks, storage and peers on purpose, and compares every feed with the
# undisturbed run. Builds what it needs. tests/chaos/README.md says what each scenario does.
#
#   tests/chaos/run.sh                   everything but the soak, under 10 minutes; as root
#   tests/chaos/run.sh --quick           a part of it, under 3 minutes, the same each time; without
#                                        `partition`
#   tests/chaos/run.sh --soak [SECONDS]  random faults for this time (600): memory must not grow
#   tests/chaos/run.sh --seed N [..]     repeats a failure, which names its seed
#   tests/chaos/run.sh [..] SCENARIO..   only these: peers, security, storage, network, servers,
#                                        feeds, overload, costly, strangers, verdict, partition
#
# SYSTOLE_CHAOS_PRESET is the build to use (default: release; asan is another).
set -euo pipefail

amount=full
scenarios=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    --quick) amount=quick ;;
    --soak)
      scenarios+=(soak)
      if [[ ${2:-} =~ ^[0-9]+$ ]]; then
        export SYSTOLE_CHAOS_SOAK=$2
        shift
      fi
      ;;
    --seed)
      export SYSTOLE_CHAOS_SEED=${2:?--seed needs a number}
      shift
      ;;
    peers | security | storage | network | servers | feeds | overload | costly | strangers | verdict | partition) scenarios+=("$1") ;;
    *)
      sed -n '2,14s/^# \{0,1\}//p' "$0" >&2
      exit 2
      ;;
  esac
  shift
done
programs=("${scenarios[@]/#/chaos_}")
if [[ ${#scenarios[@]} -eq 0 ]]; then
  programs=(chaos_programs)  # All programs, also those of scenarios that run only if they are named.
  scenarios=(peers security storage network servers feeds overload costly strangers verdict)
  [[ $amount == quick ]] || scenarios+=(partition)
fi
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
readonly preset=${SYSTOLE_CHAOS_PRESET:-release}
export SYSTOLE_CHAOS=$amount
# By default the quick part has the same faults each time (seed 1).
[[ $amount == full ]] || : "${SYSTOLE_CHAOS_SEED:=1}"
export SYSTOLE_CHAOS_SEED=${SYSTOLE_CHAOS_SEED:-$((RANDOM << 15 | RANDOM))}
# The options are those of tests/CMakeLists.txt: the exit code of a sanitizer's report differs from
# the codes of our programs.
export ASAN_OPTIONS=${ASAN_OPTIONS:-allocator_may_return_null=1:exitcode=99}

cmake --preset "$preset" >/dev/null </dev/null
cmake --build "build/$preset" -j "${SYSTOLE_JOBS:-$(nproc)}" --target "${programs[@]}" </dev/null
echo "seed $SYSTOLE_CHAOS_SEED"
for scenario in "${scenarios[@]}"; do
  if ! "build/$preset/tests/chaos_$scenario" --gtest_brief=1 </dev/null; then
    words=" $scenario"
    [[ $amount == full ]] || words=" --$amount$words"
    [[ $scenario != soak ]] || words=" --soak ${SYSTOLE_CHAOS_SOAK:-}"
    echo "=== repeat it with: tests/chaos/run.sh --seed $SYSTOLE_CHAOS_SEED$words" >&2
    exit 1
  fi
done
