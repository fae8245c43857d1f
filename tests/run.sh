#!/usr/bin/env bash
# Builds Systole and tests it. At the first failure the script ends, and says how to repeat the section
# that failed.
#
#   tests/run.sh             installs missing packages, builds the preset `release`, and runs the tests of
#                            this build and of the Python package
#   tests/run.sh --all       the sections from `format` to `tidy`. chaos, prometheus, python and torch mostly
#                            wait for sockets and clocks, so they run beside asan, tsan and fuzz
#   tests/run.sh SECTION..   the named sections, one after the other:
#     format    checks with clang-format that every source is formatted, and makes the reference of the
#               installed headers, which must give no warning
#     build     the build `release`, which must give no warning
#     release   the same build, and its tests
#     bench     builds every benchmark and runs it once, briefly
#     chaos     the quick part of tests/chaos/run.sh, which breaks servers, networks and storage on purpose
#     prometheus  alerts and dashboard, with Debian's Prometheus and a real server
#     python    the Python package, installed as pip does it, with NumPy and JAX; shards in a bucket of
#               moto, a server with AWS's interfaces; the wheel on a system without Debian's libraries;
#               and tests/interop, a client that was written from the .proto files alone
#     torch     the Python package with Debian's PyTorch
#     asan      all tests to which sanitizers mean something, with AddressSanitizer and
#               UndefinedBehaviorSanitizer. clang makes this build with thread-safety analysis, and treats
#               warnings as errors
#     tsan      the tests of core whose code has several threads, with ThreadSanitizer
#     fuzz      every fuzzer, with inputs that are the same in each run
#     tidy      clang-tidy (checks: .clang-tidy)
#
# --all leaves out the other sections:
#
#   tests/run.sh search      looks for new inputs with every fuzzer, each for an equal share of
#                            SYSTOLE_FUZZ_SECONDS (default: 600). The result depends on chance. If an input
#                            fails, add the input to the corpus and mend the bug
#
#   tests/run.sh dev         builds the preset `dev`, which compiles each source and each header alone, so
#                            that a missing include is an error. The other builds compile several sources
#                            together, which takes half the time
#
#   tests/run.sh buckets     reads shards from servers for S3 and Cloud Storage by other projects
#                            (versitygw, fake-gcs-server), and packs shards into versitygw. Builds both
#                            servers, which needs Go 1.24 or newer
#
#   tests/run.sh frameworks  the Python package with Ray, on a cluster of several nodes on this machine, and
#                            with the current PyTorch, TensorFlow and Grain. Takes gigabytes from the package
#                            index
#
#   tests/run.sh deploy      checks these parts of deploy/:
#                              kubernetes     renders the manifests, compares them with Kubernetes' schemas,
#                                             and runs the containers' commands without a cluster
#                              systemd        checks the units, and runs the server as the units say
#                              slurm          runs jobs, with stubs for Slurm's commands
#                              Containerfile  builds the images and starts them
#                            Needs root, and takes packages from PyPI and Debian's mirror. On a machine
#                            without kubectl, also takes Kustomize from Go's proxy
#
#   tests/run.sh aarch64     cross-builds for aarch64, and checks under QEMU, which is slow, that feeds on
#                            aarch64 have the same bytes as feeds on x86-64, also feeds of the wheel. Takes
#                            arm64 packages from Debian, and NumPy from PyPI
#
#   tests/run.sh wheels      the self-contained wheels for all versions of Python, also on Debian 11 and 13,
#                            which debootstrap takes from Debian's archive. Needs root, and interpreters
#                            that Debian 12 does not have
#
# SYSTOLE_PYTHONS names the interpreters for `wheels` (default: python3.10 /usr/bin/python3 python3.12).
# SYSTOLE_JOBS is how many compilers or fuzzers run at a time (default: the number of CPUs). Twice as many tests
# run at a time.
set -euo pipefail

# The sections to run, in four rows. The sections of a row run one after the other. First the row `first`
# runs alone. Then `waiting` and `computing` run side by side: `waiting` mostly waits, and leaves the
# processors to `computing`. At the end `last` runs alone.
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

# Builds a preset, unless this run of the script has built it already. Two rows must not build in the same
# folder at the same time, so the row `first` builds what both `waiting` and `computing` need.
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
  # clang-tidy needs the list of sources and the generated message headers, which the builds make. It
  # checks the sources of a folder together, as the build compiles them, because reading their headers
  # takes most of the time. Tests and benchmarks are left out, because reading gMock's templates would
  # take even longer.
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

# Runs the rows `waiting` and `computing` side by side. Prints the output of `waiting` after `computing` has
# ended. If a section of `computing` fails, ends `waiting`. `waiting` runs few processes at a time, while
# `computing` can use all processors at any time. So `waiting` has priority: both rows then end at about the
# same time.
run_side_by_side() {
  local log=build/waiting_sections.log row status=0
  mkdir -p build
  set -m  # Gives `waiting` a process group of its own, which the trap can end.
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
