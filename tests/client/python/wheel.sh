#!/usr/bin/env bash
# Makes the self-contained wheel, installs it, and trains with it where Debian's libraries cannot be
# found.
#
#   tests/client/python/wheel.sh
#
# The training runs in a mount namespace of its own, in which every library that the wheel must bring
# is an empty file. This needs root, or user namespaces.
# libexpat is not hidden. Every system with the wheel's tag has it (PEP 600), and Debian's Python
# itself needs it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../../.."
readonly environment=$PWD/build/python/wheel-test-env

# SYSTOLE_WERROR=ON is the option of install.sh, too. So the wheel can use what is in build/package.
wheel=$(SKBUILD_CMAKE_DEFINE=SYSTOLE_WERROR=ON client/python/build_wheel.sh build/wheel)
rm -rf "$environment"
"${SYSTOLE_PYTHON_EXECUTABLE:-/usr/bin/python3}" -m venv "$environment"
"$environment/bin/python" -m pip --disable-pip-version-check install --quiet "$wheel" </dev/null

namespace=(unshare --mount)
[[ $(id -u) -eq 0 ]] || namespace=(unshare --mount --map-root-user)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2016  # The inner shell expands the variables.
"${namespace[@]}" bash -euc '
  hidden=0
  for library in /usr/lib/x86_64-linux-gnu/lib{grpc,gpr,protobuf,absl,address_sorting,upb,cares,re2,jpeg,isal,xxhash,zstd,spng,dnnl,spdlog,fmt,curl}*.so*; do
    [[ -f $library && ! -L $library ]] || continue
    mount --bind /dev/null "$library"
    hidden=$((hidden + 1))
  done
  PATH=$1/bin:$PATH
  cd "$2"
  systole make-flowers images --images 60 --size 64 --json >/dev/null
  systole pack images packed --shards 2 >/dev/null
  python "$3" "packed-train-*.tfrecord"
  echo "the wheel trains with $hidden libraries hidden"
' bash "$environment" "$work" "$here/wheel_training.py" </dev/null
echo "$wheel: $(du -h "$wheel" | cut -f 1)"
