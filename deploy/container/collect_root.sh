#!/usr/bin/env bash
# Makes the root file system of the server's image: the installed programs, the libraries that they need,
# and CA certificates.
#
#   deploy/container/collect_root.sh STAGED ROOT    STAGED: what `cmake --install` wrote; ROOT: a new folder
#
# From each Debian package, the image has only the libraries that are needed, and the copyright file. In
# var/lib/dpkg/status.d, where scanners of images look, each package has an entry.
set -euo pipefail

if [[ $# -ne 2 || $1 == -* ]]; then
  echo "usage: $0 STAGED ROOT" >&2
  exit 2
fi
readonly staged=$1 root=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# The user of the images and of deploy/kubernetes.
readonly user=65532

mkdir -p "$root"/{etc/ssl/certs,usr/{bin,lib,lib64,share/doc},var/lib/dpkg/status.d}
for name in bin lib lib64; do ln -s "usr/$name" "$root/$name"; done
cp -a "$staged/." "$root/"

libraries=$("$here/run_time_packages.sh" --libraries "$root"/usr/bin/*)
declare -A packages=([base-files]=yes [ca-certificates]=yes)
while read -r library package; do
  packages[$package]=yes
  file=$(realpath "$library")
  install -D -m 755 "$file" "$root$file"
  name=$root/usr/${library#/}
  [[ $library == /usr/* ]] && name=$root$library
  mkdir -p "$(dirname "$name")"
  folder=$(realpath "$(dirname "$library")")
  [[ -e $name ]] || ln -s "$(realpath --relative-to="$folder" "$file")" "$name"
done <<<"$libraries"

for package in "${!packages[@]}"; do
  dpkg-query -s "$package" >"$root/var/lib/dpkg/status.d/$package"
  # The package's folder of documentation may be a symbolic link to the folder of another package.
  install -D -m 644 "$(realpath "/usr/share/doc/$package/copyright")" "$root/usr/share/doc/$package/copyright"
done
# Many copyright files do not contain the license, but only name its file in this folder.
cp -a /usr/share/common-licenses "$root/usr/share/"

cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
cp -L /usr/lib/os-release "$root/usr/lib/"
ln -s ../usr/lib/os-release "$root/etc/os-release"
printf '%s\n' "root:x:0:0:root:/:/nologin" "systole:x:$user:$user:systole:/:/nologin" >"$root/etc/passwd"
printf '%s\n' "root:x:0:" "systole:x:$user:" >"$root/etc/group"
# Without this file, glibc asks DNS before /etc/hosts.
echo "hosts: files dns" >"$root/etc/nsswitch.conf"

# Where volumes are mounted. A volume takes over the owner of the folder that it covers.
install -d -m 755 "$root"/{data,etc/systole}
install -d -m 755 -o "$user" -g "$user" "$root"/var/{cache,lib}/systole
install -d -m 1777 "$root/tmp"
