#!/usr/bin/env bash
# Installs the Debian 12 packages that Systole needs. Does nothing if all are installed.
#
#   deploy/install_dependencies.sh            to build the programs, and for the demo
#   deploy/install_dependencies.sh --python   also to build the Python package
#   deploy/install_dependencies.sh --tests    as with --python, and for tests and benchmarks
#   deploy/install_dependencies.sh --torch    as with --tests, and PyTorch, for `tests/run.sh torch`
#   deploy/install_dependencies.sh --checks   as with --tests, and clang with its tools, for `tests/run.sh --all`
#   deploy/install_dependencies.sh --aarch64  as with --tests, and a cross compiler and QEMU, for deploy/aarch64
#
# With --list as the last argument, the script prints the names of the packages, one a line, and
# installs nothing.
#
# Uses sudo unless you are root. CONTRIBUTING.md says what each library is for.
set -euo pipefail

packages=(
  ca-certificates cmake ninja-build g++ pkg-config ccache
  libabsl-dev libprotobuf-dev protobuf-compiler libgrpc++-dev protobuf-compiler-grpc
  libjpeg62-turbo-dev libspng-dev libhwy-dev libisal-dev libxxhash-dev zlib1g-dev libzstd-dev libcli11-dev libspdlog-dev
  libdnnl-dev libssl-dev openssl libcurl4-openssl-dev libexpat1-dev libboost-dev
)
python=(python3-dev python3-venv)
tests=(
  "${python[@]}"
  libgtest-dev libgmock-dev libbenchmark-dev
  iproute2  # Makes the network links that link_bench sends through.
  python3  # Makes tables and plots of the benchmarks. Needs no other Python package.
  chromium  # Opens report pages in a test.
  shellcheck  # Reads the scripts of deploy/slurm.
)
checks=(
  clang clang-format clang-tidy libclang-rt-14-dev lld git
  doxygen  # Makes the reference of the installed headers, and reports errors in their comments.
)
torch=(python3-torch)
aarch64=(
  g++-aarch64-linux-gnu
  qemu-user-static  # Runs programs of aarch64.
  mmdebstrap  # Unpacks the libraries of aarch64.
)
list=no
if [[ $# -gt 0 && ${!#} == --list ]]; then
  list=yes
  set -- "${@:1:$#-1}"
fi
case "$*" in
  "") ;;
  --python) packages+=("${python[@]}") ;;
  --tests) packages+=("${tests[@]}") ;;
  --torch) packages+=("${tests[@]}" "${torch[@]}") ;;
  --checks) packages+=("${tests[@]}" "${checks[@]}") ;;
  --aarch64) packages+=("${tests[@]}" "${aarch64[@]}") ;;
  *)
    echo "usage: $0 [--python | --tests | --torch | --checks | --aarch64] [--list]" >&2
    exit 2
    ;;
esac
if [[ $list == yes ]]; then
  printf '%s\n' "${packages[@]}"
  exit 0
fi

if ! command -v dpkg-query >/dev/null; then
  echo "there is no dpkg-query: this needs Debian 12; on another system install the counterparts of: ${packages[*]}" >&2
  exit 3
fi
missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $state == installed ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "packages are missing, and only root or sudo can install them: ${missing[*]}" >&2
    exit 3
  fi
  as_root=(sudo)
fi
apt() {
  # On a new machine, automatic updates may hold apt's lock. apt-get waits up to 300 s until the
  # lock is free.
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" \
    </dev/null
}
echo "installing ${missing[*]}"
apt update
apt install -y --no-install-recommends "${missing[@]}"
