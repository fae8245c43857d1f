#!/usr/bin/env bash
# Unpacks the aarch64 packages that a build of Systole needs into a folder: Debian 12's libraries with
# their headers, and Python. Installs nothing on this machine. Does nothing if the folder is complete.
#
#   deploy/aarch64/make_root.sh [FOLDER]          default: build/aarch64-root, where toolchain.cmake looks
#   deploy/aarch64/make_root.sh --python FOLDER   only Python, and what it and NumPy need, to try the wheel
#   deploy/aarch64/make_root.sh --oldest FOLDER   Debian 11's libraries that the wheel needs and does not contain
#
# The packages' installation scripts are not run. So the folder has no users and no configuration, and cannot be booted.
# dpkg-query --root=FOLDER says which package a file is from. The script needs the packages of
# deploy/install_dependencies.sh --aarch64, and 500 MB on the disk.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

suite=bookworm
packages=(python3)
mirror=()  # mmdebstrap's default: the suite with its updates.
case "$#-${1:-}" in
  2---python)
    packages+=(libstdc++6)
    shift
    ;;
  2---oldest)
    suite=bullseye
    packages=(libc6 libgcc-s1 libstdc++6 zlib1g libexpat1)
    # No updates: mmdebstrap's default would look for bullseye's updates in a place where they no
    # longer are.
    mirror=(http://deb.debian.org/debian)
    shift
    ;;
  [01]-*)
    # Python, the same -dev packages as on the host, and two more. protobuf-compiler-grpc is needed because
    # gRPC's CMake package looks for grpc_cpp_plugin in this folder, although the build runs the
    # host's plugin. base-files has the texts of licences.
    mapfile -t -O 1 packages < <(deploy/install_dependencies.sh --tests --list | grep -- '-dev$')
    packages+=(protobuf-compiler-grpc base-files)
    ;;
esac
if [[ $# -gt 1 || ${1:-} == -* ]]; then
  echo "usage: $0 [FOLDER] | --python FOLDER | --oldest FOLDER" >&2
  exit 2
fi
folder=$(realpath -m -- "${1:-build/aarch64-root}")
wanted=$(printf '%s\n' "${packages[@]}")
[[ $(cat "$folder.made-of" 2>/dev/null) != "$wanted" ]] || exit 0

rm -rf "$folder" "$folder.made-of"
mkdir -p "$(dirname "$folder")"
mode=unshare
[[ $EUID -ne 0 ]] || mode=root
# mmdebstrap logs what it does. The log is printed only if mmdebstrap fails.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# With --variant=extract mmdebstrap unpacks packages, but writes no package database. This hook writes it.
# shellcheck disable=SC2016  # mmdebstrap's shell expands the variables.
readonly write_database='set -e
for package in "$1"/var/cache/apt/archives/*.deb; do
  { dpkg-deb --field "$package"; printf "Status: install ok unpacked\n\n"; } >>"$1/var/lib/dpkg/status"
  name=$(dpkg-deb --field "$package" Package)
  [ "$(dpkg-deb --field "$package" Multi-Arch)" != same ] || name=$name:arm64
  dpkg-deb --fsys-tarfile "$package" | tar --list | sed "1d; s/^.//" >"$1/var/lib/dpkg/info/$name.list"
done'
mmdebstrap --mode="$mode" --architectures=arm64 --variant=extract \
  --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --include="$(IFS=, && echo "${packages[*]}")" \
  --extract-hook="$write_database" \
  "$suite" "$folder" "${mirror[@]}" </dev/null >"$log" 2>&1 || {
  cat "$log" >&2
  echo "$0: cannot make $folder (see mmdebstrap's messages above)" >&2
  exit 1
}
# Makes absolute links relative. The linker would follow an absolute link out of the folder, and not find the shared
# library. If the folder also has the library as a static archive, the linker would put the archive into each program.
while IFS=$'\t' read -r link target; do
  ln --symbolic --force --no-dereference --relative "$folder$target" "$link"
done < <(find "$folder/usr/lib" -type l -lname '/*' -printf '%p\t%l\n')
echo "$wanted" >"$folder.made-of"
