"""Writes interleave.txt: the orders of tf.data's interleave over small files.

usage: make_orders.py OUT    (with TensorFlow; README.md says which)

A line is `cycle_length block_length | sizes of the files | record, record, ..`. A record is numbered over
all files in their order.
"""

import random
import sys

import tensorflow as tf


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


def main(out):
    random.seed(1)
    cases = [([5], 1, 1), ([0], 3, 2), ([3, 0, 4], 2, 1), ([4, 4, 4, 4], 2, 2), ([1, 2, 3], 5, 2)]
    while len(cases) < 60:
        sizes = [random.choice((0, 1, 2, 3, 5, 8, 13)) for _ in range(random.randint(1, 9))]
        cases.append((sizes, random.randint(1, 6), random.randint(1, 5)))
    with open(out, "w", encoding="ascii") as file:
        file.write(f"# tf.data's interleave, TensorFlow {tf.__version__}: make_orders.py\n")
        for sizes, cycle_length, block_length in cases:
            found = order(sizes, cycle_length, block_length, parallel=False)
            if found != order(sizes, cycle_length, block_length, parallel=True):
                sys.exit(f"{sizes} {cycle_length} {block_length}: two orders")
            numbers = [" ".join(map(str, part)) for part in (sizes, found)]
            file.write(f"{cycle_length} {block_length} | {' | '.join(numbers)}\n")


main(sys.argv[1])
