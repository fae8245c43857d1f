#!/usr/bin/env bash
# Draws and packs flowers with the program `systole` of an installed wheel, and trains on them.
#
#   tests/client/python/wheel_training.sh PYTHON FOLDER
#
# PYTHON is the interpreter for which the wheel is installed. The program `systole` is in the same
# folder as PYTHON. The files go to FOLDER.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=$1
cd "$2"
PATH=$(dirname "$python"):$PATH
systole make-flowers images --images 60 --size 64 --json >/dev/null
systole pack images packed --shards 2 >/dev/null
"$python" -B "$here/wheel_training.py" "packed-train-*.tfrecord"
