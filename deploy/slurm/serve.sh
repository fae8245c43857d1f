#!/bin/bash
# A task of train.sbatch: keeps a server running on this node, and publishes the server's address.
#
#   serve.sh JOB   JOB: the job's folder, with certificates in JOB/tls
#
# JOB/addresses/NODE.address has the address while the server serves. If a server ends, the script starts it again after
# a pause of 1 s. Each further end doubles the pause, up to 60 s. The script gives up if the first server ends before it
# serves, or after ten restarts in a row. If a server has run for a minute, the count and the pause begin anew.
set -euo pipefail

readonly job=$1 node=$SLURMD_NODENAME
readonly address=$job/addresses/$node.address
# A folder that other nodes do not see.
own=$(mktemp -d "${TMPDIR:-/tmp}/systole.XXXXXX")
readonly own
server=''
clean_up() {
  local status=$?
  trap - EXIT INT TERM HUP
  rm -f "$address"
  if [[ -n $server ]]; then
    kill "$server" 2>/dev/null || true
    wait "$server" || true
  fi
  rm -rf "$own"
  exit "$status"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

options=(
  --listen "${SYSTOLE_LISTEN:-0.0.0.0:0}" --port-file "$own/port" --threads "$(nproc)"
  --tls-certificate "$job/tls/server.pem" --tls-key "$job/tls/server.key" --tls-client-ca "$job/tls/ca.pem"
)
[[ -z ${SYSTOLE_CONFIG:-} ]] || options+=(--config "$SYSTOLE_CONFIG")
# Datasets separated by spaces, such as: photos=/data/photos-*.tfrecord labels=/data/labels-*.tfrecord
read -ra datasets <<<"${SYSTOLE_DATASETS:-}"
for dataset in ${datasets[@]+"${datasets[@]}"}; do options+=(--dataset "$dataset"); done
read -ra more <<<"${SYSTOLE_SERVER_OPTIONS:-}"
options+=(${more[@]+"${more[@]}"})

# Starts the server, waits until it ends, and returns its exit status.
serve() {
  local status=0
  rm -f "$own/port"
  systole-server "${options[@]}" &
  server=$!
  while kill -0 "$server" 2>/dev/null; do
    if [[ -e $own/port ]]; then
      # The host of the address is the node's name: other nodes can look it up, and the server's certificate has it.
      echo "$node:$(<"$own/port")" >"$address.new"
      mv "$address.new" "$address"
      served=yes
      break
    fi
    sleep 0.1
  done
  wait "$server" || status=$?
  server=''
  rm -f "$address"
  return "$status"
}

served='' failures=0 pause=1
while true; do
  begin=$SECONDS
  status=0
  serve || status=$?
  if [[ -z $served ]]; then exit "$status"; fi
  if ((SECONDS - begin >= 60)); then failures=0 pause=1; fi
  failures=$((failures + 1))
  if ((failures > 10)); then
    echo "serve.sh: the server on $node has ended $failures times in a row, last with status $status" >&2
    exit 1
  fi
  echo "serve.sh: the server on $node has ended with status $status; another starts in $pause s" >&2
  # `sleep` runs in the background, so that a signal ends the wait at once.
  sleep "$pause" &
  wait $! || true
  pause=$((pause < 30 ? pause * 2 : 60))
done
