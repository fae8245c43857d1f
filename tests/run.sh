#!/usr/bin/env bash
# Builds Systole from nothing and tests it. Stops at the first failure and says how to repeat it.
#
#   tests/run.sh             installs what is missing, builds the release preset, runs its tests and those
#                            of the Python package
#   tests/run.sh --all       all the sections below. chaos, prometheus, python and torch mostly wait for
#                            sockets and clocks, so they run beside asan, tsan and fuzz
#   tests/run.sh SECTION..   only these sections, one after the other:
#     format    clang-format over every source; makes the reference of the installed headers, without a warning
#     build     the release build, without a warning
#     release   the same build, and its tests
#     bench     builds every benchmark and runs it once, briefly
#     chaos     faults on purpose, the quick part (tests/chaos/run.sh)
#     prometheus  alerts and dashboard, with Debian's Prometheus beside a real server
#     python    the Python package, installed as pip does it, with NumPy and JAX; shards in a bucket of
#               moto, a server of AWS's interfaces; the wheel on a system without Debian's libraries;
#               and the client that is written from the .proto files alone
#     torch     the Python package with Debian's PyTorch
#     asan      AddressSanitizer and UndefinedBehaviorSanitizer over everything, in a build by clang with
#               thread-safety analysis, where warnings are errors
#     tsan      ThreadSanitizer over core
#     fuzz      every fuzzer over the same inputs each time
#     tidy      clang-tidy (checks: .clang-tidy)
#
#   tests/run.sh search      every fuzzer over new inputs, for an equal share of SYSTOLE_FUZZ_SECONDS
#                            (default: 600). What it finds depends on chance, so --all leaves it out. If
#                            an input fails, add it to the corpus and mend the bug
#
#   tests/run.sh dev         builds the preset dev, in which each source and header is compiled alone, so
#                            that none lacks an include. The other builds compile sources together, in
#                            half the time; --all leaves `dev` out
#
#   tests/run.sh buckets     reads shards from other projects' servers of S3 and of Cloud Storage
#                            (versitygw, fake-gcs-server), and packs into versitygw. Builds both servers,
#                            which needs Go 1.24 or newer; --all leaves it out
#
#   tests/run.sh frameworks  the Python package with Ray, on a cluster of several nodes on this machine, and
#                            with the current PyTorch, TensorFlow and Grain: takes gigabytes from the package
#                            index, so --all leaves it out
#
#   tests/run.sh deploy      deploy/kubernetes: renders it, compares it with Kubernetes' schemas, and runs its
#                            containers' commands without a cluster. deploy/systemd: the units, and the
#                            server as they run it. deploy/slurm: a job, with stubs for Slurm's commands.
#                            deploy/Containerfile: builds the images and starts them. Needs root, and takes
#                            packages from PyPI and Debian's mirror, so --all leaves it out. On a machine
#                            without kubectl, also takes Kustomize from Go's proxy
#
#   tests/run.sh aarch64     cross-builds for aarch64, and shows under QEMU that feeds on aarch64 have the bytes
#                            of feeds on x86-64, also with the wheel. Takes arm64 packages of Debian and NumPy
#                            from PyPI, and QEMU is slow, so --all leaves it out
#
#   tests/run.sh wheels      the self-contained wheels for all versions of Python, also on Debian 11 and 13,
#                            which debootstrap takes from Debian's archive. Needs root, and interpreters
#                            that Debian 12 does not have, so --all leaves it out
#
# SYSTOLE_PYTHONS names the interpreters for `wheels` (default: python3.10 /usr/bin/python3 python3.12).
# SYSTOLE_JOBS is how many compilers run at a time, and how many fuzzers (default: the number of CPUs). Twice
# as many tests run at a time.
set -euo pipefail

# The sections to run, in four rows. The sections of a row run one after the other. The row `first` runs
# alone, and so does `last`. Between them `waiting` and `computing` run side by side: the row that mostly
# waits leaves the processors to the row that computes.
first=() waiting=() computing=() last=()
case "$*" in
  "") first=(build) waiting=(python) computing=(release) ;;
  --all)
    first=(format release bench)
    waiting=(chaos prometheus python torch)
    computing=(asan tsan fuzz)
    last=(tidy)
    ;;
  *) first=("$@") ;;
esac
readonly sections=("${first[@]}" "${waiting[@]}" "${computing[@]}" "${last[@]}")
packages=--tests
for section in "${sections[@]}"; do
  case "$section" in
    build | release | chaos | bench | prometheus | python | torch | dev | buckets | frameworks | wheels | deploy | aarch64) ;;
    format | asan | tidy | tsan | fuzz | search) packages=--checks ;;
    *)
      echo "usage: tests/run.sh [--all | SECTION..], where SECTION is one of: format build release bench chaos prometheus python torch asan tsan fuzz tidy search dev buckets frameworks wheels deploy aarch64" >&2
      exit 2
      ;;
  esac
done
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly jobs=${SYSTOLE_JOBS:-$(nproc)}

# The words that run() puts before each command, such as `nice -n 5`.
priority=()

