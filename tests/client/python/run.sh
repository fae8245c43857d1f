#!/usr/bin/env bash
# Installs the Python package into an environment of its own and tests it there.
#
#   tests/client/python/run.sh [PYTEST ARGUMENT..]
#
# The environment is build/python-env; it is made anew when requirements.txt has changed. The package
# is built as `pip install ./client/python` builds it, but in build/python, so that the next time only
# what has changed is compiled. SYSTOLE_PYTHON_EXECUTABLE chooses another interpreter than /usr/bin/python3.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../../.."
readonly python=${SYSTOLE_PYTHON_EXECUTABLE:-/usr/bin/python3}
readonly environment=$PWD/build/python-env

wanted=$("$python" --version; cat "$here/requirements.txt")
if [[ $(cat "$environment/made-of" 2>/dev/null) != "$wanted" ]]; then
  rm -rf "$environment" build/python
  "$python" -m venv "$environment"
  "$environment/bin/pip" install --quiet --disable-pip-version-check --upgrade pip==26.3
  "$environment/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
  echo "$wanted" >"$environment/made-of"
fi
CMAKE_BUILD_PARALLEL_LEVEL=${SYSTOLE_JOBS:-$(nproc)} "$environment/bin/pip" install --quiet \
  --disable-pip-version-check --no-build-isolation --no-deps --force-reinstall \
  --config-settings build-dir="$PWD/build/python" \
  --config-settings cmake.define.SYSTOLE_WERROR=ON ./client/python
exec "$environment/bin/python" -m pytest -q -p no:cacheprovider "$here" "$@"
