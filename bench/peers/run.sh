#!/usr/bin/env bash
# Compares Systole with its peers: builds Systole, installs the peers, runs all in turns, and prints
# a table. A side is Systole or a peer with one group of settings.
#
#   bench/peers/run.sh              5 rounds
#   bench/peers/run.sh --quick      3 shorter rounds
#   bench/peers/run.sh --smoke      1 tiny round: shows that every side runs, measures nothing
#   bench/peers/run.sh --tune       instead runs each peer with each of its thread settings
#   bench/peers/run.sh --breadth    instead runs the pipelines of bench/breadth_rows.cc
#   --only TEXT  (repeatable) only sides whose names contain TEXT, such as --only tf.data
#   --env DIR    where the Python environments are or go; default build/peers/env
#
# Table and JSON also go to build/peers/{full,quick,smoke}/ (with --breadth: full-breadth/ and so on).
# Ends with 0 if every side ran, even if a ratio misses its bound. Needs Python 3.11 or newer
# with venv and pip, and about 10 GB of disk for the environments. README.md says how each peer is
# set up and how to read the table.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

cmake --preset release >/dev/null </dev/null
cmake --build build/release -j "${SYSTOLE_JOBS:-$(nproc)}" \
  --target breadth_spec feed_timer make_corpus systole-server </dev/null
exec python3 bench/peers/run.py --build build/release "$@"
