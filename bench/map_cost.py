#!/usr/bin/env python3
"""What a batch costs in systole.map, apart from the time of the function itself.

    bench/map_cost.py SHARDS FEATURE [--rounds N]

Reads the number FEATURE of each record by a LocalFeed with one thread. Measures the feed alone, and
then with systole.map and a function that does nothing. The function runs in one thread, then in two
threads, then in a process. Prints the medians in microseconds for each batch, and how much more
each way costs than the feed alone. Needs the Python package.
"""

import argparse
import statistics
import time

import systole

STEPS = 3000


def microseconds(open_feed):
    """The mean time of a batch. The first 200 batches do not count."""
    with open_feed() as feed:
        steps = feed.steps()
        for _ in range(200):
            next(steps)
        begin = time.perf_counter()
        for _ in range(STEPS):
            next(steps)
        return (time.perf_counter() - begin) / STEPS * 1e6


def same(batch):
    return {"value": batch["value"]}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shards")
    parser.add_argument("feature")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    spec = systole.FeedSpec(
        dataset="data",
        global_batch=32,
        num_cores=1,
        epochs=0,
        outputs={"value": systole.Output(feature=options.feature, dtype="int64")},
    )

    def local():
        return systole.LocalFeed(options.shards, spec, threads=1)

    def mapped(**where):
        return lambda: systole.map(local(), same, **where)

    ways = {
        "alone": local,
        "1 thread": mapped(workers=1),
        "2 threads": mapped(workers=2),
        "1 process": mapped(processes=1),
    }
    taken = {way: [] for way in ways}
    for _ in range(options.rounds):
        for way, open_feed in ways.items():
            taken[way].append(microseconds(open_feed))
    alone = statistics.median(taken["alone"])
    for way, times in taken.items():
        median = statistics.median(times)
        beside = "" if way == "alone" else f"; {median - alone:.1f} more than the feed alone"
        print(f"{way}: {median:.1f} us a batch ({min(times):.1f} to {max(times):.1f}){beside}")


if __name__ == "__main__":
    main()
