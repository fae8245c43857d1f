#!/usr/bin/env bash
# Prints the Debian packages of the libraries that programs need, one a line, sorted.
#
#   deploy/container/run_time_packages.sh FILE..    FILE: a program or a shared object
#   deploy/container/run_time_packages.sh --libraries FILE..    prints each library's path and package
#
# The names of the libraries come from the dynamic linker. So a package is named only if a program
# cannot start without it.
set -euo pipefail

with_libraries=
if [[ ${1:-} == --libraries ]]; then
  with_libraries=yes
  shift
fi
if [[ $# -eq 0 || $1 == -* ]]; then
  echo "usage: $0 [--libraries] FILE.." >&2
  exit 2
fi

# A package's list may name a file of /usr/lib by its old path in /lib: Debian 12 has merged these
# folders.
package_of() {
  local found
  found=$(dpkg-query -S "$1" 2>/dev/null || dpkg-query -S "${1#/usr}" 2>/dev/null) || {
    echo "$0: no package has $1" >&2
    return 1
  }
  echo "${found%%:*}"
}

linked=$(ldd "$@")
if grep 'not found' <<<"$linked" >&2; then
  echo "$0: a library is missing; install it" >&2
  exit 3
fi
# A line is "NAME => PATH (ADDRESS)", or "PATH (ADDRESS)" for the dynamic linker itself.
sed -En 's/^\t(.* => )?(\/[^ ]+) \(0x[0-9a-f]+\)$/\2/p' <<<"$linked" | sort -u |
  while read -r library; do
    package=$(package_of "$(realpath "$library")") || exit
    echo "${with_libraries:+$library }$package"
  done | sort -u
