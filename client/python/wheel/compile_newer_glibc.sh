#!/usr/bin/env bash
# Makes the library that replaces what an older glibc lacks.
#
#   client/python/wheel/compile_newer_glibc.sh SOURCE LIBRARY [ROOT]
#
# SOURCE is newer_glibc.c, or includes it. If ROOT is given, LIBRARY is for aarch64. ROOT is the folder that
# deploy/aarch64/make_root.sh makes.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
if [[ $# -eq 3 ]]; then
  compiler=(aarch64-linux-gnu-gcc "--sysroot=$3")
  readonly debian=$3/lib/aarch64-linux-gnu
else
  compiler=(cc)
  readonly debian=/lib/x86_64-linux-gnu
fi
# An older glibc has some functions not in libc, but in these libraries.
readonly of_glibc=("$debian"/lib{pthread.so.0,dl.so.2,rt.so.1,util.so.1,resolv.so.2,m.so.6})
"${compiler[@]}" -O2 -fno-builtin -Wall -Wextra -Werror -fPIC -fvisibility=hidden -shared "-I$here" \
  "-Wl,-soname,$(basename "$2")" "$1" -Wl,--no-as-needed "${of_glibc[@]}" -o "$2"
