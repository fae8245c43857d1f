"""Trains a small convolutional network on drawn flowers with PyTorch, and resumes it bit for bit.

    systole make-flowers DATA/images --images 3625 --seed 1
    systole pack DATA/images DATA/flowers --shards 16 --resize-short 80 --validation 0.2
    python flowers_torch.py DATA

The program starts a server for DATA on this machine. To read from servers elsewhere, write
`FeedDataset("host:port", ..)`. Under torchrun each rank gets its share of each batch.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import systole
import systole.torch
import torch
from torch import nn
from torch.utils.data import DataLoader

SPECS = Path(__file__).parents[3] / "deploy" / "specs"
CLASSES = 5
PROVEN = 10  # How many batches are compared after the resume.


def new_network() -> nn.Module:
    layers: list[nn.Module] = []
    for inputs, outputs in ((3, 16), (16, 32), (32, 64), (64, 64)):
        layers += [
            nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
        ]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, CLASSES))


def images_of(batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """The images with their channels first, as PyTorch's layers need them."""
    return batch["image"].float().permute(0, 3, 1, 2)


def main(data: str, epochs: int = 8) -> dict[str, Any]:
    torch.manual_seed(0)
    torch.set_num_threads(1)  # The network is too small for more threads.
    datasets = {
        "flowers": f"{data}/flowers-train-*.tfrecord",
        "flowers-validation": f"{data}/flowers-validation-*.tfrecord",
    }
    with tempfile.TemporaryDirectory() as folder, systole.serve(datasets) as server:
        checkpoint = Path(folder) / "checkpoint"
        dataset = systole.torch.FeedDataset(server.address, SPECS / "flowers.textproto")
        batches = DataLoader(dataset, batch_size=None)
        network = new_network()
        optimizer = torch.optim.Adam(network.parameters(), lr=5e-3)
        last = epochs * len(batches)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / last)
        step = 0
        after: list[dict[str, torch.Tensor]] = []
        for epoch in range(epochs):
            for batch in batches:
                loss = nn.functional.cross_entropy(network(images_of(batch)), batch["label"])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                if checkpoint.exists() and len(after) < PROVEN:
                    after.append(batch)
                if step == last // 2:
                    saved = {
                        "feed": dataset.state_dict(),
                        "network": network.state_dict(),
                        "optimizer": optimizer.state_dict(),
                        "schedule": schedule.state_dict(),
                    }
                    torch.save(saved, checkpoint)
                step += 1
            print(f"epoch {epoch}  loss {loss.item():.3f}")
        print(dataset.feed)
        dataset.feed.close()

        # A restarted program gets the same batches, bit for bit.
        saved = torch.load(checkpoint)
        again = systole.torch.FeedDataset(server.address, SPECS / "flowers.textproto")
        again.load_state_dict(saved["feed"])
        resumed = [next(iter(again)) for _ in after]
        bit_equal = all(
            torch.equal(was[name].contiguous().view(torch.uint8), now[name].view(torch.uint8))
            for was, now in zip(after, resumed, strict=True)
            for name in was
        )
        again.feed.close()
        print(f"resumed at step {saved['feed']['step']}: the same batches: {bit_equal}")

        # The last batch is padded. `valid` is 0 where an example is padding.
        network.eval()
        right = images = 0
        dataset = systole.torch.FeedDataset(server.address, SPECS / "flowers-eval.textproto")
        with torch.no_grad():
            for batch in DataLoader(dataset, batch_size=None):
                valid = batch["valid"] != 0
                right += int(
                    ((network(images_of(batch)).argmax(1) == batch["label"]) & valid).sum()
                )
                images += int(valid.sum())
        dataset.feed.close()
        print(f"validation accuracy {right / images:.3f} of {images} images")
    return {
        "accuracy": right / images,
        "images": images,
        "bit_equal": bit_equal,
        "compared": len(after),
        "resumed_at": saved["feed"]["step"],
    }


if __name__ == "__main__":
    main(*sys.argv[1:2])
