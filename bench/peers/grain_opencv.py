"""Grain: ArrayRecord source, OpenCV decode, reading threads. (Grain's worker processes are forked,
and hang if OpenCV has threads.)"""

import os

import cv2
import grain
import numpy as np
from array_record.python.array_record_module import ArrayRecordWriter

import measuring
import records


def _array_records(files, work):
    """Copies the shards as ArrayRecord files. A record is 8 bytes of label, then the JPEG.

    Grain's documentation asks for group_size:1, for random access."""
    paths = []
    os.makedirs(work, exist_ok=True)
    for file in files:
        path = os.path.join(work, os.path.basename(file) + ".arrayrecord")
        if not os.path.exists(path):
            writer = ArrayRecordWriter(path + ".tmp", "group_size:1")
            with open(file, "rb") as shard:
                for offset, size, label in records.images(file):
                    shard.seek(offset)
                    writer.write(label.to_bytes(8, "little") + shard.read(size))
            writer.close()
            os.rename(path + ".tmp", path)
        paths.append(path)
    return paths


def _crop(height, width, rng):
    """(y, x, height, width): torchvision's RandomResizedCrop."""
    for _ in range(10):
        area = height * width * rng.uniform(*measuring.AREA)
        aspect = np.exp(rng.uniform(*np.log(measuring.ASPECT)))
        w, h = int(round(np.sqrt(area * aspect))), int(round(np.sqrt(area / aspect)))
        if 0 < w <= width and 0 < h <= height:
            return rng.integers(height - h + 1), rng.integers(width - w + 1), h, w
    side = min(height, width)
    return (height - side) // 2, (width - side) // 2, side, side


def _decode(record, rng):
    image = cv2.imdecode(np.frombuffer(record, np.uint8, offset=8), cv2.IMREAD_COLOR_RGB)
    y, x, h, w = _crop(image.shape[0], image.shape[1], rng)
    image = cv2.resize(image[y:y + h, x:x + w], (measuring.SIZE, measuring.SIZE),
                       interpolation=cv2.INTER_LINEAR)
    if rng.random() < 0.5:
        image = cv2.flip(image, 1)
    # Widens to float32, then subtracts and scales in place.
    image = image.astype(np.float32)
    image -= measuring.MEAN
    image *= 1 / measuring.STDDEV
    return image, int.from_bytes(record[:8], "little")


def main():
    options = measuring.arguments(__doc__)
    if options.dtype != "f32":
        raise SystemExit("OpenCV and numpy have no bfloat16")
    # Each reading thread works on one image. OpenCV's own threads would only add switches between
    # threads.
    cv2.setNumThreads(0)
    dataset = (
        grain.MapDataset.source(grain.sources.ArrayRecordDataSource(
            _array_records(options.files, options.work)))
        .seed(7)
        .shuffle()
        .repeat()
        .random_map(_decode)
        .to_iter_dataset(grain.ReadOptions(num_threads=options.threads,
                                           prefetch_buffer_size=2 * options.batch))
        .batch(options.batch, drop_remainder=True))
    measuring.report("Grain + OpenCV", f"{grain.__version__}, {cv2.__version__}",
                     f"imdecode of the whole image, then crop; {options.threads} reading threads",
                     (images for images, _ in dataset), options)


if __name__ == "__main__":
    main()
