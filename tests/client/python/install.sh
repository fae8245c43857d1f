#!/usr/bin/env bash
# Installs the Python package, and what its tests need, into an environment of its own.
#
#   tests/client/python/install.sh KIND    jax: with NumPy and JAX; torch: with Debian's PyTorch;
#                                          buckets: with moto, a server of AWS's interfaces;
#                                          frameworks: with the current PyTorch, TensorFlow and Grain;
#                                          ray: with Ray and Ray Train
#
# The environment is build/python/KIND/env. The script makes it anew when its requirements have changed.
# The package is built as `pip install ./client/python` builds it, but in build/package. This folder
# stays, so the next run compiles only what has changed. Compiler and options are those of the preset
# `release`. If that preset was built before, ccache has the objects. SYSTOLE_PYTHON_EXECUTABLE is the
# interpreter (default: /usr/bin/python3).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../../.."
kind=${1:-}
readonly python=${SYSTOLE_PYTHON_EXECUTABLE:-/usr/bin/python3}
readonly folder=$PWD/build/python/$kind
options=()
case "$kind" in
  jax | buckets | frameworks | ray) ;;
  torch)
    deploy/install_dependencies.sh --torch
    options+=(--system-site-packages)
    ;;
  *)
    echo "usage: $0 jax | torch | buckets | frameworks | ray" >&2
    exit 2
    ;;
esac

pip() { "$folder/env/bin/python" -m pip --disable-pip-version-check "$@" </dev/null; }

requirements=$here/requirements-$kind.txt
lists=("$requirements" "$here/requirements-build.txt")
# The packages in this list are installed without the packages that they require.
alone=$here/requirements-$kind-alone.txt
[[ -f $alone ]] && lists+=("$alone")
wanted=$("$python" --version && cat "${lists[@]}")
if [[ $(cat "$folder/made-of" 2>/dev/null) != "$wanted" ]]; then
  rm -rf "$folder"
  echo "making $folder/env"
  "$python" -m venv ${options[@]+"${options[@]}"} "$folder/env"
  # --no-compile, because the tests import only a small part of these packages. Python compiles that
  # part when it is imported.
  pip install --quiet --no-compile -r "$here/requirements-build.txt"
  pip install --quiet --no-compile -r "$requirements"
  [[ -f $alone ]] && pip install --quiet --no-compile --no-deps --ignore-requires-python -r "$alone"
  echo "$wanted" >"$folder/made-of"
fi
CC=/usr/bin/cc CXX=/usr/bin/c++ CMAKE_BUILD_PARALLEL_LEVEL=${SYSTOLE_JOBS:-$(nproc)} pip install --quiet \
  --no-build-isolation --no-deps --force-reinstall --config-settings build-dir="$PWD/build/package" \
  --config-settings cmake.define.SYSTOLE_WERROR=ON ./client/python
