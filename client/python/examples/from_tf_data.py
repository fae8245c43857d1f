"""From tf.data to a feed: the same job before and after.

    systole make-flowers DATA/images --images 3625 --seed 1
    systole pack DATA/images DATA/flowers --shards 16 --resize-short 80
    python from_tf_data.py DATA

The shards stay as they are. A spec replaces the chain of maps. The order, the crops and the flips
follow from the spec's seed alone, so a run can go on after any step.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import systole
import systole.tensorflow
import tensorflow as tf

BATCH = 64
SIZE = 64


def before(data: str) -> Iterator[dict[str, Any]]:
    def parse(record: Any) -> dict[str, Any]:
        features = {
            "image": tf.io.FixedLenFeature([], tf.string),
            "label": tf.io.FixedLenFeature([], tf.int64),
        }
        example = tf.io.parse_single_example(record, features)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.io.extract_jpeg_shape(example["image"]),
            tf.zeros([1, 0, 4]),
            min_object_covered=0,
            area_range=(0.6, 1),
            use_image_if_no_bounding_boxes=True,
        )
        y, x, _ = tf.unstack(begin)
        height, width, _ = tf.unstack(size)
        image = tf.image.decode_and_crop_jpeg(example["image"], [y, x, height, width], 3)
        image = tf.image.random_flip_left_right(tf.image.resize(image, (SIZE, SIZE)))
        return {"image": (image - 127.5) / 63.75, "label": example["label"]}

    files = tf.data.Dataset.list_files(f"{data}/flowers-train-*.tfrecord", shuffle=True)
    records = tf.data.TFRecordDataset(files, num_parallel_reads=4).shuffle(10_000)
    parsed = records.map(parse, tf.data.AUTOTUNE)
    yield from parsed.batch(BATCH, drop_remainder=True).prefetch(2)


SPEC = systole.FeedSpec(
    dataset="flowers",
    seed=7,
    epochs=1,
    shuffle=systole.Shuffle("global"),  # Shuffles all records, without a buffer.
    global_batch=BATCH,  # On all hosts together, as in tf.data.
    num_cores=1,
    tail="drop",  # drop_remainder=True
    outputs={
        "image": systole.Image(
            "image",
            random_resized_crop=systole.RandomResizedCrop(SIZE, SIZE, area_min=0.6),
            flip=True,
            normalize=systole.Normalize(mean=127.5, stddev=63.75),
            dtype="float32",
        ),
        "label": systole.Output(feature="label", dtype="int64"),
    },
)


def after(data: str) -> Iterator[dict[str, Any]]:
    # If you need a tf.data.Dataset: systole.tensorflow.dataset(feed) copies each batch once.
    with systole.LocalFeed(f"{data}/flowers-train-*.tfrecord", SPEC) as feed:
        for batch in feed:
            yield systole.tensorflow.to_tensors(batch)


def main(data: str) -> dict[str, dict[str, Any]]:
    """Runs an epoch of before() and an epoch of after(). Returns the results of each."""
    found = {}
    for make in (before, after):
        steps, pixels = 0, 0.0
        for batch in make(data):
            steps += 1
            pixels += float(tf.reduce_mean(batch["image"]))
        shape = tuple(batch["image"].shape)
        found[make.__name__] = {"steps": steps, "shape": shape, "mean": pixels / steps}
        print(f"{make.__name__}: {steps} steps of {shape}, mean {pixels / steps:.3f}")
    return found


if __name__ == "__main__":
    main(*sys.argv[1:2])
