#!/usr/bin/env python3
"""Compares two builds by the processor time of a step, server and client together.

  bench/cost.py BASE BUILD [--rounds N] [--scale X]

  bench/cost.py ../base/build/release build/release    what a change costs
  bench/cost.py build/release build/release            what the admin port costs (plus noise)

BASE and BUILD are folders that have `systole` and `systole-server`. BUILD's server has its admin
port open, and this script scrapes it every second. BASE's server has no admin port. In each round
both builds run once. In a run, a new server feeds a fixed number of steps to `systole feed`. The
cost of a run is the user and system time of the server (by its process clock) and of the client (by
getrusage). The script prints each build's median cost, and the median, smallest and largest of the
rounds' ratios BUILD / BASE. Other programs change processor time little, but they use the same
caches. For figures that you rely on, use a quiet machine.
"""

import argparse
import contextlib
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from typing import NamedTuple

_LONGEST_WAIT_S = 300

_SMALL_RECORD_BYTES = 784
_SMALL_RECORDS = 20_000


class Feed(NamedTuple):
    what: str
    shards: str  # A glob in the folder of data.
    steps: int
    spec: str


_FEEDS = [
    Feed(
        "JPEG to bf16 crops of 224 x 224, 32 a step",
        "flowers-train-*",
        120,
        "global_batch: 32 num_cores: 1 "
        'outputs { name: "image" feature: "image" dtype: BFLOAT16 transforms { decode_jpeg {} } '
        "transforms { random_resized_crop { height: 224 width: 224 } } "
        "transforms { random_flip {} } transforms { normalize { scale: 0.0039 } } } "
        'outputs { name: "label" feature: "label" dtype: INT32 }',
    ),
    Feed(
        f"records of {_SMALL_RECORD_BYTES} bytes, copied, 32 a step",
        "small.tfrecord",
        40_000,
        "global_batch: 32 num_cores: 1 "
        'outputs { name: "bytes" feature: "record" dtype: UINT8 '
        f"shape: {_SMALL_RECORD_BYTES} transforms {{ decode_raw {{}} }} }}",
    ),
    Feed(
        f"records of {_SMALL_RECORD_BYTES} bytes, copied, 8 cores with one each a step",
        "small.tfrecord",
        10_000,
        "global_batch: 8 num_cores: 8 "
        'outputs { name: "bytes" feature: "record" dtype: UINT8 '
        f"shape: {_SMALL_RECORD_BYTES} transforms {{ decode_raw {{}} }} }}",
    ),
]


class Cost(NamedTuple):
    """Microseconds of processor time for each step."""

    server: float
    client: float

    @property
    def all(self):
        return self.server + self.client


def _crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


def _masked_crc(data, table):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF).to_bytes(4, "little")


def _write_small_records(path):
    """Writes a TFRecord shard. All records are equal, so their checksum is computed only once."""
    table = _crc_table()
    length = _SMALL_RECORD_BYTES.to_bytes(8, "little")
    payload = bytes(i * 7 & 0xFF for i in range(_SMALL_RECORD_BYTES))
    record = length + _masked_crc(length, table) + payload + _masked_crc(payload, table)
    path.write_bytes(record * _SMALL_RECORDS)


def _make_data(build, folder):
    for command in (
        ["make-flowers", folder / "images", "--images", "256", "--seed", "1"],
        ["pack", folder / "images", folder / "flowers", "--shards", "2"],
    ):
        subprocess.run([build / "systole", *command], check=True, capture_output=True)
    _write_small_records(folder / "small.tfrecord")


def _wait_for_file(path, process):
    deadline = time.monotonic() + _LONGEST_WAIT_S
    while time.monotonic() < deadline:
        if path.exists() and (text := path.read_text()).endswith("\n"):
            return text.strip()
        if process.poll() is not None:
            sys.exit(f"cost.py: the server has ended with {process.returncode}")
        time.sleep(0.01)
    sys.exit("cost.py: the server does not serve")


def _cpu_seconds(pid):
    """The processor time of a running process, all threads."""
    return time.clock_gettime(~pid << 3 | 2)  # CPUCLOCK_SCHED, see clock_getcpuclockid(3).


@contextlib.contextmanager
def _scraped(port):
    """Scrapes the admin port every second until the block ends."""
    ends = threading.Event()

    def scrape():
        while not ends.wait(1):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60).read()

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def _run(build, feed, steps, with_admin, data):
    """Runs one server and one client. Returns the cost of a step."""
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        spec = work / "spec.textproto"
        spec.write_text(f'dataset: "data" seed: 3 shuffle {{ mode: GLOBAL }} {feed.spec}')
        arguments = [build / "systole-server", "--listen", "127.0.0.1:0"]
        arguments += ["--port-file", work / "port", "--dataset", f"data={data}/{feed.shards}"]
        if with_admin:
            arguments += ["--admin", "127.0.0.1:0", "--admin-port-file", work / "admin-port"]
        server = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            port = _wait_for_file(work / "port", server)
            scraping = contextlib.nullcontext()
            if with_admin:
                scraping = _scraped(_wait_for_file(work / "admin-port", server))
            with scraping:
                before = _cpu_seconds(server.pid)
                client = subprocess.Popen(
                    [build / "systole", "feed", "--server", f"127.0.0.1:{port}", "--spec", spec]
                    + ["--steps", str(steps)],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                )
                error = client.stderr.read()
                _, status, usage = os.wait4(client.pid, 0)
                client.returncode = os.waitstatus_to_exitcode(status)
                server_seconds = _cpu_seconds(server.pid) - before
            if client.returncode != 0:
                sys.exit(f"cost.py: systole feed failed: {error.decode()}")
        finally:
            server.send_signal(signal.SIGKILL)
            server.wait()
    micros = 1e6 / steps
    return Cost(server_seconds * micros, (usage.ru_utime + usage.ru_stime) * micros)


def _compare(feed, builds, rounds, scale, data):
    steps = max(1, int(feed.steps * scale))
    costs = ([], [])
    for number in range(rounds):
        for side in (0, 1) if number % 2 == 0 else (1, 0):  # The builds take turns at being first.
            costs[side].append(_run(builds[side], feed, steps, side == 1, data))
    print(f"{feed.what} ({steps} steps, {rounds} rounds):")
    for name, side in zip(("BASE", "BUILD"), costs, strict=True):
        totals = [cost.all for cost in side]
        print(
            f"  {name:5}  {statistics.median(totals):9.2f} us a step "
            f"({min(totals):.2f} to {max(totals):.2f}): "
            f"server {statistics.median(cost.server for cost in side):.2f}, "
            f"client {statistics.median(cost.client for cost in side):.2f}"
        )
    ratios = [b.all / a.all for a, b in zip(*costs, strict=True)]
    medians = [statistics.median(cost.all for cost in side) for side in costs]
    print(
        f"  BUILD / BASE: {medians[1] / medians[0]:.4f} of the medians; by round "
        f"{statistics.median(ratios):.4f} ({min(ratios):.4f} to {max(ratios):.4f})",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--scale", type=float, default=1, help="factor for the number of steps")
    options = parser.parse_args()
    builds = (options.base.resolve(), options.build.resolve())
    with tempfile.TemporaryDirectory() as name:
        data = pathlib.Path(name)
        _make_data(builds[1], data)
        for feed in _FEEDS:
            _compare(feed, builds, options.rounds, options.scale, data)


if __name__ == "__main__":
    main()
