"""Grain datasets in MaxText's iterators and checkpoints. MaxText comes from PyPI."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest
import systole
import systole.grain
from conftest import image, spec_text
from maxtext.common import grain_utility
from maxtext.input_pipeline import multihost_dataloading
from orbax.checkpoint import v1 as ocp


def _leave_other_programs_alone() -> None:
    """Replaces a function that MaxText calls whenever it closes or deletes an iterator. MaxText's
    function would end the orphaned Python processes of all programs on this machine."""


multihost_dataloading._cleanup_orphaned_multiprocessing_processes = _leave_other_programs_alone


@pytest.fixture
def spec(write_spec):
    return write_spec(spec_text(image("image", "BFLOAT16", "NHWC"), "epochs: 2 tail: PAD"))


@pytest.fixture
def dataset(shards, spec):
    return systole.grain.IterDataset(lambda: systole.LocalFeed(shards, spec, threads=1))


@pytest.fixture
def mesh():
    return jax.sharding.Mesh(np.asarray(jax.devices()).reshape(4, 2), ("data", "fsdp"))


@pytest.fixture
def wanted(shards, spec):
    with systole.LocalFeed(shards, spec, threads=1) as feed:
        # JAX makes INT32 of INT64.
        return [
            {name: np.array(jax.numpy.asarray(batch[name])) for name in batch}
            for batch in feed.steps()
        ]


def assert_same(batches, wanted) -> None:
    for batch, other in zip(batches, wanted, strict=True):
        assert batch.keys() == other.keys()
        for name, array in batch.items():
            assert isinstance(array, jax.Array) and array.dtype == other[name].dtype
            assert np.asarray(array).tobytes() == other[name].tobytes()


def left(iterator):
    """The batches that are left. A loop over MaxText's iterator itself would begin anew."""
    while (batch := next(iterator, None)) is not None:
        yield batch


def test_maxtexts_iterator_spreads_batches_over_all_devices(dataset, mesh, wanted):
    iterator = multihost_dataloading.MultiHostDataLoadIterator(dataset, mesh)
    batch = next(iterator)
    for array in batch.values():
        assert len(array.sharding.device_set) == 8
        assert {shard.data.shape[0] for shard in array.addressable_shards} == {2}
    assert_same(itertools.chain([batch], left(iterator)), wanted)
    iterator.reset()
    assert_same([next(iterator)], wanted[:1])
    iterator.close()
    with pytest.raises(ValueError, match="closed"):
        next(iterator)


@pytest.mark.parametrize("taken", [1, 4, 6, 9])
def test_maxtexts_checkpoints_hold_the_position(taken, dataset, mesh, wanted, tmp_path):
    # The calls of save_checkpoint() and load_state_if_possible() in maxtext.common.checkpointing.
    # The test does not import this module, which imports all that MaxText's models need.
    model = {"weights": np.arange(8.0)}
    iterator = multihost_dataloading.MultiHostDataLoadIterator(dataset, mesh)
    assert_same(itertools.islice(left(iterator), taken), wanted[:taken])
    with ocp.training.Checkpointer(tmp_path / "run") as checkpointer:
        saved = grain_utility.for_save(taken, iterator, -1)
        assert checkpointer.save_checkpointables(taken, {"items": model, "iter": saved})
        assert_same(left(iterator), wanted[taken:])

        again = multihost_dataloading.MultiHostDataLoadIterator(dataset, mesh)
        restored = grain_utility.for_restore(checkpointer, taken, again, -1)
        checkpointer.load_checkpointables(taken, {"items": model, "iter": restored})
    assert_same(left(again), wanted[taken:])


def test_async_checkpoints_of_maxtext_hold_the_position_of_the_save_call(
    dataset, mesh, wanted, tmp_path
):
    iterator = multihost_dataloading.MultiHostDataLoadIterator(dataset, mesh)
    assert_same(itertools.islice(left(iterator), 4), wanted[:4])
    with ocp.training.Checkpointer(tmp_path / "run") as checkpointer:
        saved = {"iter": grain_utility.for_save(4, iterator, -1)}
        assert checkpointer.save_checkpointables_async(4, saved) is not None
        assert_same(left(iterator), wanted[4:])
        checkpointer.wait()

        again = multihost_dataloading.MultiHostDataLoadIterator(dataset, mesh)
        restored = grain_utility.for_restore(checkpointer, 4, again, -1)
        checkpointer.load_checkpointables(4, {"iter": restored})
    assert_same(left(again), wanted[4:])


def test_maxtexts_remote_iterator_saves_and_restores_the_position(dataset, mesh, wanted, tmp_path):
    # A RemoteIterator has one shape for all its arrays, so images are left out.
    def only_ids(dataset):
        return dataset.map(lambda batch: {"id": batch["id"]})

    def new():
        return multihost_dataloading.RemoteIterator(
            lambda dataloading_host_index, dataloading_host_count: dataset,
            only_ids,
            (16,),
            tmp_path,
        )

    # The iterator deals the parts of a batch out to a set of devices, in the order of that set. So
    # the ids of a batch are compared in sorted order.
    def ids(batches):
        return [sorted(np.asarray(batch["id"]).tolist()) for batch in batches]

    whole = jax.sharding.PartitionSpec(mesh.axis_names)
    devices = jax.device_put(np.zeros(8), jax.sharding.NamedSharding(mesh, whole))
    step = jax.numpy.asarray(4)

    iterator = new()
    assert ids(iterator.get_next(devices) for _ in range(4)) == ids(wanted[:4])
    iterator.save_state(step)
    again = new()
    again.restore_state(step)
    assert ids(again.get_next(devices) for _ in range(8)) == ids(wanted[4:])
