"""systole.orbax: the state of a feed in Orbax's checkpoints."""

from __future__ import annotations

import json

import jax
import numpy as np
import pytest
import systole
import systole.jax
import systole.orbax
from conftest import spec_text
from orbax.checkpoint.experimental import v1


@pytest.fixture
def open_feed(shards, write_spec):
    feeds = []

    def open_it(**options):
        spec = write_spec(spec_text(more="epochs: 2 tail: PAD"))
        feeds.append(systole.LocalFeed(shards, spec, threads=1, **options))
        return feeds[-1]

    yield open_it
    for feed in feeds:
        feed.close()


@pytest.fixture
def wanted(open_feed):
    return ids(open_feed().steps())


def ids(batches) -> list[list[int]]:
    return [batch["id"].tolist() for batch in batches]


def test_a_feed_is_saved_beside_a_model(open_feed, wanted, tmp_path):
    feed = open_feed()
    for _ in range(8):
        next(feed.steps())
    state = systole.orbax.State(feed)
    assert isinstance(state, v1.StatefulCheckpointable)
    model = {"weights": np.arange(4.0)}
    v1.save_checkpointables(tmp_path / "8", {"model": model, "feed": state})
    again = open_feed()
    loaded = v1.load_checkpointables(
        tmp_path / "8", {"model": model, "feed": systole.orbax.State(again)}
    )
    assert loaded["model"]["weights"].tolist() == [0, 1, 2, 3]
    assert ids(again.steps()) == wanted[8:]


def test_the_state_is_that_of_the_call_even_if_it_is_written_later(open_feed, wanted, tmp_path):
    feed = open_feed()
    next(feed)
    response = v1.save_checkpointables_async(tmp_path / "1", {"feed": systole.orbax.State(feed)})
    next(feed)
    response.result()
    again = open_feed()
    v1.load_checkpointables(tmp_path / "1", {"feed": systole.orbax.State(again)})
    assert ids(again.steps()) == wanted[1:]


def test_batches_on_their_way_to_devices_are_not_lost(open_feed, wanted, tmp_path):
    prefetch = systole.jax.device_prefetch(open_feed().steps(), jax.devices()[0])
    for _ in range(3):
        next(prefetch)
    v1.save_checkpointables(tmp_path / "3", {"feed": systole.orbax.State(prefetch)})
    again = open_feed()
    v1.load_checkpointables(tmp_path / "3", {"feed": systole.orbax.State(again)})
    assert ids(again.steps()) == wanted[3:]


def test_another_number_of_processes_loads_the_state(open_feed, wanted, tmp_path):
    feed = open_feed(process_index=0, process_count=1)
    next(feed)
    v1.save_checkpointables(tmp_path / "1", {"feed": systole.orbax.State(feed)})
    parts = []
    for index in range(2):
        again = open_feed(process_index=index, process_count=2)
        v1.load_checkpointables(tmp_path / "1", {"feed": systole.orbax.State(again)})
        parts.append(next(again)["id"].tolist())
    assert parts[0] + parts[1] == wanted[1]


@pytest.mark.parametrize("text", ["", "{", "[]", "17", json.dumps({"version": 1, "step": 3})])
def test_a_damaged_or_missing_state_is_refused(text, open_feed, tmp_path):
    feed = open_feed()
    v1.save_checkpointables(tmp_path / "0", {"feed": systole.orbax.State(feed)})
    (path,) = tmp_path.glob("0/**/feed.json")
    path.write_text(text)
    with pytest.raises(systole.InvalidSpec, match="not a state of a feed"):
        v1.load_checkpointables(tmp_path / "0", {"feed": systole.orbax.State(feed)})
    path.unlink()
    with pytest.raises(systole.NotFound, match="no state of a feed in this checkpoint"):
        v1.load_checkpointables(tmp_path / "0", {"feed": systole.orbax.State(feed)})


def test_what_has_no_state_is_refused():
    with pytest.raises(TypeError, match="stateful is a list, which has no state_dict"):
        systole.orbax.State([])
