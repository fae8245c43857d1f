#!/usr/bin/env bash
# Checks deploy/slurm: runs shellcheck on its scripts, and runs whole jobs on this machine. The jobs use the
# real programs of Systole, and stubs of Slurm's commands (slurm_stubs/).
#
#   tests/deploy/slurm.sh BUILD_DIR   BUILD_DIR, such as build/release, has systole and systole-server
#
# All files are in a temporary folder. At its end, also after a failure or a signal, the script removes this
# folder, and ends a job that still runs. Exit code: 0 if every check passed.
set -euo pipefail

if [[ $# -ne 1 || $1 == -* ]]; then
  echo "usage: $0 BUILD_DIR" >&2
  exit 2
fi
build=$(realpath -- "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
work=$(mktemp -d /tmp/systole-slurm.XXXXXX)
readonly build work
batch='' alone=''
clean_up() {
  local status=$?
  trap - EXIT INT TERM HUP
  for process in $batch $alone; do
    kill "$process" 2>/dev/null || true
    wait "$process" 2>/dev/null || true
  done
  [[ $status -eq 0 ]] || tail -n 40 "$work"/*.log >&2
  rm -rf "$work"
  exit "$status"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
fail() {
  echo "$0: $*" >&2
  exit 1
}
# wait_for WHAT COMMAND..: waits until the command succeeds.
wait_for() {
  local what=$1 end=$((SECONDS + 300))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || fail "after 300 s this still does not hold: $what"
    sleep 0.1
  done
}

shellcheck deploy/slurm/serve.sh deploy/slurm/train.sbatch tests/deploy/slurm.sh tests/deploy/slurm_stubs/*

export PATH=$PWD/tests/deploy/slurm_stubs:$build:$PATH
systole make-flowers "$work/images" --images 200 --size 64 >/dev/null
systole pack "$work/images" "$work/data/flowers" --shards 3 >/dev/null
export DATA=$work/data
cat >"$work/spec.textproto" <<'SPEC'
dataset: "flowers" seed: 3 shuffle { mode: GLOBAL } global_batch: 16 num_cores: 2 epochs: 150 tail: PAD
outputs { name: "image" feature: "image" transforms { decode_jpeg {} }
  transforms { random_resized_crop { height: 32 width: 32 } } dtype: UINT8 }
SPEC
systole-server --listen "unix:$work/socket" --port-file "$work/served" --dataset "flowers=$DATA/flowers-train-*" \
  2>"$work/alone.log" &
alone=$!
wait_for "the server alone serves" test -e "$work/served"
systole feed --server "unix:$work/socket" --spec "$work/spec.textproto" --steps 0 --digest 2>"$work/feed.log" |
  sort >"$work/wanted"
kill "$alone"
wait "$alone" || fail "the server alone ended with $?"
alone=''
lines=$(wc -l <"$work/wanted")

# The program of the job's two trainers. A trainer reads one core of every step, and writes a line with a
# digest for each step. After 30 lines the trainer makes the file begun-RANK, and waits until the test makes
# the file `go`.
cat >"$work/trainer.sh" <<'TRAINER'
#!/bin/bash
set -euo pipefail
feed() {
  systole feed --server "$SYSTOLE_SERVERS" --spec "$WORK/spec.textproto" --cores "$RANK:$((RANK + 1))" --digest \
    --tls --tls-ca "$SYSTOLE_TLS/ca.pem" --tls-certificate "$SYSTOLE_TLS/client.pem" \
    --tls-key "$SYSTOLE_TLS/client.key" --prefetch-bytes 1 "$@"
}
[[ $WORLD_SIZE == 2 ]]
# While the trainer waits, `feed` must wait, too: the pipe has room for only a third of its lines.
feed --steps 0 | {
  for ((i = 0; i < 30; i++)); do
    read -r line
    echo "$line"
  done
  touch "$WORK/begun-$RANK"
  until [[ -e $WORK/go || ! -e $WORK ]]; do sleep 0.1; done
  cat
} >"$WORK/digests-$RANK"
exit "${STATUS:-0}"
TRAINER
chmod +x "$work/trainer.sh"

export WORK=$work SYSTOLE_SLURM=$PWD/deploy/slurm SYSTOLE_LISTEN=127.0.0.1:0 SYSTOLE_JOBS_FOLDER=$work/jobs
export SLURM_SUBMIT_DIR=$work SLURM_JOB_NODELIST_HET_GROUP_0='node[1-2]' SLURM_JOB_CPUS_PER_NODE_HET_GROUP_0='2(x2)'
# start_job ID [ARGUMENT..]: starts the job in the background.
start_job() {
  SLURM_JOB_ID=$1 bash deploy/slurm/train.sbatch "${@:2}" >"$work/job-$1.log" 2>&1 &
  batch=$!
}
# Prints the ids of the job's servers.
servers_of() {
  local process words
  for process in /proc/[0-9]*; do
    words=$({ tr '\0' ' ' <"$process/cmdline"; } 2>/dev/null) || continue
    [[ $words != systole-server*"$work/jobs/$1/"* ]] || echo "${process#/proc/}"
  done
}
end_job() {
  local status=0
  wait "$batch" || status=$?
  batch=''
  [[ $status -eq $1 ]] || fail "the job ended with $status, not with $1"
}

echo "a job's feed goes on when its servers are killed, and has the same bytes"
export SYSTOLE_DATASETS="flowers=$DATA/flowers-train-*"
job=$work/jobs/1
start_job 1 "$work/trainer.sh"
wait_for "both trainers read" test -e "$work/begun-0" -a -e "$work/begun-1"
two_are_listed() { [[ $(wc -l <"$job/servers") -eq 2 ]]; }
wait_for "two servers are listed" two_are_listed
cp "$job/servers" "$work/before"
old=$(servers_of 1)
[[ $(wc -w <<<"$old") -eq 2 ]] || fail "two servers should run, not: $old"
# shellcheck disable=SC2086  # A list of words.
kill -KILL $old
both_are_new() { [[ $(grep -vcxFf "$work/before" "$job/servers") -eq 2 ]]; }
wait_for "the list has two new servers" both_are_new
touch "$work/go"
end_job 0
[[ -z $(servers_of 1) ]] || fail "servers remain: $(servers_of 1)"
sort "$work"/digests-[01] | cmp - "$work/wanted" || fail "the digests differ"
((lines > 3000)) || fail "the feed has only $lines lines, so the pipes may hold them all"
[[ ! -e $job/tls && ! -e $job/addresses ]] || fail "keys remain in $job"

echo "the job ends with the exit status of its trainers"
STATUS=7 start_job 2 "$work/trainer.sh"
end_job 7
[[ -z $(servers_of 2) ]] || fail "servers remain: $(servers_of 2)"

echo "a job that gets SIGTERM leaves no process"
rm "$work/go" "$work"/begun-*
start_job 3 "$work/trainer.sh"
wait_for "both trainers read" test -e "$work/begun-0" -a -e "$work/begun-1"
kill "$batch"
end_job 143
[[ -z $(servers_of 3) ]] || fail "servers remain: $(servers_of 3)"
touch "$work/go"

echo "nobody reads without the job's certificates"
rm "$work/go" "$work"/begun-*
start_job 4 "$work/trainer.sh"
wait_for "both trainers read" test -e "$work/begun-0" -a -e "$work/begun-1"
# This client has the certificate of the authority, but no certificate of its own.
if systole feed --server "file:$work/jobs/4/servers" --spec "$work/spec.textproto" --steps 1 --connect-timeout 3s \
  --tls --tls-ca "$work/jobs/4/tls/ca.pem" >"$work/stranger.log" 2>&1; then
  fail "a stranger has read the datasets"
fi
[[ $(stat -c %a "$work/jobs/4") == 700 && ! -e $work/jobs/4/tls/ca.key ]] || fail "the job's keys are open to others"
touch "$work/go"
end_job 0

echo "a job without data ends at once, with the server's error message"
SYSTOLE_DATASETS="flowers=$DATA/nothing-*" start_job 5 "$work/trainer.sh"
end_job 1
grep -q 'nothing-\*' "$work/job-5.log" || fail "the job's log does not say what is missing"
grep -q 'no server has started' "$work/job-5.log" || fail "the job's log does not say that no server started"

echo "deploy/slurm: all checks passed"
