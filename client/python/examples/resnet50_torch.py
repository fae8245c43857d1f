"""Trains ResNet-50 with PyTorch, and measures how fast it trains with three sources: a batch that
stays on the GPU, a feed through device_prefetch(), and a feed whose batches the trainer itself
copies to the GPU.

    systole make-flowers DATA/images --images 4000 --size 500 --texture photo
    systole pack DATA/images DATA/photos --shards 16
    python resnet50_torch.py 'DATA/photos-*.tfrecord'
    python resnet50_torch.py 'DATA/photos-*.tfrecord' cpu 8 2    # a device, images a step, steps
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterator

import systole
import systole.torch
import torch
from torch import nn

CLASSES = 5


def convolution(inputs: int, outputs: int, size: int, stride: int = 1) -> list[nn.Module]:
    weights = nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)
    return [weights, nn.BatchNorm2d(outputs)]


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.path = nn.Sequential(
            *convolution(inputs, width, 1),
            nn.ReLU(inplace=True),
            *convolution(width, width, 3, stride),
            nn.ReLU(inplace=True),
            *convolution(width, 4 * width, 1),
        )
        same = inputs == 4 * width and stride == 1
        self.shortcut = (
            nn.Identity() if same else nn.Sequential(*convolution(inputs, 4 * width, 1, stride))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.path(x) + self.shortcut(x))


def new_resnet50() -> nn.Module:
    layers: list[nn.Module] = [*convolution(3, 64, 7, 2), nn.ReLU(inplace=True)]
    layers.append(nn.MaxPool2d(3, stride=2, padding=1))
    inputs = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            stride = 2 if block == 0 and width > 64 else 1
            layers.append(Bottleneck(inputs, width, stride))
            inputs = 4 * width
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES)]
    return nn.Sequential(*layers, *head)


def new_spec(batch: int) -> systole.FeedSpec:
    return systole.FeedSpec(
        dataset="photos",
        seed=7,
        epochs=0,
        shuffle=systole.Shuffle("global"),
        global_batch=batch,
        tail="drop",
        outputs={
            "image": systole.Image(
                "image",
                random_resized_crop=(224, 224),
                flip=True,
                normalize={"mean": 127.5, "stddev": 63.75},
                dtype="bfloat16",
            ),
            "label": systole.Output(feature="label", dtype="int64"),
        },
    )


def main(
    shards: str, device: str = "cuda", batch: int = 256, steps: int = 60, warm_up: int = 8
) -> dict[str, float]:
    torch.manual_seed(0)
    on_gpu = torch.device(device).type == "cuda"
    network = new_resnet50().to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)

    def train(image: torch.Tensor, label: torch.Tensor) -> None:
        # In memory, the feed's images and the network's weights have their channels last.
        image = image.permute(0, 3, 1, 2)
        if not on_gpu:
            image = image.float()
        with torch.autocast(torch.device(device).type, torch.bfloat16, enabled=on_gpu):
            loss = nn.functional.cross_entropy(network(image), label)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    def measure(batches: Iterator[dict[str, torch.Tensor]]) -> float:
        begin = 0.0
        for step, tensors in enumerate(itertools.islice(batches, warm_up + steps)):
            if step == warm_up:
                if on_gpu:
                    torch.cuda.synchronize()
                begin = time.perf_counter()
            train(tensors["image"], tensors["label"])
        if on_gpu:
            torch.cuda.synchronize()
        return batch * steps / (time.perf_counter() - begin)

    def on_device() -> Iterator[dict[str, torch.Tensor]]:
        image = torch.randn(batch, 224, 224, 3, device=device, dtype=torch.bfloat16)
        label = torch.randint(0, CLASSES, (batch,), device=device)
        return itertools.repeat({"image": image, "label": label})

    def brought(feed: systole.LocalFeed) -> Iterator[dict[str, torch.Tensor]]:
        for arrays in feed.steps():
            tensors = systole.torch.to_tensors(arrays)
            yield {name: one.to(device, non_blocking=True) for name, one in tensors.items()}

    rates = {"on the device": measure(on_device())}
    with systole.LocalFeed(shards, new_spec(batch)) as feed:
        rates["device_prefetch"] = measure(systole.torch.device_prefetch(feed.steps(), device))
    with systole.LocalFeed(shards, new_spec(batch)) as feed:
        rates["tensor.to()"] = measure(brought(feed))
    for name, rate in rates.items():
        print(f"{name:16} {rate:7.0f} images/s  {rate / rates['on the device']:.3f}")
    return rates


if __name__ == "__main__":
    main(*sys.argv[1:3], *(int(number) for number in sys.argv[3:5]))
