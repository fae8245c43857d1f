#!/usr/bin/env bash
# Builds Systole for aarch64 and shows, under QEMU, that this build makes the same bytes as one for x86-64.
#
#   tests/deploy/aarch64.sh BUILD_DIR   a build on x86-64, such as build/release. The script compares this
#                                       build's programs with those of aarch64, and runs this build's tests
#                                       of tests/system with the programs of aarch64
#
# The first run takes the cross compiler, QEMU and packages of arm64 from Debian's mirror. The checks of the
# wheel need PyPI. Root file systems and builds are kept under build/. Everything else lies in a temporary
# folder, which the script removes at its end. Exit code: 0 if every check passed. The checks:
#
#   1. the tests of the folders whose code computes values, with NEON and with the portable loops
#   2. the digests of every shipped spec, if the server, the client or both are programs of aarch64
#   3. `make-flowers` and `pack` write the same files on both processors; a server of aarch64 and one of
#      x86-64 serve one feed together; and `train` prints the same losses on both
#   4. the wheel trains and gives the digests of x86-64, on Debian 12 and Debian 11 with only Python and the
#      libraries that Python and NumPy need
set -euo pipefail

if [[ $# -ne 1 || $1 == -* ]]; then
  echo "usage: $0 BUILD_DIR" >&2
  exit 2
fi
x86=$(realpath -- "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if [[ $(uname -m) != x86_64 ]]; then
  echo "$0 compares aarch64 with x86-64, and runs on x86-64 alone" >&2
  exit 3
fi
readonly x86 jobs=${SYSTOLE_JOBS:-$(nproc)}
export SYSTOLE_AARCH64_ROOT=$PWD/build/aarch64-root
work=$(mktemp -d /tmp/systole-aarch64.XXXXXX)
readonly work
servers=()
clean_up() {
  local status=$?
  trap - EXIT INT TERM HUP
  [[ ${#servers[@]} -eq 0 ]] || kill "${servers[@]}" 2>/dev/null || true
  rm -rf "$work"
  exit "$status"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
say() { printf '\n--- %s (at %d s)\n' "$*" "$SECONDS"; }

# The folders whose tests check computed bytes and numbers, and the order of records. The tests of other
# folders depend on sockets, files and clocks, which behave differently under QEMU.
readonly folders=(
  core/batch core/checksum core/compression core/engine core/example core/image core/numeric core/operations
  core/order core/plan core/random core/record core/spec core/tensor client/emulator/array
  client/emulator/training
)
readonly arm=$PWD/build/aarch64

say "the build"
deploy/install_dependencies.sh --aarch64
deploy/aarch64/make_root.sh "$SYSTOLE_AARCH64_ROOT"
cmake --preset aarch64
folders_all=("${folders[@]/#/tests/}")
cmake --build "$arm" -j "$jobs" --target systole systole-server "${folders_all[@]/%//all}"

# The tests in these folders compare NEON with the portable loops. Two tests are left out. example_maker_test
# limits its memory (RLIMIT_AS), which QEMU does not support. emulator_learning_test would take a quarter of
# an hour. Instead, "the same training" below compares a training on both processors.
say "tests of values"
for folder in "${folders[@]}"; do
  ctest --test-dir "$arm/tests/$folder" -j "$jobs" --output-on-failure --no-tests=error \
    -E '^(example_maker|emulator_learning)_test$'
done

# Scripts that this machine can start. They run the programs of aarch64 under QEMU.
for program in systole systole-server; do
  printf '#!/bin/sh\nexec %q %q "$@"\n' "$PWD/deploy/aarch64/run" "$arm/$program" >"$work/$program"
  chmod +x "$work/$program"
done

# golden_digests SYSTOLE SERVER: checks that these two programs give the digests in tests/golden/digests for
# every shipped spec. The test that starts them is a program of x86-64.
golden_digests() {
  SYSTOLE_PROGRAM=$1 SYSTOLE_SERVER_PROGRAM=$2 "$x86/tests/tests_system" --tests_of=tests/system/golden_digest_test.cc
}
say "golden digests: server and client of aarch64, with NEON"
SYSTOLE_SIMD_TARGET=NEON golden_digests "$work/systole" "$work/systole-server"
say "golden digests: server of aarch64 with the portable loops, client of x86-64"
printf '#!/bin/sh\nSYSTOLE_SIMD_TARGET=SCALAR exec %q "$@"\n' "$work/systole-server" >"$work/scalar-server"
chmod +x "$work/scalar-server"
golden_digests "$x86/systole" "$work/scalar-server"
say "golden digests: server of x86-64, client of aarch64"
golden_digests "$work/systole" "$x86/systole-server"
# The test compares a server with LocalFeed, which runs in the test's own process, on x86-64.
say "every operation: server of aarch64, LocalFeed of x86-64"
SYSTOLE_SERVER_PROGRAM=$work/systole-server "$x86/tests/tests_system" --tests_of=tests/system/operations_test.cc

say "the same files"
for machine in x86 arm; do
  systole=$x86/systole
  [[ $machine == x86 ]] || systole=$work/systole
  mkdir "$work/$machine"
  (
    cd "$work/$machine"
    "$systole" make-flowers plain --images 130 --seed 1 --json >/dev/null
    "$systole" make-flowers photos --images 12 --size 500 --texture photo --json >/dev/null
    for copy in 0 1 2 3 4 5 6 7; do "$systole" pack plain "copy$copy" --shards 1 --json >/dev/null; done
    "$systole" pack photos resized/photos --shards 3 --resize-short 80 --validation 0.2 --json >/dev/null
  )
done
diff -r "$work/x86" "$work/arm"
find "$work/arm" -type f | wc -l | sed 's/$/ files are the same/'

# serve PROGRAM PORT_FILE: starts a server.
serve() {
  "$1" --listen 127.0.0.1:0 --port-file "$2" --dataset "flowers=$work/x86/copy0*.tfrecord" \
    --dataset "flowers-validation=$work/x86/copy0*.tfrecord" &
  servers+=("$!")
  until [[ -s $2 ]]; do
    kill -0 "$!"
    sleep 0.1
  done
}
serve "$x86/systole-server" "$work/port-x86"
serve "$work/systole-server" "$work/port-arm"
address_x86=127.0.0.1:$(<"$work/port-x86") address_arm=127.0.0.1:$(<"$work/port-arm")

# A client uses several servers for a feed only if they report the same content version, which shows that
# they make the same bytes.
say "one feed from a server of each kind"
digests() { "$x86/systole" feed --spec deploy/specs/flowers.textproto --steps 12 --digest --server "$1"; }
digests "$address_x86,$address_arm" >"$work/digests-both"
digests "$address_x86" | cmp - "$work/digests-both"
echo "$(wc -l <"$work/digests-both") digests are the same"

say "the same training"
# train SYSTOLE NAME: prints the lines of `systole train` that begin with a number, without rates and times.
train() {
  "$1" train --server "$address_x86" --spec deploy/specs/flowers.textproto \
    --eval-spec deploy/specs/flowers-eval.textproto --model flowers-cnn --epochs 1 \
    --initial-checkpoint "$work/initial-$2" | awk '$1 ~ /^[0-9]+$/ { print $1, $2, $3, $4, $5, $6 }'
}
train "$x86/systole" x86 >"$work/training-x86"
train "$work/systole" arm >"$work/training-arm"
kill "${servers[@]}"
wait "${servers[@]}"
servers=()
cat "$work/training-arm"
cmp "$work/training-x86" "$work/training-arm"
cmp "$work/initial-x86" "$work/initial-arm"

say "the wheel"
# The preset above also has SYSTOLE_WERROR=ON. With equal settings, ccache already has most object files of
# the wheel.
wheel=$(SKBUILD_CMAKE_DEFINE=SYSTOLE_WERROR=ON client/python/build_wheel.sh --aarch64)
python3 -B tests/client/python/check_wheel.py --aarch64 "$SYSTOLE_AARCH64_ROOT" "$wheel" </dev/null
# Installs the wheel as pip would on aarch64, with NumPy's wheel for aarch64.
site=$work/site
/usr/bin/python3 -m venv "$work/env"
"$work/env/bin/python" -m pip --disable-pip-version-check install --quiet --target "$site" --python-version 3.11 \
  --only-binary=:all: --platform manylinux_2_31_aarch64 --platform manylinux_2_28_aarch64 \
  --platform manylinux2014_aarch64 "$wheel" </dev/null
# write_program FILE ROOT VARIABLE=VALUE.. PROGRAM: makes FILE a script that runs PROGRAM under QEMU. PROGRAM
# gets FILE as its own name. So if PROGRAM starts itself again, it starts FILE.
write_program() {
  printf '#!/bin/sh\nexec env %s "$@"\n' "$(printf '%q ' "SYSTOLE_AARCH64_ROOT=$2" "QEMU_ARGV0=$1" \
    "${@:3:$#-3}" "$PWD/deploy/aarch64/run" "${!#}")" >"$1"
  chmod +x "$1"
}
# try_wheel NAME ROOT PYTHON SPEC..: trains with the wheel and the libraries in ROOT, and compares the digests
# of each SPEC with the golden digests. PYTHON is an interpreter in ROOT. LD_BIND_NOW makes the loader look up
# all functions when it loads a library. So a missing function is an error at once.
try_wheel() {
  local root=$PWD/$2 folder=$work/$1 spec
  mkdir -p "$folder/bin" "$folder/data"
  cp -r "$site" "$folder/site"
  # The package starts its programs by itself, but this kernel cannot start a program of aarch64. So scripts
  # stand in the places of the programs.
  mv "$folder/site/systole/bin" "$folder/site/systole/programs"
  mkdir "$folder/site/systole/bin"
  for program in systole systole-server; do
    write_program "$folder/site/systole/bin/$program" "$root" LD_BIND_NOW=1 \
      "$folder/site/systole/programs/$program"
  done
  ln -s ../site/systole/bin/systole "$folder/bin/systole"
  write_program "$folder/bin/python" "$root" LD_BIND_NOW=1 "PYTHONPATH=$folder/site" "$root/$3"
  # Python looks for its standard library in a folder `lib` above its program.
  ln -s "$(dirname "$(dirname "$root/$3")")/lib" "$folder/lib"
  "$folder/bin/python" -c 'import platform; print(*platform.libc_ver(), platform.machine())'
  tests/client/python/wheel_training.sh "$folder/bin/python" "$folder/data" </dev/null
  for spec in "${@:4}"; do
    "$folder/bin/python" tests/deploy/local_digests.py "$work/x86/copy*.tfrecord" \
      "deploy/specs/$spec.textproto" >"$work/digests"
    diff "$work/digests" <(head -n "$(wc -l <"$work/digests")" "tests/golden/digests/$spec.txt")
    echo "$spec: LocalFeed gives the $(wc -l <"$work/digests") golden digests of x86-64"
  done
}
say "the wheel on Debian 12"
deploy/aarch64/make_root.sh --python build/aarch64-python-root
try_wheel debian12 build/aarch64-python-root usr/bin/python3 \
  flowers flowers-eval record-ids mixture resnet50 resnet50-eval resnet50-mix resnet50-tpu
# tests/client/python/wheel_systems.sh makes the same check for x86-64.
say "the wheel on Debian 11, with a copy of Debian 12's Python"
deploy/aarch64/make_root.sh --oldest build/aarch64-oldest-root
client/python/wheel/compile_newer_glibc.sh tests/client/python/older_python.c "$work/libsystole-glibc.so" \
  "$SYSTOLE_AARCH64_ROOT"
PATH=$PWD/build/python/wheel-env/3.11/bin:$PATH python -B tests/client/python/older_python.py \
  "$work/libsystole-glibc.so" build/aarch64-oldest-root "$SYSTOLE_AARCH64_ROOT" </dev/null
try_wheel debian11 build/aarch64-oldest-root opt/python/bin/python flowers mixture resnet50-mix
echo "$wheel: $(du -h "$wheel" | cut -f 1)"
