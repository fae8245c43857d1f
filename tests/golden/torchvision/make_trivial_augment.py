"""Writes trivial-augment.bin: what torchvision.transforms.v2.TrivialAugmentWide makes of an image,
change by change, for trivial_augment_test.

usage: make_trivial_augment.py OUT    (with torchvision)

  a line of text: "torchvision VERSION"
  for each image: height, width (2 bytes each), channels (a byte), 1 if it is drawn else 0 (a byte),
  its pixels [height, width, channels] uint8 unless it is drawn, the number of its cases (2 bytes),
  and for each case: the change's number in torchvision's table, strength 0 to 30, 1 if negative
  else 0 (a byte each), the CRC-32 of the result's pixels (4 bytes), and the result's pixels if
  `SHOWN` has the strength and the image is not drawn.

Numbers are little endian. A drawn image has computed pixels, which are not in the file: the upper
bytes of x = 1664525 x + 1013904223 modulo 2^32, from x = 1.
"""

import sys
import zlib

import numpy as np
import torch
import torchvision
from torchvision.transforms.v2 import InterpolationMode, TrivialAugmentWide

STRENGTHS = 31
SHOWN = (0, 1, 15, 16, 30)
# Shapes with odd and even edges, squares, and one pixel. Together their pixels have every value in
# grey and in colour, and every strength is tried on each shape.
DRAWN = ((1, 1, 3), (1, 7, 1), (5, 1, 3), (2, 2, 1), (31, 31, 3), (32, 32, 1), (57, 83, 3))
DRAWN += ((64, 97, 1), (224, 224, 3), (150, 301, 3))


def images():
    rng = np.random.default_rng(3)
    # This image is smooth, so that auto_contrast and equalize have something to do. It has enough
    # pixels for equalize.
    y, x = np.mgrid[0:18, 0:16]
    smooth = np.stack([90 + 3 * x + y, 40 + 5 * y, 200 - 2 * x - 3 * y], axis=-1)
    yield (smooth + rng.integers(0, 9, smooth.shape)).clip(0, 255).astype(np.uint8)
    yield rng.integers(0, 256, (6, 9, 1), dtype=np.uint8)
    yield rng.integers(100, 256, (2, 5, 3), dtype=np.uint8)
    yield np.full((4, 3, 3), 77, np.uint8)


def drawn(shape):
    pixels = bytearray()
    x = 1
    for _ in range(int(np.prod(shape))):
        x = (1664525 * x + 1013904223) % 2**32
        pixels.append(x >> 24)
    return np.frombuffer(pixels, np.uint8).reshape(shape)


def number(value, size):
    return int(value).to_bytes(size, "little")


def main(argv):
    augment = TrivialAugmentWide()
    space = augment._AUGMENTATION_SPACE
    inputs = [(image, False) for image in images()] + [(drawn(shape), True) for shape in DRAWN]
    with open(argv[1], "wb") as out:
        out.write(f"torchvision {torchvision.__version__}\n".encode())
        for image, is_drawn in inputs:
            height, width, channels = image.shape
            tensor = torch.from_numpy(image.copy()).permute(2, 0, 1).contiguous()
            table = {
                name: (magnitudes(STRENGTHS, height, width), signed)
                for name, (magnitudes, signed) in space.items()
            }
            cases = [
                (change, name, strength, negative)
                for change, (name, (magnitudes, signed)) in enumerate(table.items())
                for strength in (range(STRENGTHS) if magnitudes is not None else (0,))
                for negative in ((0, 1) if signed else (0,))
            ]
            out.write(number(height, 2) + number(width, 2) + bytes((channels, is_drawn)))
            out.write((b"" if is_drawn else image.tobytes()) + number(len(cases), 2))
            for change, name, strength, negative in cases:
                magnitudes, _ = table[name]
                magnitude = float(magnitudes[strength]) if magnitudes is not None else 0.0
                made = augment._apply_image_or_video_transform(
                    tensor,
                    name,
                    -magnitude if negative else magnitude,
                    interpolation=InterpolationMode.NEAREST,
                    fill={},
                )
                pixels = made.permute(1, 2, 0).contiguous().numpy().tobytes()
                out.write(bytes((change, strength, negative)) + number(zlib.crc32(pixels), 4))
                if strength in SHOWN and not is_drawn:
                    out.write(pixels)


if __name__ == "__main__":
    main(sys.argv)
