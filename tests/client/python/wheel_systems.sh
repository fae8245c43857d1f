#!/usr/bin/env bash
# Makes wheels for several versions of Python. Installs each wheel on this system, and trains with it. Does
# the same with one of the wheels on Debian 13, and with one on Debian 11.
#
#   tests/client/python/wheel_systems.sh PYTHON..
#
# Each PYTHON is an interpreter. One must be Debian 12's (/usr/bin/python3), and one must have version 3.12
# or newer.
#
# Debian 11 (glibc 2.31) and Debian 13 (glibc 2.41) are root folders in build/roots. debootstrap makes them
# in the first run. Debian 13 has Python 3.13, whose pip installs the wheel. Debian 11 has Python 3.9, which
# is too old for the package. So older_python.py copies Debian 12's Python into Debian 11's folder, and
# changes the copy for the older glibc, as the wheel's libraries are changed. With LD_BIND_NOW the loader
# looks up all functions that a library may call, even if the training never calls them.
#
# Needs root, Debian 12, debootstrap, and PyPI.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../../.."
readonly roots=$PWD/build/roots packages=$PWD/build/python/wheel-packages
if [[ $# -eq 0 || $1 == -* ]]; then
  echo "usage: $0 PYTHON.., one of them /usr/bin/python3 and one 3.12 or newer" >&2
  exit 2
fi
if [[ $(id -u) -ne 0 ]] || ! command -v debootstrap >/dev/null; then
  echo "$0: this needs root, and debootstrap (apt-get install debootstrap)" >&2
  exit 3
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Makes build/roots/SUITE, with Python. If an earlier run was stopped while it made this folder, make_root
# makes it anew.
make_root() {
  [[ ! -e $roots/$1/complete ]] || return 0
  rm -rf "${roots:?}/$1"
  mkdir -p "$roots"
  debootstrap --variant=minbase --include=python3-venv "$1" "$roots/$1" \
    http://deb.debian.org/debian </dev/null >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    exit 1
  }
  touch "$roots/$1/complete"
}

# in_root SUITE VARIABLE=VALUE.. COMMAND..: runs a command in build/roots/SUITE, with an empty /tmp.
in_root() {
  # shellcheck disable=SC2016  # The inner shell expands the variables.
  unshare --mount --pid --fork bash -euc '
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    mount -t tmpfs tmpfs "$1/tmp"
    exec chroot "$1" env -i PATH=/usr/bin:/bin "${@:2}"
  ' bash "$roots/$1" "${@:2}" </dev/null
}

pip() { "$work/env/bin/python" -m pip --disable-pip-version-check --quiet "$@" </dev/null; }

client/python/build_wheel.sh build/wheels "$@" >"$work/wheels"
mapfile -t wheels <"$work/wheels"
/usr/bin/python3 -B "$here/check_wheel.py" "${wheels[@]}" </dev/null

for python in "$@"; do
  "$python" -m venv --clear "$work/env"
  pip install --find-links build/wheels --no-index --no-deps systole
  pip install numpy ml_dtypes
  mkdir "$work/data"
  echo "Debian 12, $("$python" --version):"
  "$here/wheel_training.sh" "$work/env/bin/python" "$work/data" </dev/null
  rm -r "$work/data"
done

make_root trixie
rm -rf "$packages"
pip download --only-binary :all: --no-deps --python-version 3.13 --dest "$packages" numpy ml_dtypes
rm -rf "$roots/trixie/opt"
mkdir "$roots/trixie/opt"
cp -r "$packages" build/wheels "$here"/wheel_training.* "$roots/trixie/opt"
in_root trixie python3 -m venv /opt/env
in_root trixie /opt/env/bin/pip install --quiet --no-index --find-links /opt/wheels \
  --find-links /opt/wheel-packages systole
echo "Debian 13, $(in_root trixie python3 --version):"
in_root trixie LD_BIND_NOW=1 /opt/wheel_training.sh /opt/env/bin/python /tmp

make_root bullseye
version=$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
rm -rf "$roots/bullseye/opt"
mkdir "$roots/bullseye/opt"
client/python/wheel/compile_newer_glibc.sh "$here/older_python.c" "$work/libsystole-glibc.so"
PATH=$PWD/build/python/wheel-env/$version/bin:$PATH python -B "$here/older_python.py" \
  "$work/libsystole-glibc.so" "$roots/bullseye" </dev/null
/usr/bin/python3 -m venv --clear "$work/env"
pip install --target "$roots/bullseye/opt/packages" build/wheels/systole-*-"cp${version/./}"-*.whl
# Writes the program `systole` as pip would write it into an environment.
cat >"$roots/bullseye/opt/python/bin/systole" <<'END'
#!/opt/python/bin/python
from systole._programs import run_systole
run_systole()
END
chmod +x "$roots/bullseye/opt/python/bin/systole"
cp "$here"/wheel_training.* "$roots/bullseye/opt"
echo "Debian 11, a copy of Debian 12's $(in_root bullseye /opt/python/bin/python --version):"
in_root bullseye LD_BIND_NOW=1 PYTHONPATH=/opt/packages /opt/wheel_training.sh /opt/python/bin/python /tmp
