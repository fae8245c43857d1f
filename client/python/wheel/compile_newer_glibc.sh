#!/usr/bin/env bash
# Makes the library that replaces what an older glibc lacks.
#
#   client/python/wheel/compile_newer_glibc.sh SOURCE LIBRARY
#
# SOURCE is newer_glibc.c, or includes it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
readonly debian=/lib/x86_64-linux-gnu
# An older glibc has some functions not in libc, but in these libraries.
readonly of_glibc=("$debian"/lib{pthread.so.0,dl.so.2,rt.so.1,util.so.1,resolv.so.2,m.so.6})
cc -O2 -fno-builtin -Wall -Wextra -Werror -fPIC -fvisibility=hidden -shared "-I$here" \
  "-Wl,-soname,$(basename "$2")" "$1" -Wl,--no-as-needed "${of_glibc[@]}" -o "$2"
