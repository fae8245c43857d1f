#!/usr/bin/env bash
# Checks deploy/kubernetes: renders it, compares every object with the published schemas of Kubernetes, and
# runs what the manifests say, with real programs and without a cluster.
#
#   tests/deploy/kubernetes.sh BUILD_DIR   such as build/release: where systole and systole-server are
#
# Renders with kubectl if kubectl contains Kustomize 5. Otherwise builds Kustomize in build/kubernetes, which
# needs Go 1.22 or newer. The schemas come from PyPI, once. Everything else lies in a temporary folder,
# which is gone when the script ends. Exit code: 0 if every check passed.
set -euo pipefail

if [[ $# -ne 1 || $1 == -* ]]; then
  echo "usage: $0 BUILD_DIR" >&2
  exit 2
fi
build=$(realpath -- "$1")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."
readonly tools=$PWD/build/kubernetes
work=$(mktemp -d /tmp/systole-kubernetes.XXXXXX)
readonly work
clean_up() {
  local status=$?
  trap - EXIT INT TERM HUP
  rm -rf "$work"
  exit "$status"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

if kubectl version --client 2>/dev/null | grep -q '^Kustomize Version: v5'; then
  readonly render=(kubectl kustomize)
else
  if [[ ! -x $tools/kustomize ]]; then
    if ! command -v go >/dev/null; then
      echo "$0: there is neither a kubectl with Kustomize 5 nor go; install one of them" >&2
      exit 3
    fi
    GOBIN=$tools go install sigs.k8s.io/kustomize/kustomize/v5@v5.7.1 </dev/null
  fi
  readonly render=("$tools/kustomize" build)
fi
# Makes the Python environment, also if an interrupted run has left an incomplete one.
if [[ ! -e $tools/env/complete ]]; then
  python3 -m venv --clear "$tools/env"
  "$tools/env/bin/pip" install -q kubernetes-validate==1.37.0 PyYAML==6.0.3 </dev/null
  touch "$tools/env/complete"
fi
readonly python=$tools/env/bin/python

"$build/systole" feed --help >/dev/null  # Fails if there is no build.
"$python" -B tests/deploy/check_manifests.py --render "${render[*]}" --work "$work" </dev/null
"$python" -B tests/deploy/run_manifests.py --build "$build" --work "$work" </dev/null
