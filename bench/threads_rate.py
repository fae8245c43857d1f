#!/usr/bin/env python3
"""How the rate of a LocalFeed grows with its threads.

    bench/threads_rate.py 'data/photos-*.tfrecord' deploy/specs/resnet50.textproto
    bench/threads_rate.py SHARDS SPEC [--threads N ..] [--seconds N] [--rounds N]

Each round measures one feed of N threads. It then measures N processes that run at the same time,
each with a feed of one thread. The processes share nothing but the machine, so their total rate
shows what its processors and its memory allow. Prints the median of the feed's rates in examples a
second, and the median of the rounds' ratios (the feed's rate divided by the processes' total rate).
Needs the Python package.
"""

import argparse
import contextlib
import os
import select
import statistics
import subprocess
import sys
import time

import numpy as np
import systole


def measure(shards, spec, threads, seconds):
    """Prints the examples a second of a feed, measured from the moment when a line comes on stdin.
    The feed also runs before this moment, so that no finished steps are waiting when the time
    begins.
    """
    with systole.LocalFeed(shards, spec, threads=threads) as feed:
        batches = feed.steps()
        next(batches)
        print("ready", flush=True)
        while not select.select([sys.stdin], [], [], 0)[0]:
            next(batches)
        begin = time.perf_counter()
        taken = 0
        while time.perf_counter() - begin < seconds:
            taken += int(np.count_nonzero(next(batches)["valid"]))
        print(taken / (time.perf_counter() - begin), flush=True)


def rate_of(options, processes, threads):
    command = [sys.executable, __file__, options.shards, options.spec]
    command += ["--child", str(threads), "--seconds", str(options.seconds)]
    children = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(processes)
    ]
    for child in children:
        child.stdout.readline()
    for child in children:
        with contextlib.suppress(BrokenPipeError):  # The process has failed.
            child.stdin.write("begin\n")
            child.stdin.flush()
    printed = [child.communicate()[0] for child in children]
    if any(child.returncode for child in children):
        sys.exit("a process failed; the spec must have no end (epochs: 0)")
    return sum(map(float, printed))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shards")
    parser.add_argument("spec")
    parser.add_argument("--threads", type=int, nargs="+", help="default: 1, 2, 4 .. processors")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        measure(options.shards, options.spec, options.child, options.seconds)
        return
    processors = len(os.sched_getaffinity(0))
    for threads in options.threads or sorted({1, *(processors >> i for i in range(8))} - {0}):
        rates, ratios = [], []
        for _ in range(options.rounds):
            rates.append(rate_of(options, 1, threads))
            ratios.append(rates[-1] / rate_of(options, threads, 1))
        print(
            f"{threads} threads: {statistics.median(rates):,.0f} examples/s, "
            f"{statistics.median(ratios):.2f} of the rate of as many processes "
            f"({min(ratios):.2f} to {max(ratios):.2f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
