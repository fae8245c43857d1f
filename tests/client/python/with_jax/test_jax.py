"""Tests systole.jax: global arrays over shardings, with eight host devices."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import jax
import numpy as np
import pytest
import systole
import systole.jax
from conftest import LONGEST_WAIT, image, spec_text
from jax.sharding import Mesh, NamedSharding, PartitionSpec

SPEC = spec_text(image("image", "BFLOAT16", "NHWC"), more="epochs: 2 tail: PAD").replace(
    "num_cores: 4", "num_cores: 8"
)


@pytest.fixture
def feed(shards, write_spec):
    with systole.LocalFeed(shards, write_spec(SPEC), threads=2) as feed:
        yield feed


def mesh(*shape: int) -> Mesh:
    names = ("data", "model")[: len(shape)]
    return Mesh(np.array(jax.devices()[: int(np.prod(shape))]).reshape(shape), names)


def same(on_device, array) -> bool:
    """Compares bit for bit. JAX turns int64 into int32 by default."""
    return np.asarray(on_device).tobytes() == array.astype(on_device.dtype).tobytes()


def test_there_are_eight_devices():
    assert len(jax.devices()) == 8


def test_a_batch_is_sharded_as_the_sharding_says(feed):
    sharding = NamedSharding(mesh(8), PartitionSpec("data"))
    batch = next(feed)
    on_devices = systole.jax.to_devices(batch, sharding)
    assert (on_devices.step, on_devices.epoch) == (0, 0)
    for name in batch:
        array = on_devices[name]
        assert array.sharding == sharding
        assert same(array, batch[name])
        for shard in array.addressable_shards:
            core = jax.devices().index(shard.device)
            assert same(shard.data, batch.core_array(name, core))


def test_a_replicated_axis_gets_equal_data(feed):
    sharding = NamedSharding(mesh(4, 2), PartitionSpec("data"))
    batch = next(feed)
    ids = systole.jax.to_devices(batch, sharding)["id"]
    assert ids.tolist() == batch["id"].tolist()
    by_rows = {}
    for shard in ids.addressable_shards:
        by_rows.setdefault(str(shard.index), set()).add(np.asarray(shard.data).tobytes())
    assert len(by_rows) == 4
    assert all(len(contents) == 1 for contents in by_rows.values())


def test_axes_other_than_the_batch_may_be_sharded_too(feed):
    sharding = NamedSharding(mesh(4, 2), PartitionSpec("data", "model"))
    batch = next(feed)
    array = systole.jax.to_devices(batch, {"image": sharding})
    assert list(array) == ["image"]
    assert np.asarray(array["image"]).tobytes() == batch["image"].tobytes()


def test_devices_in_another_order_get_their_own_examples(feed):
    devices = np.array(jax.devices())[::-1]
    sharding = NamedSharding(Mesh(devices, ("data",)), PartitionSpec("data"))
    batch = next(feed)
    ids = systole.jax.to_devices(batch, sharding)["id"]
    assert ids.tolist() == batch["id"].tolist()
    for shard in ids.addressable_shards:
        core = 7 - jax.devices().index(shard.device)
        assert np.asarray(shard.data).tolist() == batch.core_array("id", core).tolist()


def test_to_devices_joins_hwcn_cores_along_the_last_axis(shards, write_spec):
    spec = write_spec(SPEC.replace("layout: NHWC", "layout: HWCN"))
    sharding = NamedSharding(mesh(8), PartitionSpec(None, None, None, "data"))
    with systole.LocalFeed(shards, spec) as feed:
        batch = next(feed)
        array = systole.jax.to_devices(batch, {"image": sharding})["image"]
        wanted = np.concatenate([core["image"] for core in batch.per_core()], axis=-1)
        assert np.asarray(array).tobytes() == wanted.tobytes()


def test_to_devices_joins_tiled_cores_along_the_tile_axis(shards, write_spec):
    text = SPEC.replace("layout: NHWC", "layout: HWCN_TILED")
    sharding = NamedSharding(mesh(8), PartitionSpec(None, None, None, "data"))
    with systole.LocalFeed(shards, write_spec(text)) as feed:
        batch = next(feed)
        array = systole.jax.to_devices(batch, {"image": sharding})["image"]
        assert array.shape[3] == 8
        wanted = np.concatenate([core["image"] for core in batch.per_core()], axis=3)
        assert np.asarray(array).tobytes() == wanted.tobytes()


def test_a_mesh_that_needs_examples_of_other_cores_is_refused(shards, write_spec):
    sharding = NamedSharding(mesh(8), PartitionSpec("data"))
    with systole.LocalFeed(shards, write_spec(SPEC), cores=(0, 4)) as feed:
        with pytest.raises(ValueError, match="needs examples 8:10 of .*has 0:8"):
            systole.jax.to_devices(next(feed), sharding)


def test_prefetch_keeps_the_batches_and_its_state_counts_those_taken(feed, shards, write_spec):
    sharding = NamedSharding(mesh(8), PartitionSpec("data"))
    with systole.LocalFeed(shards, write_spec(SPEC)) as plain:
        wanted = [[batch["id"].tolist() for batch in plain] for _ in range(2)]
    prefetch = systole.jax.device_prefetch(feed, sharding, size=2)
    got = [[batch["id"].tolist() for batch in prefetch] for _ in range(2)]
    assert got == wanted
    assert list(prefetch) == []
    feed.skip_to(0)
    prefetch = systole.jax.device_prefetch(feed, sharding)
    for _ in range(3):
        next(prefetch)
    state = prefetch.state_dict()
    assert state["step"] == 3
    assert feed.step > 3
    prefetch.load_state_dict(state)
    assert [batch["id"].tolist() for batch in prefetch] == wanted[0][3:]


def test_prefetch_over_steps_goes_on_over_the_epochs(feed, shards, write_spec):
    sharding = NamedSharding(mesh(8), PartitionSpec("data"))
    with systole.LocalFeed(shards, write_spec(SPEC)) as plain:
        wanted = [batch["id"].tolist() for batch in plain.steps()]
    assert len(wanted) == 2 * len(feed)
    prefetch = systole.jax.device_prefetch(feed.steps(), sharding)
    got = [next(prefetch)["id"].tolist() for _ in range(len(feed) - 1)]
    # The feed has read on into the next epoch. The state counts only the batches that were taken.
    assert feed.step > len(feed)
    assert prefetch.state_dict()["step"] == len(feed) - 1
    got += [batch["id"].tolist() for batch in prefetch]
    assert got == wanted
    assert next(prefetch, None) is None
    prefetch.load_state_dict({**prefetch.state_dict(), **feed.state_at(len(feed))})
    assert [batch["id"].tolist() for batch in prefetch] == wanted[len(feed) :]


PROCESS = """
import os, sys
index, port, where, spec = int(sys.argv[1]), *sys.argv[2:]
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax
jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=2, process_id=index)
import numpy as np, systole, systole.jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
feed = systole.Feed(where, spec)
assert feed.cores == (index * 4, index * 4 + 4), feed
sharding = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), PartitionSpec("data"))
for batch in feed:
    digests = feed.digest(batch)
    on_devices = systole.jax.to_devices(batch, sharding)
    for name in batch:
        assert on_devices[name].shape[0] == 16
        for shard in on_devices[name].addressable_shards:
            core = shard.index[0].start // 2
            part = batch.core_array(name, core)
            assert np.asarray(shard.data).tobytes() == part.astype(shard.data.dtype).tobytes()
    for core, digest in enumerate(digests, feed.cores[0]):
        print(batch.step, core, digest)
"""


def test_two_processes_hold_one_array(server, write_spec):
    import socket

    from conftest import systole as run

    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        port = str(holder.getsockname()[1])
    spec = write_spec(SPEC)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(PROCESS), str(i), port, server.address, spec],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(2)
    ]
    lines = []
    for process in processes:
        out, err = process.communicate(timeout=LONGEST_WAIT)
        assert process.returncode == 0, err
        lines += out.splitlines()
    wanted = run("feed", "--server", server.address, "--spec", spec, "--digest").splitlines()
    assert sorted(lines) == sorted(wanted)
