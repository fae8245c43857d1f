#!/bin/sh
# precompile.sh COMPILER ARGUMENT..: runs the compiler. If the compiler makes a precompiled header, the script
# writes a digest beside it: the digest of the header's preprocessed text.
#
# Compilers write absolute paths and addresses into a precompiled header. So the header differs from clone to
# clone, and ccache must not keep it. With CCACHE_PCH_EXTSUM ccache compares digests in place of precompiled
# headers. So ccache can use what another clone has compiled with the same header text.
set -eu
"$@"
header=
before=
for argument; do  # Changes the command's output from HEADER to HEADER.text.
  shift
  case $before$argument in
  -o*.pch | -o*.gch)
    header=$argument
    argument=$header.text
    ;;
  esac
  before=$argument
  set -- "$@" "$argument"
done
if [ "$header" ]; then
  "$@" -E -P
  sha256sum <"$header.text" >"$header.sum"
  rm "$header.text"
fi
