"""Feeds in torchtitan's loaders and checkpoints. torchtitan comes from PyPI.

torchtitan 0.3.0 has no loader for Grain. So the loader below is like those that torchtitan's users
write: a BaseDataLoader with a dataset of Grain inside.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import grain
import pytest
import systole
import systole.grain
import systole.torch
import torch
from conftest import image, spec_text
from torchtitan.components.checkpointer import CheckpointManager
from torchtitan.components.dataloader import BaseDataLoader, ParallelAwareDataloader


def inputs_and_labels(batch):
    """A batch as torchtitan's trainer takes it: a dict of inputs, and the labels."""
    label = torch.from_numpy(batch["label"])
    return {"input": torch.from_numpy(batch["image"]), "id": torch.from_numpy(batch["id"])}, label


class GrainLoader(BaseDataLoader):
    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):
        spec: str = ""

    def __init__(self, config, *, dp_world_size, dp_rank, **_):
        def open_feed():
            return systole.LocalFeed(
                config.dataset_path,
                config.spec,
                threads=1,
                process_index=dp_rank,
                process_count=dp_world_size,
            )

        dataset = systole.grain.IterDataset(open_feed).map(inputs_and_labels)
        self._iterator = iter(
            grain.experimental.ThreadPrefetchIterDataset(dataset, prefetch_buffer_size=4)
        )

    def __iter__(self):
        return self._iterator

    def state_dict(self):
        return self._iterator.get_state()

    def load_state_dict(self, state_dict):
        self._iterator.set_state(state_dict)


@pytest.fixture
def spec(write_spec):
    return write_spec(spec_text(image("image", "FLOAT32", "NHWC"), "epochs: 2 tail: PAD"))


@pytest.fixture
def wanted(shards, spec):
    with systole.LocalFeed(shards, spec, threads=1) as feed:
        return [batch["id"].tolist() for batch in feed.steps()]


@pytest.fixture
def new_grain_loader(shards, spec):
    def new(rank=0, world_size=1):
        # The call of torchtitan's trainer.
        return GrainLoader.Config(dataset_path=shards, spec=spec).build(
            dp_world_size=world_size, dp_rank=rank, tokenizer=None, seq_len=0, local_batch_size=0
        )

    return new


@pytest.fixture
def new_torch_loader(shards, spec):
    def new(rank=0, world_size=1):
        dataset = systole.torch.FeedDataset(
            None, spec, datasets=shards, threads=1, process_index=rank, process_count=world_size
        )
        return ParallelAwareDataloader(dataset, rank, world_size, batch_size=None)

    return new


def checkpoints(loader, folder) -> CheckpointManager:
    """torchtitan's checkpoint manager, for a small model and the loader."""
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return CheckpointManager(
        CheckpointManager.Config(enable=True, interval=1, keep_latest_k=0),
        dataloader=loader,
        model_parts=[model],
        optimizers=optimizer,
        lr_schedulers=torch.optim.lr_scheduler.StepLR(optimizer, 1),
        states={},
        sd_adapter=None,
        base_folder=str(folder),
    )


def ids(batches) -> list[list[int]]:
    return [inputs["id"].tolist() for inputs, _ in batches]


@pytest.mark.parametrize("taken", [1, 4, 6, 9])
def test_torchtitans_checkpoints_hold_the_position_in_a_grain_dataset(
    taken, new_grain_loader, wanted, tmp_path
):
    loader = new_grain_loader()
    batches = list(itertools.islice(loader, taken))
    assert ids(batches) == wanted[:taken]
    assert batches[0][0]["input"].dtype == torch.float32 and batches[0][1].shape == (16,)
    assert checkpoints(loader, tmp_path).save(taken)

    again = new_grain_loader()
    assert checkpoints(again, tmp_path).load()
    left = list(again)
    assert ids(left) == wanted[taken:]
    for (ours, label), (inputs, other) in zip(left, loader, strict=True):
        assert torch.equal(ours["input"], inputs["input"]) and torch.equal(label, other)


def test_ranks_share_each_step_and_another_number_of_ranks_resumes(new_grain_loader, wanted):
    ranks = [new_grain_loader(rank, 2) for rank in range(2)]
    for step in range(4):
        assert sum(ids(next(iter(rank)) for rank in ranks), []) == wanted[step]
    assert ranks[0].state_dict() == ranks[1].state_dict()
    alone = new_grain_loader()
    alone.load_state_dict(ranks[0].state_dict())
    assert ids(alone) == wanted[4:]


def test_torchtitans_own_loader_resumes_in_the_middle_of_an_epoch(
    new_torch_loader, wanted, tmp_path
):
    loader = new_torch_loader()
    assert isinstance(loader, BaseDataLoader)
    taken = list(itertools.islice(loader, 4))
    assert [batch["id"].tolist() for batch in taken] == wanted[:4]
    assert checkpoints(loader, tmp_path).save(4)

    again = new_torch_loader()
    assert checkpoints(again, tmp_path).load()
    assert [batch["id"].tolist() for batch in again] == wanted[4:6]
    again.dataset.set_epoch(1)
    assert [batch["id"].tolist() for batch in again] == wanted[6:]
