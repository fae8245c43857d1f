"""torchdata, torch.distributed.checkpoint, Grain and Orbax save and restore a feed's state."""

from __future__ import annotations

import copy
import json

import grain
import orbax.checkpoint as ocp
import pytest
import systole
import systole.torch
import torch
import torch.distributed.checkpoint as dcp
from conftest import spec_text
from torchdata.stateful_dataloader import StatefulDataLoader

STEPS = 6  # The steps of an epoch. There are three epochs.


@pytest.fixture
def spec(write_spec):
    return write_spec(spec_text(more="epochs: 3 tail: PAD"))


@pytest.fixture
def epochs(shards, spec):
    """The ids of all three epochs."""
    with systole.LocalFeed(shards, spec, threads=1) as feed:
        return [[batch["id"].tolist() for batch in feed] for _ in range(3)]


@pytest.fixture
def new_loader(shards, spec):
    def new(workers, **options):
        dataset = systole.torch.FeedDataset(
            None, spec, datasets=shards, split_steps=workers > 1, threads=1
        )
        if workers > 0:
            options["multiprocessing_context"] = "fork"
        return StatefulDataLoader(dataset, batch_size=None, num_workers=workers, **options)

    return new


def ids(batches) -> list[list[int]]:
    return [batch["id"].tolist() for batch in batches]


def steps(parts, workers) -> list[list[int]]:
    """Whole steps, made of the parts that the workers give in turns."""
    parts = ids(parts)
    each = max(workers, 1)
    assert len(parts) % each == 0
    return [sum(parts[i : i + each], []) for i in range(0, len(parts), each)]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("taken", [1, 3, 5])
def test_stateful_data_loader_goes_on_in_an_epoch(workers, taken, new_loader, epochs):
    loader = new_loader(workers)
    iterator = iter(loader)
    for _ in range(taken * max(workers, 1)):
        next(iterator)
    # Steps that workers have read ahead must not be lost.
    state = copy.deepcopy(loader.state_dict())
    del iterator
    again = new_loader(workers)
    again.load_state_dict(state)
    assert steps(again, workers) == epochs[0][taken:]
    again.dataset.set_epoch(1)
    assert steps(again, workers) == epochs[1]


@pytest.mark.parametrize("workers", [0, 2])
def test_stateful_data_loader_goes_on_with_the_next_epoch(workers, new_loader, epochs):
    loader = new_loader(workers)
    assert steps(loader, workers) == epochs[0]
    state = copy.deepcopy(loader.state_dict())
    again = new_loader(workers)
    again.load_state_dict(state)
    again.dataset.set_epoch(1)
    assert steps(again, workers) == epochs[1]
    again.dataset.set_epoch(2)
    assert steps(again, workers) == epochs[2]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_state_saved_before_the_first_batch_resumes_at_the_start(workers, new_loader, epochs):
    loader = new_loader(workers)
    state = copy.deepcopy(loader.state_dict())
    assert steps(loader, workers) == epochs[0]
    again = new_loader(workers)
    again.load_state_dict(state)
    assert steps(again, workers) == epochs[0]


def test_stateful_data_loader_resumes_with_persistent_workers(new_loader, epochs):
    loader = new_loader(2, persistent_workers=True)
    assert [steps(loader, 2) for _ in range(2)] == epochs[:2]
    iterator = iter(loader)
    for _ in range(4):
        next(iterator)
    state = copy.deepcopy(loader.state_dict())
    del iterator
    again = new_loader(2, persistent_workers=True)
    again.load_state_dict(state)
    assert steps(again, 2) == epochs[2][2:]


def test_distributed_checkpoint_saves_and_loads_a_dataset(shards, spec, epochs, tmp_path):
    dataset = systole.torch.FeedDataset(None, spec, datasets=shards, threads=1)
    assert isinstance(dataset, torch.distributed.checkpoint.stateful.Stateful)
    for _ in range(4):
        next(iter(dataset))
    dcp.save({"feed": dataset}, checkpoint_id=tmp_path / "checkpoint")
    # load() first calls state_dict() of `again`, and then load_state_dict() with the saved state.
    again = systole.torch.FeedDataset(None, spec, datasets=shards, threads=1)
    dcp.load({"feed": again}, checkpoint_id=tmp_path / "checkpoint")
    assert again.state_dict() == dataset.state_dict()
    assert ids(again) == epochs[0][4:]


def test_grains_handler_saves_and_restores_the_state(shards, spec, epochs, tmp_path):
    handler = grain.checkpoint.CheckpointHandler()
    with systole.LocalFeed(shards, spec, threads=1) as feed:
        for _ in range(4):
            next(feed)
        (tmp_path / "state").mkdir()
        handler.save(tmp_path / "state", feed)
    with systole.LocalFeed(shards, spec, threads=1) as feed:
        handler.restore(tmp_path / "state", feed)
        assert ids(feed) == epochs[0][4:]


def test_orbax_saves_the_state_beside_a_model(shards, spec, epochs, tmp_path):
    with ocp.CheckpointManager(tmp_path / "run") as manager:
        with systole.LocalFeed(shards, spec, threads=1) as feed:
            for batch in feed:
                if batch.step == 3:
                    break
            manager.save(
                3,
                args=ocp.args.Composite(
                    feed=ocp.args.JsonSave(feed.state_dict()),
                    iterator=grain.checkpoint.CheckpointSave(feed),
                ),
            )
            manager.wait_until_finished()
        restored = manager.restore(3, args=ocp.args.Composite(feed=ocp.args.JsonRestore()))
    for state in (restored["feed"], json.loads(json.dumps(restored["feed"]))):
        with systole.LocalFeed(shards, spec, threads=1) as feed:
            feed.load_state_dict(state)
            assert ids(feed) == epochs[0][4:]
