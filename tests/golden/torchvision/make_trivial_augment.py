"""Writes trivial-augment.bin: what torchvision's TrivialAugmentWide makes of an image, change by
change, for trivial_augment_test.

usage: make_trivial_augment.py OUT    (with torchvision)

  a line of text: "torchvision VERSION"
  for each image: height, width, channels (a byte each), its pixels [height, width, channels] uint8,
  the number of its cases (2 bytes, little endian), and for each case: the change's number in
  torchvision's table, strength 0 to 30, 1 if negative else 0 (a byte each), pixels.
"""

import sys

import numpy as np
import torch
import torchvision
from torchvision.transforms import InterpolationMode, TrivialAugmentWide
from torchvision.transforms.autoaugment import _apply_op

STRENGTHS = (0, 1, 15, 16, 30)


def images():
    rng = np.random.default_rng(3)
    # Smooth, so that auto_contrast and equalize have something to do; enough pixels for the latter.
    y, x = np.mgrid[0:18, 0:16]
    smooth = np.stack([90 + 3 * x + y, 40 + 5 * y, 200 - 2 * x - 3 * y], axis=-1)
    yield (smooth + rng.integers(0, 9, smooth.shape)).clip(0, 255).astype(np.uint8)
    yield rng.integers(0, 256, (6, 9, 1), dtype=np.uint8)
    yield rng.integers(100, 256, (2, 5, 3), dtype=np.uint8)
    yield np.full((4, 3, 3), 77, np.uint8)


def main(argv):
    space = TrivialAugmentWide()._augmentation_space(31)
    with open(argv[1], "wb") as out:
        out.write(f"torchvision {torchvision.__version__}\n".encode())
        for image in images():
            tensor = torch.from_numpy(image).permute(2, 0, 1)
            cases = [
                (number, name, strength, negative)
                for number, (name, (magnitudes, signed)) in enumerate(space.items())
                for strength in (STRENGTHS if magnitudes.ndim > 0 else (0,))
                for negative in ((0, 1) if signed else (0,))
            ]
            out.write(bytes(image.shape) + image.tobytes() + len(cases).to_bytes(2, "little"))
            for number, name, strength, negative in cases:
                magnitudes, _ = space[name]
                magnitude = float(magnitudes[strength].item()) if magnitudes.ndim > 0 else 0.0
                made = _apply_op(
                    tensor,
                    name,
                    -magnitude if negative else magnitude,
                    interpolation=InterpolationMode.NEAREST,
                    fill=None,
                )
                out.write(bytes((number, strength, negative)))
                out.write(made.permute(1, 2, 0).contiguous().numpy().tobytes())


if __name__ == "__main__":
    main(sys.argv)