# Runs a command without stdin. If it fails, says how to repeat the section and ends the script with
# the command's status.
run() {
  local status=0
  printf '+'
  printf ' %q' "$@"
  printf '\n'
  ${priority[@]+"${priority[@]}"} "$@" </dev/null || status=$?
  [[ $status -eq 0 ]] && return
  {
    echo
    echo "=== $section: FAILED after $((SECONDS - begin)) s with exit status $status"
    echo "=== repeat it with: $(printf '%q' "$PWD/tests/run.sh") $section"
  } >&2
  exit "$status"
}

# Builds a preset, unless this run of the script has built it already. So the row `first` can build what
# both of the next rows need: two rows must not build in the same folder at the same time.
declare -A built=()
build() {
  [[ -z ${built[$1]:-} ]] || return 0
  run cmake --preset "$1"
  run cmake --build "build/$1" -j "$jobs"
  built[$1]=yes
}

build_and_test() {
  build "$1"
  # Runs two tests per processor, because many tests wait.
  run ctest --preset "$1" -j "$((jobs * 2))" --no-tests=error
}

check_format() {
  find core proto server client tests bench \( -name '*.cc' -o -name '*.h' \) -print0 | sort -z |
    xargs -0 -n 16 -P "$jobs" clang-format --dry-run -Werror
}

section_format() {
  run check_format
  run cmake --preset programs
  run cmake --build build/programs --target docs
}
section_build() { build release; }
section_release() { build_and_test release; }
section_chaos() { run tests/chaos/run.sh --quick; }
section_bench() { run bench/run.sh --smoke; }
section_python() {
  run tests/client/python/run.sh
  run tests/client/python/run.sh buckets
  run tests/client/python/wheel.sh
  # tests/interop/run.sh uses the programs of the release build.
  build release
  run tests/interop/run.sh build/release
}
section_prometheus() {
  build release
  run tests/deploy/prometheus.sh build/release
}
section_torch() { run tests/client/python/run.sh torch; }
section_buckets() { run tests/client/python/bucket_servers.sh; }
section_wheels() {
  local pythons
  read -ra pythons <<<"${SYSTOLE_PYTHONS:-python3.10 /usr/bin/python3 python3.12}"
  run tests/client/python/wheel_systems.sh "${pythons[@]}"
}
section_frameworks() {
  run tests/client/python/run.sh ray
  run tests/client/python/run.sh frameworks
}
section_deploy() {
  build release
  run tests/deploy/kubernetes.sh build/release
  run tests/deploy/systemd.sh build/release
  run tests/deploy/slurm.sh build/release
  run tests/deploy/container.sh build/release
}
section_aarch64() {
  build release
  run tests/deploy/aarch64.sh build/release
}
section_tidy() {
  # The builds make the message headers that the sources include, and the lists of sources.
  # clang-tidy checks the sources of a room together, as they are compiled, because reading their
  # headers takes most of the time. Tests and benchmarks are left out, because reading gMock's
  # templates would take even longer.
  build asan
  run tests/tidy.py build/asan '(core|proto|server|client)/' "$jobs"
  run tests/client/python/install.sh jax
  run tests/tidy.py build/package client/python/CMakeFiles/_systole.dir/ "$jobs"
}
section_asan() { build_and_test asan; }
section_tsan() { build_and_test tsan; }
section_fuzz() { run tests/fuzz/run.sh --fixed; }
section_dev() { build dev; }
section_search() { run tests/fuzz/run.sh "${SYSTOLE_FUZZ_SECONDS:-600}"; }

# The CPU time, in seconds, of all commands that the shell with this process id has waited for so far.
cpu_seconds() {
  local stat
  read -ra stat <"/proc/$1/stat"
  echo $(((stat[15] + stat[16]) / $(getconf CLK_TCK)))
}

run_sections() {
  local section begin cpu_begin shell=$BASHPID
  for section in "$@"; do
    begin=$SECONDS
    cpu_begin=$(cpu_seconds "$shell")
    echo "=== $section (at $begin s)"
    "section_$section"
    echo "=== $section: passed in $((SECONDS - begin)) s, $(($(cpu_seconds "$shell") - cpu_begin)) s of CPU time"
    echo
  done
}

# Runs two rows side by side. Prints the waiting row's output after the computing row has ended. If
# a computing section fails, the waiting row is ended. The waiting row has few processes at a time, and the
# computing row always has many tests that it can start. So the waiting row has priority: both then end at about
# the same time.
run_side_by_side() {
  local log=build/waiting_sections.log row status=0
  mkdir -p build
  set -m  # Gives the row a process group of its own, which the trap can end.
  run_sections "${waiting[@]}" >"$log" 2>&1 &
  row=$!
  set +m
  # shellcheck disable=SC2064
  trap "kill -- -$row 2>/dev/null || true" EXIT
  priority=(nice -n 5)
  run_sections "${computing[@]}"
  priority=()
  wait "$row" || status=$?
  trap - EXIT
  cat "$log"
  [[ $status -eq 0 ]] || exit "$status"
}

section_packages() { run deploy/install_dependencies.sh "$packages"; }

run_sections packages "${first[@]}"
[[ ${#waiting[@]} -eq 0 ]] || run_side_by_side
run_sections "${last[@]}"
echo "=== ${#sections[@]} sections passed in $SECONDS s: ${sections[*]}"
