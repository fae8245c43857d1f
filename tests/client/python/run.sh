#!/usr/bin/env bash
# Installs the Python package into an environment of its own and tests it there.
#
#   tests/client/python/run.sh [KIND [PYTEST ARGUMENT..]]
#
# KIND is jax (the default), torch, buckets, frameworks or ray. install.sh explains the kinds and makes
# the environment.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
kind=${1:-jax}
shift || true
"$here/install.sh" "$kind"
cd "$here/../../.."
# These tests take longest, and tests/run.sh waits for them. The tests of a file share servers, so one
# process runs them all.
processes=()
[[ $kind != jax ]] || processes=(-n 2 --dist loadfile)
exec "build/python/$kind/env/bin/python" -m pytest -q -p no:cacheprovider --rootdir "$here" \
  "${processes[@]}" "$here/with_$kind" "$@" </dev/null
