"""From Grain to a feed: the same job before and after.

    systole make-flowers DATA/images --images 3625 --seed 1
    systole pack DATA/images DATA/flowers --shards 16 --resize-short 80
    python from_grain.py DATA

Grain's iterators and feeds both have get_state() and set_state(). A feed can also go on from its
state with another number of hosts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import grain
import numpy as np
import systole

BATCH = 64
SIZE = 64


class Transform(grain.transforms.RandomMap):
    """Decodes, crops at random, flips half of the images, normalises."""

    def random_map(self, element: Path, rng: np.random.Generator) -> dict[str, Any]:
        image = cv2.cvtColor(cv2.imread(str(element)), cv2.COLOR_BGR2RGB)
        side = int(min(image.shape[:2]) * rng.uniform(0.6, 1) ** 0.5)
        y, x = (rng.integers(0, extent - side + 1) for extent in image.shape[:2])
        image = cv2.resize(image[y : y + side, x : x + side], (SIZE, SIZE))
        if rng.random() < 0.5:
            image = image[:, ::-1]
        label = LABELS.index(element.parent.name)
        return {"image": (image.astype(np.float32) - 127.5) / 63.75, "label": label}


LABELS = ["daisy", "dandelion", "rose", "sunflower", "tulip"]


def before(data: str) -> Iterator[dict[str, Any]]:
    files = sorted(Path(data, "images").glob("*/*.jpg"))
    pipeline = (
        grain.MapDataset.source(files)
        .seed(7)
        .shuffle()
        .random_map(Transform())
        .batch(BATCH, drop_remainder=True)
    )
    # With .mp_prefetch(), worker processes would run the pipeline.
    return iter(pipeline.to_iter_dataset())


SPEC = systole.FeedSpec(
    dataset="flowers",
    seed=7,
    epochs=1,
    shuffle=systole.Shuffle("global"),
    global_batch=BATCH,  # For all processes together. Grain's batch is for one process.
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


def after(data: str) -> systole.LocalFeed:
    # LocalFeed works in threads, not in processes. systole.Feed gets the same batches from servers.
    return systole.LocalFeed(f"{data}/flowers-train-*.tfrecord", SPEC)


def main(data: str) -> dict[str, dict[str, Any]]:
    """Runs an epoch of before() and an epoch of after(). Returns the results of each, and whether
    each resumes exactly from a state in mid-epoch."""
    found = {}
    for make in (before, after):
        batches: Any = make(data)
        labels, pixels = [], 0.0
        for batch in batches:
            labels.append(np.asarray(batch["label"]).tolist())
            pixels += float(batch["image"].mean())
            if len(labels) == 3:
                state = batches.get_state()
        again: Any = make(data)
        again.set_state(state)
        rest = [np.asarray(batch["label"]).tolist() for batch in again]
        shape = batch["image"].shape
        found[make.__name__] = {
            "steps": len(labels),
            "shape": shape,
            "mean": pixels / len(labels),
            "resumed": rest == labels[3:],
        }
        print(f"{make.__name__}: {len(labels)} steps of {shape}, resumed: {rest == labels[3:]}")
    return found


if __name__ == "__main__":
    main(*sys.argv[1:2])
