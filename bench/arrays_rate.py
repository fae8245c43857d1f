#!/usr/bin/env python3
"""How fast a LocalFeed gives the rows of arrays, beside memcpy of the same rows.

    bench/arrays_rate.py [--rounds N] [--megabytes N]

Measures rows of 150,528 bytes (uint8) and of 602,112 bytes (float32), in order and shuffled, with
one thread. Feed and memcpy take turns. memcpy copies each batch into one of four buffers in turn.
Prints the medians of the rates, and of the ratios of neighbouring turns. Needs the Python package.
"""

import argparse
import statistics
import time

import numpy as np
import systole

BATCH = 64
SHAPE = (224, 224, 3)


def feed_rate(data, spec):
    """GB/s of a feed, after its first epoch."""
    with systole.LocalFeed(data, spec, threads=1) as feed:
        for _ in feed:
            pass
        taken = 0
        begin = time.perf_counter()
        for batch in feed:
            taken += batch["x"].nbytes
        return taken / (time.perf_counter() - begin) / 1e9


def memcpy_rate(rows, order):
    """GB/s of memcpy, which copies the rows in `order`."""
    buffers = [np.empty((BATCH, *rows.shape[1:]), rows.dtype) for _ in range(4)]
    for buffer in buffers:
        buffer.fill(1)  # Makes the buffer's pages resident before the time is taken.
    begin = time.perf_counter()
    for first in range(0, len(order), BATCH):
        buffer = buffers[first // BATCH % len(buffers)]
        for place, row in enumerate(order[first : first + BATCH]):
            np.copyto(buffer[place], rows[row])
    return len(order) * rows[0].nbytes / (time.perf_counter() - begin) / 1e9


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--megabytes", type=int, default=600, help="megabytes of each array")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    for dtype in ("uint8", "float32"):
        row_bytes = int(np.prod(SHAPE)) * np.dtype(dtype).itemsize
        count = (options.megabytes << 20) // row_bytes // BATCH * BATCH
        rows = rng.integers(0, 256, (count, *SHAPE), dtype=np.uint8).astype(dtype, copy=False)
        data = systole.from_arrays({"x": rows})
        for shuffled in (False, True):
            spec = systole.FeedSpec(
                dataset="x",
                seed=1,
                global_batch=BATCH,
                shuffle=systole.Shuffle("global") if shuffled else None,
                outputs={
                    "x": systole.Output(
                        feature="x",
                        transforms=[systole.DecodeRaw()] if dtype == "uint8" else [],
                        shape=list(SHAPE),
                        dtype=dtype,
                    )
                },
            )
            order = rng.permutation(count) if shuffled else np.arange(count)
            rates, ratios = [], []
            for _ in range(options.rounds):
                copied = memcpy_rate(rows, order)
                rates.append(feed_rate(data, spec))
                ratios.append(rates[-1] / copied)
            print(
                f"{dtype}, {'shuffled' if shuffled else 'in order'}: "
                f"{statistics.median(rates):.1f} GB/s, "
                f"{statistics.median(ratios):.2f} of the rate of memcpy "
                f"({min(ratios):.2f} to {max(ratios):.2f})"
            )


if __name__ == "__main__":
    main()
