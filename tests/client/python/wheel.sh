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
# tests/client/python/wheel_systems.sh tries wheels for all versions of Python, on other systems.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../../.."
readonly environment=$PWD/build/python/wheel-test-env

# install.sh builds with SYSTOLE_WERROR=ON, too. So this build can use what is compiled in
# build/package.
wheel=$(SKBUILD_CMAKE_DEFINE=SYSTOLE_WERROR=ON client/python/build_wheel.sh build/wheel)
python3 -B "$here/check_wheel.py" "$wheel" </dev/null

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# If a program needs a function of a newer glibc, the making of a wheel must fail.
cc -xc - -o "$work/program" <<<'void closefrom(int); int main(void) { closefrom(3); }'
client/python/wheel/compile_newer_glibc.sh client/python/wheel/newer_glibc.c "$work/replacement.so"
python=${SYSTOLE_PYTHON_EXECUTABLE:-/usr/bin/python3}
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
error=$(PYTHONPATH=client/python/wheel "build/python/wheel-env/$version/bin/python" -B - 2>&1 <<END
from gather import Debian, Path, change
try:
    change([Path("$work/program")], Path("$work/replacement.so"), Debian())
except ValueError as error:
    print(error)
END
)
if [[ $error != *"closefrom needs GLIBC_2.34; newer_glibc.c lacks it" ]]; then
  echo "a program with closefrom(): $error" >&2
  exit 1
fi

rm -rf "$environment"
"$python" -m venv "$environment"
"$environment/bin/python" -m pip --disable-pip-version-check install --quiet "$wheel" </dev/null

namespace=(unshare --mount)
[[ $(id -u) -eq 0 ]] || namespace=(unshare --mount --map-root-user)
mkdir "$work/data"
# shellcheck disable=SC2016  # The inner shell expands the variables.
"${namespace[@]}" bash -euc '
  hidden=0
  for library in /usr/lib/x86_64-linux-gnu/lib{grpc,gpr,protobuf,absl,address_sorting,upb,cares,re2,jpeg,isal,xxhash,zstd,spng,dnnl,spdlog,fmt,curl}*.so*; do
    [[ -f $library && ! -L $library ]] || continue
    mount --bind /dev/null "$library"
    hidden=$((hidden + 1))
  done
  "$3" "$1/bin/python" "$2"
  echo "the wheel trains with $hidden libraries hidden"
' bash "$environment" "$work/data" "$here/wheel_training.sh" </dev/null
echo "$wheel: $(du -h "$wheel" | cut -f 1)"
