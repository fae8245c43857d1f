#!/bin/sh
# precompile.sh COMPILER ARGUMENT..: runs the compiler. If the compiler makes a precompiled header, the script
# writes a digest beside it: the digest of the header's preprocessed text.
#
# Compilers write absolute paths and addresses into a precompiled header. So two clones have different
# precompiled headers, even if the text is the same, and ccache must not keep a precompiled header. With
# CCACHE_PCH_EXTSUM ccache compares the digests and not the precompiled headers. So ccache can use what another
# clone has compiled with the same text.
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
