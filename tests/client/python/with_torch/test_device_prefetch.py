"""systole.torch.device_prefetch: its batches and its state. The tests have no GPU."""

from __future__ import annotations

import runpy

import pytest
import systole
import systole.torch
import torch
from conftest import ROOT, spec_text
from conftest import systole as run_systole


@pytest.fixture
def spec(write_spec):
    return write_spec(spec_text())


def test_the_batches_are_the_feeds_and_the_state_counts_what_was_taken(shards, spec):
    with systole.LocalFeed(shards, spec) as plain:
        wanted = [[batch["id"].tolist() for batch in plain] for _ in range(2)]
    with systole.LocalFeed(shards, spec) as feed:
        prefetch = systole.torch.device_prefetch(feed, "cpu")
        assert len(prefetch) == len(feed)
        assert [[batch["id"].tolist() for batch in prefetch] for _ in range(2)] == wanted
        prefetch.load_state_dict(feed.state_at(0))
        for step in range(3):
            batch = next(prefetch)
            assert (batch.step, batch.epoch) == (step, 0)
            assert batch["id"].device == torch.device("cpu")
        state = prefetch.state_dict()
        assert state["step"] == 3
        assert feed.step > 3
        prefetch.load_state_dict(state)
        assert [batch["id"].tolist() for batch in prefetch] == wanted[0][3:]


def test_functions_of_the_users_own_come_before_the_device(shards, spec):
    with systole.LocalFeed(shards, spec) as feed:
        mapped = systole.map(feed, lambda batch: {"twice": 2 * batch["id"]})
        twice = [batch["twice"] for batch in systole.torch.device_prefetch(mapped, "cpu")]
    with systole.LocalFeed(shards, spec) as feed:
        assert [one.tolist() for one in twice] == [(2 * batch["id"]).tolist() for batch in feed]


def test_what_is_no_feed_is_refused(shards, spec):
    with systole.LocalFeed(shards, spec) as feed:
        with pytest.raises(systole.InvalidSpec, match="batches is a generator; want a feed"):
            systole.torch.device_prefetch((batch for batch in feed), "cpu")
        with pytest.raises(systole.InvalidSpec, match="size is 0, want 1 or more"):
            systole.torch.device_prefetch(feed, "cpu", size=0)


def test_the_example_measures_a_step_from_each_source(tmp_path):
    run_systole("make-flowers", tmp_path / "images", "--images", 40)
    run_systole("pack", tmp_path / "images", tmp_path / "photos", "--shards", 2)
    example = ROOT / "client" / "python" / "examples" / "resnet50_torch.py"
    main = runpy.run_path(str(example))["main"]
    rates = main(f"{tmp_path}/photos-*.tfrecord", "cpu", batch=4, steps=1, warm_up=1)
    assert list(rates) == ["on the device", "device_prefetch", "tensor.to()"]
    assert all(rate > 0 for rate in rates.values())
