#!/usr/bin/env bash
# Compares `systole feed` with clients in Python that use only the .proto files and proto/README.md:
# feed_client.py, and the client in proto/README.md.
#
#   tests/interop/run.sh BUILD_DIR   BUILD_DIR, such as build/release, has systole and systole-server
#
# The first run makes a Python environment in build/python-interop, from PyPI. Later runs make the
# environment again only if requirements.txt has changed. All other files are in a temporary folder.
# At its end, also after a failure or a signal, the script removes this folder and ends the server.
# Exit code: 0 if every check passed.
set -euo pipefail

if [[ $# -ne 1 || $1 == -* ]]; then
  echo "usage: $0 BUILD_DIR" >&2
  exit 2
fi
build=$(realpath -- "$1")
readonly systole=$build/systole
readonly server_program=$build/systole-server
for program in "$systole" "$server_program"; do
  if [[ ! -x $program ]]; then
    echo "$0: no program $program; build it first" >&2
    exit 2
  fi
done
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
readonly here=$PWD/tests/interop
readonly environment=$PWD/build/python-interop
readonly python=$environment/bin/python
work=$(mktemp -d /tmp/systole-interop.XXXXXX)
readonly work

server_pid=
client_pid=

# Sends TERM. If the process still runs after five minutes, sends KILL.
stop() {
  local pid=$1
  [[ -n $pid ]] || return 0
  kill -TERM "$pid" 2>/dev/null || true
  for _ in {1..3000}; do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  kill -KILL "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || true
}

clean_up() {
  local status=$?
  trap - EXIT INT TERM HUP
  stop "$client_pid"
  stop "$server_pid"
  rm -rf "$work"
  exit "$status"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

make_environment() {
  cmp -s "$here/requirements.txt" "$environment/complete" && return
  echo "making $environment"
  rm -rf "$environment"
  python3 -m venv "$environment"
  "$python" -m pip install --quiet --no-compile --disable-pip-version-check -r "$here/requirements.txt"
  cp "$here/requirements.txt" "$environment/complete"
}

make_data() {
  "$systole" make-flowers "$work/images" --images 100 --size 96 >/dev/null
  "$systole" pack "$work/images" "$work/flowers" --shards 3 --validation 0.2 >/dev/null

  # The feed has every layout except HWCN_TILED, and every element type except FLOAT16. Its largest tensor comes in
  # several chunks.
  cat >"$work/mixed.textproto" <<'SPEC'
dataset: "flowers" seed: 11 epochs: 2
shuffle { mode: WINDOW block_records: 4 window_records: 16 }
global_batch: 24 num_cores: 3 on_corrupt: MASK
outputs {
  name: "hwcn" feature: "image" dtype: FLOAT32 layout: HWCN
  transforms { decode_jpeg {} }
  transforms { random_resized_crop { height: 160 width: 176 } }
  transforms { normalize { scale: 0.00392156862745098 mean: 0.5 stddev: 0.25 } }
}
outputs {
  name: "nchw" feature: "image" dtype: BFLOAT16 layout: NCHW
  transforms { decode_jpeg { dct: IFAST } }
  transforms { center_crop { height: 20 width: 30 } }
  transforms { random_flip {} }
}
outputs {
  name: "grey/nhwc" feature: "image" dtype: UINT8
  transforms { decode_jpeg { channels: 1 } }
  transforms { resize { height: 17 width: 19 } }
}
outputs { name: "label" feature: "label" dtype: INT32 }
outputs { name: "id" feature: "record_id" dtype: INT64 }
SPEC

  # In the last step of each epoch, core 3 is partly padding and core 4 is all padding. `systole feed`
  # and the client in proto/README.md receive uint8 pixels and normalize these themselves.
  # feed_client.py receives normalized values.
  cat >"$work/pad.textproto" <<'SPEC'
dataset: "flowers" seed: 3 epochs: 2
shuffle { mode: GLOBAL }
global_batch: 30 num_cores: 5 tail: PAD
outputs {
  name: "image" feature: "image" dtype: BFLOAT16 layout: HWCN
  transforms { decode_jpeg {} }
  transforms { random_resized_crop { height: 24 width: 24 } }
  transforms { round_to_uint8 {} }
  transforms { normalize { mean: 127.5 stddev: 63.75 } }
}
outputs { name: "id" feature: "record_id" dtype: INT64 }
SPEC
  # The feed has three ways to finish uint8 pixels in the client, each in every floating-point type and in every layout
  # except HWCN_TILED.
  cat >"$work/compact.textproto" <<'SPEC'
dataset: "flowers" seed: 4 epochs: 2
global_batch: 30 num_cores: 5 tail: PAD
SPEC
  local layout dtype end number=0
  for layout in NHWC NCHW HWCN; do
    for dtype in FLOAT32 BFLOAT16 FLOAT16; do
      for end in \
        'normalize { scale: 0.0039 mean: [0.4, 0.5, 0.6] stddev: [0.2, 0.3, 0.4] }' \
        'gamma { gamma_min: 0.7 gamma_max: 0.7 } } transforms { cast { dtype: FLOAT32 scale: true }' \
        'normalize { mean: [10, 20, 30] } } transforms { clip_by_value { min: -5 max: 100.3 }'; do
        number=$((number + 1))
        cat >>"$work/compact.textproto" <<SPEC
outputs {
  name: "pixels$number" feature: "image" dtype: $dtype layout: $layout
  transforms { decode_jpeg {} }
  transforms { random_resized_crop { height: 9 width: 11 } }
  transforms { round_to_uint8 {} }
  transforms { $end }
}
SPEC
      done
    done
  done
  sed 's/"flowers"/"tulips"/' "$work/pad.textproto" >"$work/unknown.textproto"
}

start_server() {
  # If this script is killed, the kernel kills the server.
  setpriv --pdeathsig KILL "$server_program" --listen 127.0.0.1:0 --port-file "$work/port" \
    --dataset "flowers=$work/flowers-train-*.tfrecord" \
    --dataset "flowers-validation=$work/flowers-validation-*.tfrecord" \
    >"$work/server.log" 2>&1 </dev/null &
  server_pid=$!
  for _ in {1..6000}; do
    [[ -s $work/port ]] && break
    kill -0 "$server_pid" 2>/dev/null || break
    sleep 0.05
  done
  if [[ ! -s $work/port ]]; then
    echo "the server did not start; its log:" >&2
    cat "$work/server.log" >&2
    exit 1
  fi
  server=127.0.0.1:$(<"$work/port")
}

passed=0
failed=0

# check NAME COMMAND..: runs the command and counts whether it passed. If it failed, prints the end of
# its output.
check() {
  local name=$1
  shift
  if "$@" >"$work/check.log" 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $name"
    tail -n 20 "$work/check.log"
  fi
}

client() { timeout 1200 "$python" "$here/feed_client.py" "$@"; }

# same_lines FILE FEED_OPTION..: checks that FILE equals what `systole feed --digest` prints with these
# options, and is not empty.
same_lines() {
  local file=$1
  shift
  timeout 1200 "$systole" feed --server "$server" --digest "$@" >"$work/wanted" || return 1
  [[ -s $work/wanted ]] && diff "$work/wanted" "$file"
}

# same_digests OPTION..: checks that feed_client.py and `systole feed` print the same digests.
same_digests() {
  client --server "$server" "$@" >"$work/seen" && same_lines "$work/seen" "$@"
}

readme_client() {
  local spec=$work/$1.textproto
  awk '/^```python/ { on = 1; next } /^```/ { on = 0 } on' proto/README.md >"$work/readme.py"
  timeout 1200 "$python" "$work/readme.py" "$server" "$spec" >"$work/seen" &&
    same_lines "$work/seen" --spec "$spec" --steps 20
}

# fails_saying WORDS OPTION..: checks that feed_client.py ends with exit code 1, and that its only
# output is one line on stderr, with WORDS in it.
fails_saying() {
  local words=$1 status=0
  shift
  client "$@" >"$work/seen" 2>"$work/words" || status=$?
  cat "$work/seen" "$work/words"
  [[ $status -eq 1 && ! -s $work/seen && $(wc -l <"$work/words") -eq 1 ]] &&
    grep -qF -- "$words" "$work/words"
}

# Stops the server while feed_client.py reads a very long feed. The client must say why it fails.
drained_server() {
  local status=0
  : >"$work/seen"
  timeout 1200 "$python" "$here/feed_client.py" --server "$server" \
    --spec deploy/specs/flowers.textproto --steps 1000000000 \
    >"$work/seen" 2>"$work/words" </dev/null &
  client_pid=$!
  for _ in {1..6000}; do
    [[ -s $work/seen ]] && break
    sleep 0.05
  done
  stop "$server_pid"
  server_pid=
  wait "$client_pid" || status=$?
  client_pid=
  cat "$work/words"
  [[ -s $work/seen && $status -eq 1 ]] && grep -q 'the server drains' "$work/words"
}

make_environment
export PYTHONPATH=$work/stubs PYTHONDONTWRITEBYTECODE=1 no_grpc_proxy=127.0.0.1
mkdir "$work/stubs"
"$python" -m grpc_tools.protoc -I proto --python_out="$work/stubs" \
  --grpc_python_out="$work/stubs" proto/systole/v1/{feed,slots,service}.proto
make_data
start_server

check "unit tests" "$python" "$here/feed_client_test.py"
for spec in {deploy/specs/{flowers,flowers-eval,record-ids},"$work"/{mixed,pad,compact}}.textproto; do
  name=$(basename "$spec" .textproto)
  check "$name" same_digests --spec "$spec" --steps 6
  check "$name, two cores" same_digests --spec "$spec" --steps 2 --cores 1:3
  # The evaluation feed has one step.
  [[ $name == flowers-eval ]] ||
    check "$name, from step 1" same_digests --spec "$spec" --first-step 1 --steps 4
done
check "flowers, 1,100 steps (two calls), one core" \
  same_digests --spec deploy/specs/flowers.textproto --first-step 5 --steps 1100 --cores 7:8
for name in mixed pad compact; do
  check "the client in proto/README.md: $name" readme_client "$name"
done
check "unknown dataset" fails_saying "NOT_FOUND: no dataset 'tulips'" \
  --server "$server" --spec "$work/unknown.textproto" --steps 1
check "no such cores" fails_saying "INVALID_ARGUMENT: cores [4, 9)" \
  --server "$server" --spec "$work/pad.textproto" --steps 1 --cores 4:9
check "no server" fails_saying "UNAVAILABLE: " \
  --server "unix:$work/nobody" --spec "$work/pad.textproto" --steps 1
check "a server that drains" drained_server

[[ $failed -eq 0 ]] || { echo "the server's log ends:" && tail -n 5 "$work/server.log"; }
echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
