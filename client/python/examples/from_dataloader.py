"""From PyTorch's Dataset and DataLoader to a feed: the same job before and after.

    systole make-flowers DATA/images --images 3625 --seed 1
    systole pack DATA/images DATA/flowers --shards 16 --resize-short 80
    python from_dataloader.py DATA

A feed needs no worker processes, no sampler with its seed and no collate function. If other code
needs a DataLoader, put the feed into a DataLoader, as after() does.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import systole
import systole.torch
import torch
from torch.utils.data import DataLoader, Dataset

BATCH = 64
SIZE = 64
LABELS = ["daisy", "dandelion", "rose", "sunflower", "tulip"]


class Flowers(Dataset[Any]):
    """Decodes, crops at random, flips half of the images, normalises."""

    def __init__(self, data: str) -> None:
        self.files = sorted(Path(data, "images").glob("*/*.jpg"))

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> dict[str, Any]:
        import cv2

        file = self.files[index]
        image = torch.from_numpy(cv2.cvtColor(cv2.imread(str(file)), cv2.COLOR_BGR2RGB))
        short = min(image.shape[:2])
        side = int(short * float(torch.empty(1).uniform_(0.6, 1)) ** 0.5)
        y, x = (int(torch.randint(extent - side + 1, (1,))) for extent in image.shape[:2])
        image = image[y : y + side, x : x + side].permute(2, 0, 1)[None].float()
        image = torch.nn.functional.interpolate(image, (SIZE, SIZE), mode="bilinear")[0]
        if torch.rand(1) < 0.5:
            image = image.flip(2)
        return {"image": (image - 127.5) / 63.75, "label": LABELS.index(file.parent.name)}


def before(data: str) -> Iterable[dict[str, Any]]:
    # A job of several ranks needs a DistributedSampler here, and set_epoch() before each epoch.
    return DataLoader(Flowers(data), BATCH, shuffle=True, num_workers=2, drop_last=True)


SPEC = systole.FeedSpec(
    dataset="flowers",
    seed=7,
    epochs=1,
    shuffle=systole.Shuffle("global"),
    global_batch=BATCH,  # For all ranks together. DataLoader's batch_size is for one rank.
    num_cores=1,  # The number of ranks, or a multiple of it.
    tail="drop",  # drop_last=True
    outputs={
        "image": systole.Image(
            "image",
            random_resized_crop=systole.RandomResizedCrop(SIZE, SIZE, area_min=0.6),
            flip=True,
            normalize=systole.Normalize(mean=127.5, stddev=63.75),
            dtype="float32",
            layout="nchw",
        ),
        "label": systole.Output(feature="label", dtype="int64"),
    },
)


def after(data: str) -> Iterable[dict[str, Any]]:
    datasets = f"{data}/flowers-train-*.tfrecord"
    dataset = systole.torch.FeedDataset(None, SPEC, datasets=datasets)
    return DataLoader(dataset, batch_size=None, num_workers=0)


def main(data: str) -> dict[str, dict[str, Any]]:
    """Runs an epoch of before() and an epoch of after(). Returns the results of each."""
    found = {}
    for make in (before, after):
        steps, pixels = 0, 0.0
        for batch in make(data):
            steps += 1
            pixels += batch["image"].mean().item()
        shape = tuple(batch["image"].shape)
        found[make.__name__] = {"steps": steps, "shape": shape, "mean": pixels / steps}
        print(f"{make.__name__}: {steps} steps of {shape}, mean {pixels / steps:.3f}")
    return found


if __name__ == "__main__":
    main(*sys.argv[1:2])
