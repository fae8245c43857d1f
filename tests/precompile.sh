#!/bin/sh
# precompile.sh COMPILER ARGUMENT..: runs the compiler. If it makes a precompiled header, its digest is
# written beside it: that of the text which the header and all that it includes come to.
#
# Compilers write absolute paths and addresses into a precompiled header, so it is another one in each clone,
# and no clone can use that of another. ccache must not keep it. With CCACHE_PCH_EXTSUM ccache asks for the
# digest in place of the header, and so finds what another clone has compiled with the same text.
set -eu
"$@"
header=
before=
for argument; do  # The same command, with another output.
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
