"""Batches made in advance, to measure the wire alone: bf16 images [batch, 224, 224, 3] with random
values between 2^-7 and 2, and labels. There are two batches, so that neither the sender nor the
receiver finds everything in the CPU's cache."""

import numpy as np

IMAGE_BYTES = 224 * 224 * 3 * 2


def steps(batch):
    """Two pairs of (uint16 [batch, IMAGE_BYTES / 2], int64 [batch])."""
    rng = np.random.default_rng(7)
    # bfloat16 is the upper half of a float32: 0x3c00 is 2^-7, 0x4000 is 2.
    return [(rng.integers(0x3c00, 0x4000, size=(batch, IMAGE_BYTES // 2), dtype=np.uint16),
             np.arange(batch, dtype=np.int64)) for _ in range(2)]
