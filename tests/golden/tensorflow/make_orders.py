"""Writes the orders in which tf.data's interleave reads small files, and how it splits batches.

usage: make_orders.py FOLDER    (with TensorFlow; README.md says which version)

A line of splits.txt is `rule global_batch num_cores | sizes`. A line of interleave.txt is
`cycle_length block_length | sizes of the files | record record ..`. Records are numbered through
all files, in the order of the files.
"""

import random
import sys

import tensorflow as tf
from tensorflow.python.data.experimental.ops import distribute


def order(sizes, cycle_length, block_length, parallel):
    begins = [sum(sizes[:i]) for i in range(len(sizes))]
    as_int64 = [tf.constant(numbers, tf.int64) for numbers in (begins, sizes)]
    files = tf.data.Dataset.from_tensor_slices(tuple(as_int64))

    def records(begin, size):
        return tf.data.Dataset.range(begin, begin + size)

    dataset = files.interleave(
        records,
        cycle_length=cycle_length,
        block_length=block_length,
        num_parallel_calls=min(2, cycle_length) if parallel else None,
        deterministic=True,
    )
    return [int(record) for record in dataset.as_numpy_iterator()]


def splits(global_batch, num_cores):
    """How many examples each core gets of a batch whose size is known (BALANCED) or not (FILL)."""
    balanced = [
        int(distribute.batch_sizes_for_worker(global_batch, num_cores, 1, core)[0])
        for core in range(num_cores)
    ]
    batches = tf.data.Dataset.range(global_batch).batch(global_batch)
    fill = [len(part) for part in distribute._LegacyRebatchDataset(batches, num_cores)]
    return {"BALANCED": balanced, "FILL": fill}


def write_splits(out):
    with open(out, "w", encoding="ascii") as file:
        file.write(f"# Batches split in TensorFlow {tf.__version__}: make_orders.py\n")
        for global_batch in (1, 2, 3, 4, 5, 7, 8, 13, 64):
            for num_cores in (1, 2, 3, 4, 5, 8, 12):
                for rule, sizes in splits(global_batch, num_cores).items():
                    numbers = " ".join(map(str, sizes))
                    file.write(f"{rule} {global_batch} {num_cores} | {numbers}\n")


def main(folder):
    write_splits(f"{folder}/splits.txt")
    random.seed(1)
    cases = [([5], 1, 1), ([0], 3, 2), ([3, 0, 4], 2, 1), ([4, 4, 4, 4], 2, 2), ([1, 2, 3], 5, 2)]
    while len(cases) < 60:
        sizes = [random.choice((0, 1, 2, 3, 5, 8, 13)) for _ in range(random.randint(1, 9))]
        cases.append((sizes, random.randint(1, 6), random.randint(1, 5)))
    with open(f"{folder}/interleave.txt", "w", encoding="ascii") as file:
        file.write(f"# tf.data's interleave, TensorFlow {tf.__version__}: make_orders.py\n")
        for sizes, cycle_length, block_length in cases:
            found = order(sizes, cycle_length, block_length, parallel=False)
            if found != order(sizes, cycle_length, block_length, parallel=True):
                sys.exit(f"{sizes} {cycle_length} {block_length}: two orders")
            numbers = [" ".join(map(str, part)) for part in (sizes, found)]
            file.write(f"{cycle_length} {block_length} | {' | '.join(numbers)}\n")


main(sys.argv[1])
