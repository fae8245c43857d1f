"""systole.grain: a feed as a dataset of Grain, checked by Grain's own test of iterators."""

from __future__ import annotations

import grain
import numpy as np
import orbax.checkpoint as ocp
import pytest
import systole
import systole.grain
from conftest import image, spec_text
from orbax.checkpoint.experimental import v1


@pytest.fixture
def spec(write_spec):
    return write_spec(spec_text(image("half", "BFLOAT16", "NHWC"), "epochs: 2 tail: PAD"))


@pytest.fixture
def dataset(shards, spec):
    return systole.grain.IterDataset(lambda: systole.LocalFeed(shards, spec, threads=1))


def ids(batches) -> list[list[int]]:
    return [batch["id"].tolist() for batch in batches]


@pytest.fixture
def wanted(shards, spec):
    with systole.LocalFeed(shards, spec, threads=1) as feed:
        return ids(feed.steps())


def test_grains_own_test_passes(dataset):
    grain.experimental.assert_equal_output_after_checkpoint(dataset)


def test_grains_own_test_passes_for_a_mapped_feed(shards, spec):
    def double(batch):
        return {"id": batch["id"] * 2}

    grain.experimental.assert_equal_output_after_checkpoint(
        systole.grain.IterDataset(
            lambda: systole.map(systole.LocalFeed(shards, spec, threads=1), double, workers=2)
        )
    )


def test_grains_own_test_passes_after_grains_transformations(dataset):
    mapped = dataset.map(lambda batch: batch["id"] + 1)
    grain.experimental.assert_equal_output_after_checkpoint(mapped)


def test_grains_own_test_passes_under_threads_that_take_batches_ahead(dataset, wanted):
    # The GrainDataLoader in torchtitan's repository puts this around its dataset.
    ahead = grain.experimental.ThreadPrefetchIterDataset(dataset, prefetch_buffer_size=8)
    grain.experimental.assert_equal_output_after_checkpoint(ahead)
    iterator = iter(ahead)
    assert ids(next(iterator) for _ in range(3)) == wanted[:3]
    again = iter(ahead)
    again.set_state(iterator.get_state())
    assert ids(again) == wanted[3:]


def test_each_iterator_gives_all_epochs_from_the_first_step(dataset, wanted):
    assert len(wanted) == 12
    assert ids(dataset) == wanted
    iterators = [iter(dataset), iter(dataset)]
    assert ids(next(one) for one in iterators) == [wanted[0]] * 2


def test_batches_are_in_the_feeds_memory_and_outlive_it(dataset, shards, spec):
    iterator = iter(dataset)
    batch = next(iterator)
    with systole.LocalFeed(shards, spec, threads=1) as feed:
        other = next(feed)
        assert sorted(batch) == sorted(other)
        iterator.close()
        for name in other:
            assert type(batch[name]) is np.ndarray and batch[name].base is not None
            assert batch[name].tobytes() == other[name].tobytes()
    with pytest.raises(ValueError, match="closed"):
        next(iterator)


def test_grains_handler_saves_and_restores_an_iterator(dataset, wanted, tmp_path):
    iterator = iter(dataset)
    for _ in range(7):
        next(iterator)
    with ocp.CheckpointManager(tmp_path / "run") as manager:
        manager.save(7, args=ocp.args.Composite(data=grain.checkpoint.CheckpointSave(iterator)))
        manager.wait_until_finished()
        again = iter(dataset)
        restore = grain.checkpoint.CheckpointRestore(again)
        manager.restore(7, args=ocp.args.Composite(data=restore))
    assert ids(again) == wanted[7:]


def test_orbax_saves_and_loads_an_iterator(dataset, wanted, tmp_path):
    iterator = iter(dataset)
    for _ in range(7):
        next(iterator)
    v1.save_checkpointables(tmp_path / "checkpoint", {"data": iterator})
    again = iter(dataset)
    v1.load_checkpointables(tmp_path / "checkpoint", {"data": again})
    assert ids(again) == wanted[7:]


def test_a_feed_in_place_of_a_function_is_refused(shards, spec):
    with systole.LocalFeed(shards, spec, threads=1) as feed:
        with pytest.raises(TypeError, match="open_feed is a LocalFeed; want a function"):
            systole.grain.IterDataset(feed)
