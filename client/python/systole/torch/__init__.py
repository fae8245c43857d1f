"""Feeds for PyTorch: an IterableDataset whose elements are whole batches, and batches on a GPU.

dataset = systole.torch.FeedDataset("feeds-0:8470", "spec.textproto")
for batch in DataLoader(dataset, batch_size=None, num_workers=0):
    loss = train_step(batch["image"], batch["label"])

feed = systole.Feed("feeds-0:8470", "spec.textproto")
for batch in systole.torch.device_prefetch(feed, "cuda"):
    loss = train_step(batch["image"], batch["label"])
"""

from __future__ import annotations

from systole.torch._dataset import FeedDataset
from systole.torch._device_prefetch import DeviceBatch, DevicePrefetch, device_prefetch
from systole.torch._tensors import Tensors, to_tensors

__all__ = [
    "DeviceBatch",
    "DevicePrefetch",
    "FeedDataset",
    "Tensors",
    "device_prefetch",
    "to_tensors",
]
