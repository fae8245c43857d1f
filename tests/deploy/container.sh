#!/usr/bin/env bash
# Builds the images of deploy/Containerfile and starts them. Downloads no image: debootstrap makes the base
# image.
#
#   tests/deploy/container.sh BUILD_DIR   BUILD_DIR, such as build/release, has the client `systole`
#
# Needs root, Debian's packages buildah, podman, crun, debootstrap and ccache, Debian's mirror, and PyPI. Images
# and layers stay in build/container (6 GB), so a second run builds only what has changed. Compiled objects are
# in the user's own ccache. At its end the script removes its containers. Exit code: 0 if every check passed.
set -euo pipefail

if [[ $# -ne 1 || $1 == -* ]]; then
  echo "usage: $0 BUILD_DIR" >&2
  exit 2
fi
build=$(realpath -- "$1")
self=$(realpath -- "${BASH_SOURCE[0]}")
cd "$(dirname "$self")/../.."
if [[ $EUID -ne 0 ]]; then
  echo "$0: run it as root: debootstrap and mounts need it" >&2
  exit 3
fi
for program in buildah podman crun debootstrap ccache; do
  command -v "$program" >/dev/null && continue
  echo "$0: there is no $program; install Debian's packages buildah, podman, crun, debootstrap and ccache" >&2
  exit 3
done
# Starts the script again in a mount namespace of its own, so that no mount outlives the script.
if [[ ${SYSTOLE_OWN_MOUNTS:-} != yes ]]; then
  SYSTOLE_OWN_MOUNTS=yes exec unshare --mount "$self" "$build"
fi
# crun refuses a machine on which control groups of both versions are mounted, v1 and v2.
if [[ -d /sys/fs/cgroup/unified && -d /sys/fs/cgroup/memory ]]; then umount /sys/fs/cgroup/unified; fi

readonly folder=$PWD/build/container
mkdir -p "$folder"
driver=vfs
if grep -qw overlay /proc/filesystems; then driver=overlay; fi
readonly storage=(--root "$folder/storage" --runroot "$folder/run" --storage-driver "$driver")
readonly podman=(podman "${storage[@]}" --cgroup-manager cgroupfs --tmpdir "$folder/tmp")
readonly base=localhost/debian:bookworm-slim
work=$(mktemp -d /tmp/systole-container.XXXXXX)
readonly work
clean_up() {
  local status=$?
  trap - EXIT INT TERM HUP
  "${podman[@]}" rm --force --time 1 --ignore systole-server-test systole-python-test >/dev/null || true
  "${podman[@]}" image unmount --all >/dev/null || true
  rm -rf "$work"
  exit "$status"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

if ! "${podman[@]}" image exists "$base"; then
  echo "making $base"
  rm -rf "$folder/base"
  debootstrap --variant=minbase bookworm "$folder/base" >"$folder/debootstrap.log"
  printf 'deb http://deb.debian.org/%s main\n' 'debian bookworm' 'debian bookworm-updates' \
    'debian-security bookworm-security' >"$folder/base/etc/apt/sources.list"
  tar --directory "$folder/base" --create . | "${podman[@]}" import --quiet - "$base" >/dev/null
  rm -rf "$folder/base"
fi
# During the build, ccache uses the user's cache, with the user's size limit: with a smaller limit, ccache
# would remove the user's objects.
cache=$(ccache --get-config cache_dir)
mkdir -p "$cache"
echo "max_size = $(ccache --get-config max_size)" >"$folder/ccache.conf"
volumes=(--volume "$cache:/root/.cache/ccache" --volume "$folder/ccache.conf:/root/.config/ccache/ccache.conf:ro")
# During the build, pip trusts the certificate authorities that pip on this machine trusts. The file with
# these authorities is mounted, so it does not become part of the image.
cert=${PIP_CERT:-$(python3 -m pip config get global.cert 2>/dev/null || true)}
if [[ -n $cert ]]; then
  printf '[global]\ncert = /etc/pip-ca.crt\n' >"$folder/pip.conf"
  volumes+=(--volume "$folder/pip.conf:/etc/pip.conf:ro" --volume "$(realpath "$cert"):/etc/pip-ca.crt:ro")
fi
for target in server python; do
  buildah "${storage[@]}" build --layers --isolation chroot --format docker --pull-never --quiet \
    --file deploy/Containerfile --target "$target" --tag "systole-$target:dev" \
    --build-arg "BASE=$base" --build-arg "JOBS=${SYSTOLE_JOBS:-$(nproc)}" \
    --build-arg "REVISION=$(git rev-parse HEAD)" \
    "${volumes[@]}" . </dev/null >"$folder/$target.log"
done

# If an interrupted run has left the Python environment incomplete, makes the environment again.
if [[ ! -e $folder/env/complete ]]; then
  python3 -m venv --clear "$folder/env"
  "$folder/env/bin/pip" install -q 'cyclonedx-python-lib[json-validation]==11.12.0' </dev/null
  touch "$folder/env/complete"
fi
"$folder/env/bin/python" -B tests/deploy/run_container.py --podman "${podman[*]}" --build "$build" \
  --work "$work" </dev/null
