"""Feeds of the records that meet a condition: from servers, from this process and from arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import systole
from conftest import systole as program

ROWS = 200
ARRAYS = {
    "label": np.arange(ROWS, dtype=np.int64) % 10,
    "weight": np.arange(ROWS, dtype=np.float32) / 4,
}


def spec_of(*conditions: systole.Where, **more) -> systole.FeedSpec:
    fields = {
        "dataset": "data",
        "seed": 7,
        "shuffle": systole.Shuffle("global"),
        "global_batch": 8,
        "num_cores": 2,
        "tail": "pad",
        "epochs": 2,
        "outputs": {
            "label": systole.Output(feature="label", dtype="int32"),
            "record": systole.Output(feature="record_id"),
        },
    }
    given = {name: value for name, value in (fields | more).items() if value is not None}
    return systole.FeedSpec(select=list(conditions), **given)


CONDITION = systole.Where(
    any=[systole.Where(feature="label", in_=[1, 4]), systole.Where(feature="weight", less=5)]
)


@pytest.fixture
def shards(tmp_path: Path) -> str:
    rows = [{name: array[i] for name, array in ARRAYS.items()} for i in range(ROWS)]
    for row in rows[::3]:
        del row["weight"]
    systole.write(tmp_path / "data", rows, shards=3)
    return str(tmp_path / "data-*.tfrecord")


def digests(feed) -> list[list[str]]:
    with feed:
        return [feed.digest(batch) for batch in feed]


def columns_beside(shards: str) -> list[Path]:
    return sorted(Path(shards).parent.glob("*.column"))


def test_filtered_records_are_the_same_from_a_server_and_a_local_feed(shards):
    spec = spec_of(CONDITION)
    local = digests(systole.LocalFeed(shards, spec))
    for path in columns_beside(shards):
        path.unlink()
    with systole.serve({"data": shards}, columns=["label", "weight"]) as server:
        assert digests(systole.Feed(server.address, spec)) == local
    assert len(columns_beside(shards)) == 2 * 3
    with systole.LocalFeed(shards, spec_of(CONDITION, shuffle=None, epochs=1)) as feed:
        seen = [int(i) for batch in feed for i in batch["record"][batch["valid"].astype(bool)]]
    rows = [i for shard in range(3) for i in range(shard, ROWS, 3)]  # By record_id.
    assert seen == [
        record for record, i in enumerate(rows) if i % 10 in (1, 4) or (i % 3 != 0 and i / 4 < 5)
    ]


def test_conditions_choose_the_same_rows_from_arrays_and_shards(tmp_path):
    spec = spec_of(CONDITION)
    rows = [{name: array[i] for name, array in ARRAYS.items()} for i in range(ROWS)]
    shard = systole.write(tmp_path / "data", rows).shards[0]
    wanted = digests(systole.LocalFeed(shard, spec))
    arrays = systole.from_arrays(ARRAYS)
    assert digests(systole.LocalFeed(arrays, spec)) == wanted
    columns = {"data": ["label", "weight"]}
    with systole.serve({"data": arrays}, columns=columns) as server:
        assert digests(systole.Feed(server.address, spec)) == wanted
    with pytest.raises(systole.InvalidSpec, match="no record has the feature 'lable'"):
        systole.LocalFeed(arrays, spec_of(systole.Where(feature="lable", present=True)))


def test_loading_a_state_and_skip_to_read_no_columns(shards):
    with systole.LocalFeed(shards, spec_of(CONDITION)) as feed:
        batches = [np.asarray(batch["record"]) for batch in feed]
        state = feed.state_at(3)
        for path in columns_beside(shards):
            path.unlink()
        feed.load_state_dict(state)
        assert np.array_equal(next(feed)["record"], batches[3])
        feed.skip_to(5)
        assert np.array_equal(next(feed)["record"], batches[5])
        # If the feed had read the columns, it would have made these files anew.
        assert columns_beside(shards) == []


def test_a_misspelt_feature_is_refused_and_nothing_is_kept(shards):
    spec = spec_of(systole.Where(feature="wieght", present=False))
    with pytest.raises(systole.InvalidSpec, match="'wieght'; did you mean 'weight'"):
        systole.LocalFeed(shards, spec)
    with pytest.raises(systole.Error, match="'lable'; did you mean 'label'"):
        with systole.serve({"data": shards}, columns=["lable"]):
            pass
    assert columns_beside(shards) == []


def test_serve_refuses_invalid_values_of_columns():
    data = {"a": "a-*", "b": "b-*"}
    with pytest.raises(systole.InvalidSpec, match="there are the datasets a, b; give a list for"):
        systole.serve(data, columns=["label"])
    with pytest.raises(systole.InvalidSpec, match="names the dataset 'c', but the datasets are a"):
        systole.serve(data, columns={"c": ["label"]})
    with pytest.raises(systole.InvalidSpec, match="columns of 'a' is 'label'; want a list"):
        systole.serve({"a": "a-*"}, columns="label")


def test_inspect_shows_the_columns_that_a_feed_has_written(shards):
    systole.LocalFeed(shards, spec_of(CONDITION)).close()
    shown = program("inspect", *sorted(Path(shards).parent.glob("data-*.tfrecord")))
    assert "label        int64   in 200 records" in shown
    assert "weight       float   in 133 records" in shown
