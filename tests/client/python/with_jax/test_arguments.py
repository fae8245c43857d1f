"""Gives arguments as users of other libraries would give them. Each is accepted, or refused with an
error that says what to give instead."""

from __future__ import annotations

import gzip
import logging
import random

import jax
import pytest
import systole
import systole.jax
from conftest import ROOT, python
from conftest import systole as program

WRONG = {
    "threads='2'": "threads is '2'; want a whole number",
    "threads=1.5": "threads is 1.5; want a whole number",
    "prefetch_bytes='1GB'": "prefetch_bytes is '1GB'; want a whole number, such as 256 << 20",
    "cache_memory='1GB'": "cache_memory is '1GB'; want",
    "cores=1": r"cores=1: want \(first, end\)",
    "cores=[0]": r"cores=\[0\]: want \(first, end\)",
    "cores=(0, 9)": r"inside \(0, 4\), as the spec's num_cores is 4",
    "process_index=0": "give both process_index and process_count",
    "process_index=0, process_count=3": "num_cores is 4, which 3 processes",
    "expect_records='180'": "expect_records of 'flowers' is '180'; want a whole number",
    "num_threads=2": r"LocalFeed\(\) has no 'num_threads'; did you mean 'threads'",
    "index_dir='nodir'": "index_dir is 'nodir', and there is no such folder",
    "index_dir=3": "index_dir is 3; want a path",
}


@pytest.mark.parametrize("options", WRONG)
def test_an_invalid_option_is_refused_by_its_name(options, shards, write_spec):
    with pytest.raises(systole.Error, match=WRONG[options]):
        systole.LocalFeed(shards, write_spec(), **eval(f"dict({options})"))


def test_floats_that_are_whole_are_numbers_of_bytes(shards, write_spec):
    systole.LocalFeed(shards, write_spec(), prefetch_bytes=1e9, cache_memory=1e6).close()


@pytest.mark.parametrize(
    "call",
    [
        lambda: systole.configure(threads="x"),
        lambda: systole.configure(num_threads=2),
        lambda: systole.serve("out/*.tfrecord"),
        lambda: systole.serve({"a": "b"}, threads="x"),
        lambda: systole.Feed("out/*.tfrecord", {}),
        lambda: systole.Feed(17, {}),
        lambda: systole.Feed("127.0.0.1:1", {}, retry_for=[3]),
        lambda: systole.LocalFeed(systole.FeedSpec(dataset="d"), "out/*.tfrecord"),
        lambda: systole.LocalFeed("spec.textproto", "out/*.tfrecord"),
        lambda: systole.LocalFeed(17, {"dataset": "d"}),
    ],
)
def test_every_mistake_is_an_error_of_systoles(call):
    with pytest.raises(systole.InvalidSpec):
        call()


@pytest.fixture
def feed(shards, write_spec):
    with systole.LocalFeed(shards, write_spec()) as opened:
        yield opened


def test_missing_feed_methods_raise_errors_that_name_alternatives(feed):
    for name in ("take", "skip", "map", "batch", "repeat"):
        assert not hasattr(feed, name)
        with pytest.raises(systole.Error, match=rf"a feed has no {name}\(\): "):
            getattr(feed, name)
    with pytest.raises(systole.Error, match="systole.torch.FeedDataset"):
        feed[0]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        print(feed.nothing)


def test_an_invalid_state_or_step_is_refused(feed):
    for state in ("xx", {}, {"version": 1, "step": "x", "token": ""}, None):
        with pytest.raises(systole.InvalidSpec):
            feed.load_state_dict(state)
    with pytest.raises(systole.InvalidSpec, match="not a state of a feed"):
        feed.set_state(b"{")
    for step in (-1, "x"):
        with pytest.raises(systole.InvalidSpec, match="step is "):
            feed.skip_to(step)


def test_an_invalid_rank_in_the_environment_is_refused(shards, write_spec, monkeypatch):
    monkeypatch.setenv("RANK", "x")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(systole.InvalidSpec, match="the environment's RANK is 'x'.*cores="):
        systole.LocalFeed(shards, write_spec())


def test_a_server_object_is_accepted_in_place_of_its_address(shards, write_spec):
    with systole.serve({"flowers": shards}, memory_budget=1e9) as server:
        with systole.Feed(server, write_spec()) as feed:
            assert next(feed).step == 0


def test_errors_name_options_as_python_has_them(write_spec):
    with pytest.raises(systole.InvalidSpec, match="add tls=True") as told:
        systole.Feed("127.0.0.1:1", write_spec(), tls_ca=str(ROOT / "README.md"))
    assert "--" not in str(told.value)


def test_device_prefetch_accepts_a_device_and_refuses_invalid_arguments(feed):
    device = jax.devices()[3]
    with pytest.raises(systole.InvalidSpec, match="batches is a generator; want a feed"):
        systole.jax.device_prefetch((batch for batch in feed), device)
    with pytest.raises(systole.InvalidSpec, match="shardings is 3; want a sharding"):
        systole.jax.device_prefetch(feed, 3)
    batch = next(systole.jax.device_prefetch(feed, device))
    assert batch["label"].devices() == {device}


def test_indexes_that_cannot_be_written_cause_one_warning(shards, tmp_path, write_spec, caplog):
    with systole.LocalFeed(shards, write_spec(), index_dir=tmp_path):
        assert not caplog.records
    for index in tmp_path.glob("*.idx"):
        index.unlink()
        index.mkdir()  # Because of this folder not even root can write the index.
    with systole.LocalFeed(shards, write_spec(), index_dir=tmp_path):
        (told,) = caplog.records
    assert told.name == "systole" and told.levelno == logging.WARNING
    assert "index not kept" in told.getMessage() and "2 more" in told.getMessage()


def test_nothing_is_left_beside_files_that_are_no_shards(tmp_path):
    program("make-flowers", tmp_path / "images", "--images", 20, "--size", 32)
    (tmp_path / "images" / "notes.txt").write_text("some notes")
    (tmp_path / "images" / "notes.gz").write_bytes(
        gzip.compress(random.Random(1).randbytes(3 << 20))
    )
    before = sorted(tmp_path.rglob("*"))
    for glob in ("images/notes.txt", "images/notes.gz"):
        with pytest.raises(systole.Error, match="not a TFRecord shard|no record that can be read"):
            systole.LocalFeed(str(tmp_path / glob), {"dataset": "d", "global_batch": 1})
    assert sorted(tmp_path.rglob("*")) == before


TOP_LEVEL = """
    import sys
    import jax, numpy as np, systole, systole.jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    feed = systole.LocalFeed(sys.argv[1], sys.argv[2])
    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), PartitionSpec("data"))
    mean = jax.jit(lambda batch: batch["image"].astype(np.float32).mean())
    for batch in systole.jax.device_prefetch(feed.steps(), sharding):
        mean(dict(batch))
        if batch.step == 2:
            break
    kept = jax.device_put(next(feed.steps())["image"])
    feed.close()
"""


def test_a_script_ends_without_a_word(shards, write_spec):
    done = python(TOP_LEVEL, shards, write_spec())
    assert (done.returncode, done.stderr) == (0, "")
