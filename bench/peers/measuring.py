"""What the peers' programs share: their command line, the clock, and the report.

Every program takes the same options, makes an iterator of image batches in host memory, and hands
it to report(), which prints one JSON object:

  peer, version, settings   what ran
  images, bytes             of the measured batches
  seconds                   the time that the measured batches took
  cpu_seconds               user and system time of the program and every process below it
  peak_bytes                the largest resident sets of all these processes, added up (pages that
                            processes share count once for each)
  shape, mean, stddev       of some batches after the measured ones: run.py compares them with those
                            of the other sides
"""

import argparse
import glob
import json
import os
import time

import numpy as np

# The crop rule and the normalisation of Systole and of every peer.
SIZE = 224
AREA = (0.08, 1.0)
ASPECT = (3 / 4, 4 / 3)
MEAN = 127.5
STDDEV = 63.75
# CHANNEL_MEAN and CHANNEL_STDDEV are for pixels from 0 to 1. The pipelines of bench/breadth_rows.cc
# use the same numbers.
CHANNEL_MEAN = [0.485, 0.456, 0.406]
CHANNEL_STDDEV = [0.229, 0.224, 0.225]

# The values of this many batches are reported. Photographs differ, so the mean of a single batch
# says little.
_BATCHES_LOOKED_AT = 8


def arguments(description, **more):
    """Parses the command line. `more`: further options, as NAME={keywords of add_argument}."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--shards", required=True, help="glob of TFRecord files")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, required=True, help="batches measured")
    parser.add_argument("--warm-up", type=int, default=4, help="batches before the measured ones")
    parser.add_argument("--dtype", choices=("f32", "bf16"), default="f32")
    parser.add_argument("--threads", type=int, required=True,
                        help="threads or worker processes; 0: the peer chooses")
    parser.add_argument("--work", default="build/peers/work", help="folder for converted copies")
    for name, keywords in more.items():
        parser.add_argument("--" + name.replace("_", "-"), **keywords)
    options = parser.parse_args()
    options.files = sorted(f for f in glob.glob(options.shards) if f.endswith(".tfrecord"))
    if not options.files:
        parser.error(f"no shard matches {options.shards}")
    # Converted copies of each corpus get a folder of their own, named like the corpus's folder
    # (bench/corpora.h).
    corpus = os.path.basename(os.path.dirname(os.path.abspath(options.files[0])))
    options.work = os.path.join(options.work, corpus)
    return options


def _parents_and_ticks():
    """Returns pid -> (parent, CPU ticks) for all processes. The ticks of a process include those of
    its children that have ended."""
    table = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="ascii", errors="replace") as file:
                text = file.read()
        except OSError:
            continue  # The process has ended.
        # The second field, the name in brackets, may hold spaces. So the text is split after the
        # last ')'. Of the fields in proc(5), 4 is the parent, and 14 to 17 are the ticks.
        fields = text[text.rindex(")") + 2:].split()
        table[int(text.split()[0])] = (int(fields[1]), sum(int(field) for field in fields[11:15]))
    return table


def _family(table):
    """The ids of this process and of all below it."""
    family = {os.getpid()}
    grown = True
    while grown:
        more = {pid for pid, (parent, _) in table.items() if parent in family} - family
        family |= more
        grown = bool(more)
    return family


def cpu_seconds():
    table = _parents_and_ticks()
    ticks = sum(table[pid][1] for pid in _family(table))
    return ticks / os.sysconf("SC_CLK_TCK")


def peak_bytes():
    total = 0
    for pid in _family(_parents_and_ticks()):
        try:
            with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
                lines = [line for line in file if line.startswith("VmHWM:")]
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines)
    return total


def report(peer, version, settings, batches, options, more=dict):
    """Takes the warm-up batches, then times options.steps whole batches, and prints the report. A
    batch is an array, or a list of arrays that hold its examples in pieces. more() returns further
    fields of the report."""
    batches = iter(batches)
    for _ in range(options.warm_up):
        next(batches)
    cpu_before = cpu_seconds()
    start = time.monotonic()
    for _ in range(options.steps):
        next(batches)
    seconds = time.monotonic() - start
    cpu = cpu_seconds() - cpu_before
    peak = peak_bytes()
    means, squares = [], []
    for _ in range(_BATCHES_LOOKED_AT):
        batch = next(batches)
        batch = np.concatenate(batch) if isinstance(batch, list) else batch
        if len(batch) != options.batch:
            raise SystemExit(f"{peer}: a batch holds {len(batch)} examples, want {options.batch}")
        values = batch.astype(np.float32)
        means.append(values.mean(dtype=np.float64))
        squares.append(np.square(values).mean(dtype=np.float64))
    mean = float(np.mean(means))
    print(json.dumps({
        "peer": peer,
        "version": version,
        "settings": settings,
        "images": options.batch * options.steps,
        "bytes": batch.nbytes * options.steps,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "peak_bytes": peak,
        "shape": f"{batch.dtype}{list(batch.shape)}",
        "mean": mean,
        "stddev": float(np.sqrt(np.mean(squares) - mean**2)),
        **more(),
    }), flush=True)
