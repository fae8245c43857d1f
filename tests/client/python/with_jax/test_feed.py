"""Epochs, position, state, hosts, and what a feed says about itself."""

from __future__ import annotations

import json
import pickle
import re
import time

import numpy as np
import pytest
import systole
from conftest import RECORDS, ROOT, spec_text
from systole import _hosts

STEPS = 6  # An epoch has 96 records, and a step 16.


@pytest.fixture
def open_feed(open_spec):
    def open_it(more="epochs: 2 tail: PAD", **options):
        return open_spec(spec_text(more=more), **options)

    return open_it


@pytest.fixture(params=["client", "local"])
def open_spec(request, server, shards, write_spec):
    feeds = []

    def open_it(text, **options):
        spec = write_spec(text)
        if request.param == "client":
            feeds.append(systole.Feed(server.address, spec, **options))
        else:
            feeds.append(systole.LocalFeed({"flowers": shards}, spec, **options))
        return feeds[-1]

    yield open_it
    for feed in feeds:
        feed.close()


def test_each_loop_gives_the_next_epoch_until_the_feed_ends(open_feed):
    feed = open_feed()
    assert len(feed) == STEPS
    assert [batch.step for batch in feed] == [0, 1, 2, 3, 4, 5]
    assert [(batch.step, batch.epoch) for batch in feed] == [(s, 1) for s in range(6, 12)]
    assert list(feed) == []
    assert list(feed) == []


def test_a_feed_says_how_its_transforms_run(open_feed):
    first, *_ = open_feed().explain().splitlines()
    assert first.startswith("image: fused: decode_jpeg, ")
    assert "alone" not in first


def test_a_feed_without_end_has_epochs_too(open_feed):
    feed = open_feed("epochs: 0")
    assert feed.num_steps is None
    assert len(feed) == STEPS
    for epoch in range(3):
        assert {batch.epoch for batch in feed} == {epoch}


def test_steps_go_on_over_the_epochs_to_the_end_of_the_feed(open_feed):
    feed = open_feed()
    assert [batch.step for batch in feed.steps()] == list(range(2 * STEPS))
    assert list(feed.steps()) == [] == list(feed)


def test_steps_of_a_feed_without_end_never_end(open_feed):
    steps = open_feed("epochs: 0").steps()
    assert [next(steps).step for _ in range(3 * STEPS + 1)] == list(range(3 * STEPS + 1))


def test_steps_and_loops_share_the_position(open_feed):
    feed = open_feed()
    steps = feed.steps()
    assert [next(steps).step for _ in range(STEPS)] == list(range(STEPS))
    assert next(feed.steps()).step == STEPS  # `feed` was at the end of an epoch.
    assert [batch.step for batch in feed] == list(range(STEPS + 1, 2 * STEPS))
    feed.skip_to(STEPS - 1)
    assert [batch.step for batch in steps] == list(range(STEPS - 1, 2 * STEPS))


def test_a_loop_after_an_early_break_continues_the_epoch(open_feed):
    feed = open_feed()
    for batch in feed:
        if batch.step == 2:
            break
    assert feed.step == 3
    assert [batch.step for batch in feed] == [3, 4, 5]


def test_every_record_comes_once_an_epoch(open_feed):
    feed = open_feed()
    for _ in range(2):
        ids = np.concatenate([batch["id"] for batch in feed])
        assert sorted(ids.tolist()) == list(range(RECORDS))


def mixed_spec(group):
    return systole.FeedSpec(
        dataset="flowers",
        epochs=1,
        shuffle=systole.Shuffle("global"),
        global_batch=16,
        num_cores=2,
        outputs={
            "image": systole.Image("image", resize=(24, 16), dtype="bfloat16"),
            "label": systole.Output(
                feature="label", transforms=[systole.OneHot(depth=5)], dtype="float32"
            ),
        },
        mix=systole.Mix(
            group=group,
            images=["image"],
            labels=["label"],
            mixup=systole.Mixup(alpha=0.4),
            cutmix=systole.Cutmix(),
        ),
    )


def test_mixup_and_cutmix_are_the_same_from_servers_and_in_local_feeds(server, shards):
    spec = mixed_spec(group=4)
    labels = []
    with systole.Feed(server.address, spec) as feed, systole.LocalFeed(shards, spec) as local:
        for batch, other in zip(feed, local, strict=True):
            for name in ("image", "label"):
                assert batch[name].tobytes() == other[name].tobytes()
            labels.append(np.array(batch["label"]))
    labels = np.concatenate(labels)
    np.testing.assert_allclose(labels.sum(axis=1), 1, rtol=1e-6)
    assert ((labels > 0) & (labels < 1)).any(axis=1).sum() > len(labels) / 3
    with pytest.raises(systole.InvalidSpec, match="mix.group is 3"):
        systole.LocalFeed(shards, mixed_spec(group=3))


def test_peek_consumes_nothing(open_feed):
    feed = open_feed()
    peeked = feed.peek()
    assert (peeked.step, feed.step) == (0, 0)
    assert feed.peek() is peeked
    assert feed.state_dict()["step"] == 0
    assert next(feed) is peeked
    assert next(feed).step == 1


def test_fetching_may_begin_before_the_first_batch(server, write_spec):
    with systole.Feed(server.address, write_spec()) as feed:
        feed.start_prefetch()
        while feed.stats()["steps_received"] == 0:
            time.sleep(0.01)
        assert next(feed).step == 0


def test_skip_to_goes_forwards_and_back(open_feed):
    feed = open_feed()
    first = next(feed)["id"].tolist()
    feed.skip_to(7)
    assert (feed.step, feed.epoch) == (7, 1)
    assert [batch.step for batch in feed] == [7, 8, 9, 10, 11]
    feed.skip_to(0)
    assert next(feed)["id"].tolist() == first
    with pytest.raises(ValueError):
        feed.skip_to(-1)


def test_state_counts_what_was_taken_and_resumes(open_feed):
    feed = open_feed()
    fresh = feed.state_dict()
    assert fresh["step"] == 0
    next(feed)
    next(feed)
    state = feed.state_dict()
    rest = [batch["id"].tolist() for batch in feed]
    for stored in (json.loads(json.dumps(state)), pickle.loads(pickle.dumps(state))):
        again = open_feed()
        again.load_state_dict(stored)
        assert again.step == 2
        assert [batch["id"].tolist() for batch in again] == rest
    as_bytes = open_feed()
    as_bytes.set_state(json.dumps(state).encode())
    assert as_bytes.get_state() == json.dumps(state).encode()
    assert next(as_bytes)["id"].tolist() == rest[0]


def with_batch(size, more="epochs: 2 tail: PAD"):
    return spec_text(more=more).replace("global_batch: 16", f"global_batch: {size}")


def ids_of(batches):
    """The record ids of the batches, without padding."""
    return [int(i) for b in batches for i, valid in zip(b["id"], b["valid"], strict=True) if valid]


@pytest.mark.parametrize("tail", ["PAD", "DROP"])
def test_a_state_resumes_at_the_same_example_with_another_batch_size(open_spec, tail, caplog):
    more = f"epochs: 2 tail: {tail}"
    whole = ids_of(open_spec(with_batch(8, more)).steps())
    for size in (8, 16, 24, 48):
        for taken in range(1, 4):
            feed = open_spec(with_batch(size, more))
            steps = feed.steps()
            before = ids_of([next(steps) for _ in range(taken)])
            again = open_spec(with_batch(8, more))
            again.load_state_dict(feed.state_dict())
            assert (again.step, again.epoch) == (len(before) // 8, len(before) // RECORDS)
            assert before + ids_of(again.steps()) == whole
            feed.close()
            again.close()
    assert not [one for one in caplog.records if "skipped" in one.getMessage()]


def test_resuming_inside_a_batch_skips_to_the_next_batch_and_warns_once(open_spec, caplog):
    small = open_spec(with_batch(8))
    before = ids_of([next(small) for _ in range(5)])  # 40 examples
    again = open_spec(with_batch(32))
    again.load_state_dict(small.state_dict())
    assert (again.step, len(again)) == (2, 3)
    skipped = ids_of(small)[: 2 * 32 - 40]
    assert sorted(before + skipped + ids_of(again)) == list(range(RECORDS))
    assert [batch.step for batch in again] == [3, 4, 5]  # The second epoch is whole.
    again.close()
    told = [one for one in caplog.records if "skipped" in one.getMessage()]
    assert [one.levelname for one in told] == ["WARNING"]
    assert "examples skipped: 24. " in told[0].getMessage()
    assert "after 40 examples of epoch 0" in told[0].getMessage()


def test_a_state_at_an_epochs_end_resumes_there_with_any_batch_size(open_spec, caplog):
    for tail in ("PAD", "DROP"):
        for size, other in ((20, 28), (28, 20), (96, 20)):  # 20 and 28 do not divide 96.
            feed = open_spec(with_batch(size, f"epochs: 2 tail: {tail}"))
            again = open_spec(with_batch(other, f"epochs: 2 tail: {tail}"))
            for epoch in (1, 2):
                list(feed)
                again.load_state_dict(feed.state_dict())
                assert (again.step, again.epoch) == (epoch * len(again), epoch)
            assert list(again) == []
    assert not [one for one in caplog.records if "skipped" in one.getMessage()]


def test_state_goes_between_servers_and_local_feeds(server, shards, write_spec):
    spec = write_spec()
    with systole.Feed(server.address, spec) as far, systole.LocalFeed(shards, spec) as near:
        next(far)
        near.load_state_dict(far.state_dict())
        wanted = next(far)["id"].tolist()
        assert next(near)["id"].tolist() == wanted
        assert near.state_dict() == far.state_dict()
        next(near)
        far.load_state_dict(near.state_dict())
        assert next(far)["id"].tolist() == next(near)["id"].tolist()


def test_state_is_equal_on_all_hosts_and_loads_with_another_host_count(open_feed):
    hosts = [open_feed(process_index=i, process_count=4) for i in range(4)]
    for host in hosts:
        next(host)
    states = [host.state_dict() for host in hosts]
    assert all(state == states[0] for state in states)
    whole = open_feed()
    whole.load_state_dict(states[2])
    joined = np.concatenate([next(host)["id"] for host in hosts])
    assert next(whole)["id"].tolist() == joined.tolist()


def test_a_state_of_another_spec_or_with_a_bad_token_is_refused(open_feed, write_spec):
    feed = open_feed()
    state = feed.state_dict()
    other = open_feed("epochs: 2 tail: DROP")
    with pytest.raises(systole.FailedPrecondition, match="tail"):
        other.load_state_dict(state)
    assert next(other).step == 0  # Its position did not change.
    with pytest.raises(systole.InvalidSpec, match="token"):
        other.load_state_dict({**state, "token": "systole2:broken"})
    with pytest.raises(systole.InvalidSpec, match="is of an older release"):
        other.load_state_dict({**state, "token": "systole1:0:0:5:x:0"})
    with pytest.raises(systole.InvalidSpec, match="not a state of a feed"):
        other.load_state_dict({"something": 1})


def test_a_closed_feed_refuses_to_read_and_keeps_its_stats(open_feed):
    feed = open_feed()
    next(feed)
    feed.close()
    feed.close()
    with pytest.raises(systole.FailedPrecondition, match="closed"):
        next(feed)
    assert feed.stats()["steps_received"] >= 1
    assert "closed" in repr(feed)


def test_repr_stats_and_element_spec_describe_the_feed(open_feed):
    feed = open_feed(cores=(1, 3))
    next(feed)
    text = repr(feed)
    for part in ("image bfloat16[8, 40, 32, 3]", "6 steps an epoch", "12 steps", "cores 1 to 2"):
        assert part in text
    stats = feed.stats()
    assert stats["steps_received"] >= 1
    assert 0 <= stats["waited_seconds"] <= stats["total_seconds"]
    assert 'name: "image"' in feed.spec
    spec = feed.element_spec["image"]
    assert spec.shape == (8, 40, 32, 3) and spec.per_core_shape == (4, 40, 32, 3)


def test_stats_have_every_metric_that_the_document_lists(open_feed):
    document = (ROOT / "client/step/README.md").read_text()
    listed = re.findall(r"^\| `(\w+)` \| `systole_feed_", document, re.MULTILINE)
    others = {"not_shared", "masked_records", "waited_seconds", "total_seconds"}
    others |= {"limit", "limit_output", "limit_operation", "limit_share", "recent_limit"}
    assert listed
    assert set(open_feed().stats()) == set(listed) | others


def test_padding_is_marked_and_counted(server, shards, write_spec):
    spec = write_spec(
        spec_text(more="epochs: 1 tail: PAD").replace("global_batch: 16", "global_batch: 20")
    )
    # In steps of 20, the last step has 16 of the 96 records, and 4 places of padding.
    for feed in (systole.Feed(server.address, spec), systole.LocalFeed(shards, spec)):
        with feed:
            assert [batch["valid"].sum() for batch in feed] == [20, 20, 20, 20, 16]
            assert feed.stats()["padded_examples"] == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cores": (0, 5)}, r"inside \(0, 4\)"),
        ({"cores": (2, 2)}, "inside"),
        ({"cores": (0, 2), "process_index": 0, "process_count": 2}, "not both"),
        ({"process_index": 0}, "both"),
        ({"process_index": 2, "process_count": 2}, "want 0 to 1"),
        ({"process_index": 0, "process_count": 3}, "cannot share equally"),
    ],
)
def test_invalid_cores_and_process_numbers_are_refused(open_feed, options, message):
    with pytest.raises(ValueError, match=message):
        open_feed(**options)


def test_rank_and_world_size_choose_the_cores_unless_arguments_do(open_feed, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert open_feed().cores == (2, 4)
    assert "(RANK)" in repr(open_feed())
    assert open_feed(process_index=0, process_count=1).cores == (0, 4)
    assert open_feed(cores=(0, 1)).cores == (0, 1)


def test_a_single_jax_process_gets_all_cores():
    pytest.importorskip("jax")
    assert _hosts.share_of_cores(8, None, None, None) == ((0, 8), "all")


def test_datasets_may_be_a_dict_or_shards_and_missing_ones_are_refused(shards, write_spec):
    spec = write_spec()
    for datasets in ({"flowers": shards}, {"flowers": [shards]}, shards, [shards]):
        with systole.LocalFeed(datasets, spec) as feed:
            assert next(feed).step == 0
    with pytest.raises(systole.NotFound, match="`datasets` has photos"):
        systole.LocalFeed({"photos": shards}, spec)
    with pytest.raises(systole.NotFound, match="nothing-"):
        systole.LocalFeed("nothing-*.tfrecord", spec)


def test_lists_of_any_length_come_padded_and_ragged(shards):
    jpeg = systole.Output(
        feature="image", dtype="uint8", padded=systole.Padded(length=20000, value=7)
    )
    spec = systole.FeedSpec(dataset="flowers", global_batch=6, num_cores=2, outputs={"jpeg": jpeg})
    with systole.LocalFeed(shards, spec, threads=1) as feed:
        batch = next(feed)
    lengths = batch["jpeg_length"]
    assert lengths.dtype == np.int32 and len(set(lengths.tolist())) > 1
    values, row_splits = batch.ragged("jpeg")
    assert row_splits.tolist() == [0, *np.cumsum(lengths).tolist()]
    for i in range(6):
        file = values[row_splits[i] : row_splits[i + 1]].tobytes()
        assert file[:2] == b"\xff\xd8" and file[-2:] == b"\xff\xd9"
        assert file == batch["jpeg"][i, : lengths[i]].tobytes()
        assert (batch["jpeg"][i, lengths[i] :] == 7).all()


def test_a_default_value_stands_for_what_records_lack(shards):
    outputs = {
        "weight": systole.Output(
            feature="weight", dtype="float32", default_value=systole.DefaultValue(floats=2.5)
        ),
        "pixels": systole.Output(
            feature="pixels",
            dtype="uint8",
            shape=[4],
            transforms=[systole.DecodeRaw()],
            default_value=systole.DefaultValue(bytes=b"\xff\xd8\xff\xd9"),
        ),
    }
    spec = systole.FeedSpec(dataset="flowers", global_batch=4, num_cores=1, outputs=outputs)
    assert 'bytes: "\\377\\330\\377\\331"' in str(spec)
    with systole.LocalFeed(shards, spec, threads=1) as feed:
        batch = next(feed)
    assert batch["weight"].tolist() == [2.5] * 4
    assert batch["pixels"].tolist() == [[255, 216, 255, 217]] * 4


@pytest.mark.parametrize(
    "select",
    [
        [systole.Select(skip=5), systole.Select(shard=systole.Part(3, 1))],
        [systole.Select(interleave=systole.Interleave(2, 3)), systole.Select(take=50)],
        [systole.Select(auto_shard=systole.AutoShard("file", 2, 1))],
        [systole.Select(skip=2), systole.Where(feature="label", not_in=[3])],
    ],
)
def test_a_selection_is_the_same_in_local_feeds_and_from_servers(select, server, shards):
    spec = systole.FeedSpec(
        dataset="flowers",
        select=select,
        tail="pad",
        epochs=1,
        global_batch=16,
        num_cores=2,
        outputs={"id": systole.Output(feature="record_id", dtype="int64")},
    )
    with systole.LocalFeed(shards, spec, threads=1) as feed:
        here = [batch["id"][batch["valid"] == 1].tolist() for batch in feed]
        state = feed.state_dict()
    with systole.Feed(server.address, spec) as feed:
        assert [batch["id"][batch["valid"] == 1].tolist() for batch in feed] == here
        assert feed.state_dict() == state
        records = [record for step in here for record in step]
        assert len(set(records)) == len(records) < RECORDS
        padded = 16 * len(feed) - len(records)
        assert feed.stats()["padded_examples"] == padded
        assert feed.stats()["masked_examples"] == 0
    spec = systole.FeedSpec(**{**spec._fields, "select": []})
    with systole.LocalFeed(shards, spec) as feed, pytest.raises(systole.FailedPrecondition):
        feed.load_state_dict(state)


# In the first case the cache keeps decoded images, in the other cases finished examples.
@pytest.mark.parametrize(
    "made",
    [
        {"random_crop": (24, 24), "dtype": "uint8"},
        {"resize": (24, 24), "dtype": "float32"},
        {"resize": (24, 24), "dtype": "bfloat16", "layout": "NCHW"},
    ],
    ids=["images", "examples", "transposed-examples"],
)
def test_caches_are_hit_in_later_epochs_and_change_no_byte(shards, tmp_path, made):
    def spec(**cache):
        image = systole.Image("image", **made, **cache)
        return systole.FeedSpec(
            dataset="flowers", global_batch=16, num_cores=2, epochs=2, outputs={"image": image}
        )

    def bytes_of(feed):
        with feed:
            batches = [batch["image"].tobytes() for epoch in range(2) for batch in feed]
            return batches, feed.cache_stats()

    # An epoch has six steps. With so little memory, at most two steps are made ahead of the
    # trainer. So no value is looked up for the second epoch before the first epoch has stored it,
    # even if a thread is held up and another thread goes on.
    ahead = {"threads": 1, "prefetch_bytes": 1}
    plain, stats = bytes_of(systole.LocalFeed(shards, spec(), **ahead))
    assert stats["cache_misses"] == 0
    kept, stats = bytes_of(
        systole.LocalFeed(shards, spec(cache="MEMORY"), **ahead, cache_memory=1 << 26)
    )
    assert kept == plain
    assert (stats["cache_misses"], stats["cache_hits"]["memory"]) == (RECORDS, RECORDS)
    disk = spec(cache="disk")
    for found in (RECORDS, 2 * RECORDS):
        kept, stats = bytes_of(systole.LocalFeed(shards, disk, **ahead, cache_disk=tmp_path / "c"))
        assert kept == plain
        assert stats["cache_hits"]["disk"] == found
    with pytest.raises(systole.InvalidSpec):
        systole.LocalFeed(shards, spec(), cache_memory=-1)
    with systole.serve({"flowers": shards}, cache_memory=1 << 26) as server:
        feed = systole.Feed(server.address, spec(cache="memory"))
        with feed:
            assert [batch["image"].tobytes() for epoch in range(2) for batch in feed] == plain


def test_a_cache_with_nothing_to_keep_is_refused_with_the_remedy(shards):
    image = systole.Image(
        "image", decode_jpeg={"scale": "auto"}, random_resized_crop=(24, 24), cache="memory"
    )
    spec = systole.FeedSpec(dataset="flowers", global_batch=16, outputs={"image": image})
    with pytest.raises(systole.InvalidSpec, match="output 'image': cache has .* use scale: FULL"):
        systole.LocalFeed(shards, spec, cache_memory=1 << 26)


def members(*weights):
    head, tail = systole.Select(take=40), systole.Select(skip=80)
    return [
        systole.Member("flowers", [select], weight=weight)
        for select, weight in zip([head, tail], weights, strict=True)
    ]


def weights(*changes):
    return [systole.Weights(from_step, list(values)) for from_step, values in changes]


@pytest.mark.parametrize(
    "several",
    [
        {"concatenation": members(0, 0)},
        {"mixture": members(1, 2)},
        {"mixture": members(1, 1), "weights": weights((1, (3, 1)), (3, (0, 1)), (6, (1, 1)))},
    ],
)
def test_several_datasets_are_the_same_in_local_feeds_and_from_servers(several, server, shards):
    spec = systole.FeedSpec(
        **several,
        shuffle=systole.Shuffle("global"),
        tail="pad",
        epochs=2,
        global_batch=16,
        num_cores=2,
        outputs={"id": systole.Output(feature="record_id", dtype="int64")},
    )
    with systole.LocalFeed({"flowers": shards}, spec, threads=1) as feed:
        here = [batch["id"].tolist() for epoch in range(2) for batch in feed]
        state = feed.state_dict()
    assert len(here) == 2 * 4
    assert {record >= RECORDS for step in here for record in step} == {False, True}
    with systole.Feed(server.address, spec) as feed:
        assert [batch["id"].tolist() for epoch in range(2) for batch in feed] == here
        assert feed.state_dict() == state
        assert feed.stats()["padded_examples"] == 2 * (64 - 56)


def test_a_state_loads_only_if_weights_before_its_step_are_the_same(server, shards):
    def spec(*changes):
        return systole.FeedSpec(
            mixture=members(1, 1),
            weights=weights(*changes),
            global_batch=8,
            num_cores=2,
            outputs={"id": systole.Output(feature="record_id", dtype="int64")},
        )

    def feeds(*changes):
        yield systole.LocalFeed({"flowers": shards}, spec(*changes))
        yield systole.Feed(server.address, spec(*changes))

    def ids(feed, count):
        return [next(feed)["id"].tolist() for _ in range(count)]

    def taken(feed):
        with feed:
            return ids(feed, 5), feed.state_dict()

    here, there = (taken(feed) for feed in feeds((2, (3, 1)), (8, (0, 1))))
    assert here == there
    before, state = here
    for feed in feeds((2, (3, 1)), (5, (0, 1))):
        with feed:
            # From step 5 on, this feed has other weights than the state's feed: all examples come
            # from the second member, which goes on in the middle of its pass.
            assert ids(feed, 5) == before
            after = ids(feed, 2)
            feed.load_state_dict(state)
            assert ids(feed, 2) == after
    for feed in feeds((2, (1, 1)), (8, (0, 1))):
        with feed, pytest.raises(systole.FailedPrecondition, match="differs from step 2 on"):
            feed.load_state_dict(state)
    for feed in feeds((2, (3, 1)), (4, (0, 1))):
        with feed, pytest.raises(systole.FailedPrecondition, match="from step 4 on.* did not have"):
            feed.load_state_dict(state)
    for feed in feeds():
        with feed, pytest.raises(systole.FailedPrecondition, match="changed more often"):
            feed.load_state_dict(state)


def test_a_state_loads_with_another_batch_if_weights_use_from_example(server, shards):
    def spec(batch, *first):
        return systole.FeedSpec(
            mixture=members(1, 1),
            weights=[*first, systole.Weights(from_example=50, weights=[0, 1])],
            global_batch=batch,
            num_cores=2,
            outputs={"id": systole.Output(feature="record_id", dtype="int64")},
        )

    def feeds(*of):
        yield systole.LocalFeed({"flowers": shards}, spec(*of))
        yield systole.Feed(server.address, spec(*of))

    def ids(feed, examples):
        steps = feed.steps()
        found = []
        while len(found) < examples:
            found += next(steps)["id"].tolist()
        return found

    by_step = systole.Weights(from_step=3, weights=[3, 1])
    # With 16 examples a step, example 24 is in the middle of a step.
    by_example = systole.Weights(from_example=24, weights=[3, 1])
    for old in feeds(8, by_step):
        with old:
            whole = ids(old, 32)
            state = old.state_dict()
            whole += ids(old, 64)
        for feed in feeds(16, by_example):
            with feed:
                assert ids(feed, 96) == whole
                feed.load_state_dict(state)
                assert ids(feed, 64) == whole[32:]
        for feed in feeds(16, by_step):
            remedy = "`from_example: 24` instead of `from_step: 3`"
            with feed, pytest.raises(systole.FailedPrecondition, match=remedy):
                feed.load_state_dict(state)
    both = systole.Weights(from_step=3, from_example=24, weights=[3, 1])
    with pytest.raises(systole.InvalidSpec, match="from_step 3 and from_example 24"):
        systole.LocalFeed({"flowers": shards}, spec(8, both))


def test_a_state_of_filtered_records_loads_if_only_later_weights_differ(server, shards):
    def spec(label, *changes):
        chosen = systole.Member(
            "flowers", [systole.Where(feature="label", not_in=[label])], weight=1
        )
        return systole.FeedSpec(
            mixture=[chosen, systole.Member("flowers", weight=1)],
            weights=weights(*changes),
            global_batch=16,
            num_cores=2,
            outputs={"id": systole.Output(feature="record_id", dtype="int64")},
        )

    def feeds(*wanted):
        yield systole.LocalFeed({"flowers": shards}, spec(*wanted))
        yield systole.Feed(server.address, spec(*wanted))

    def state_at(feed, step):
        with feed:
            feed.skip_to(step)
            return feed.state_dict()

    for past in ((), ((2, (3, 1)),)):
        here, there = (state_at(feed, 5) for feed in feeds(3, *past))
        assert here == there
        for feed in feeds(3, *past, (5, (0, 1))):
            with feed:
                feed.load_state_dict(here)
                assert next(feed).step == 5
        for feed in feeds(2, *past, (5, (0, 1))):  # `select` leaves out label 2 instead of 3.
            with feed, pytest.raises(systole.FailedPrecondition, match="select"):
                feed.load_state_dict(here)


def test_several_datasets_need_their_names(shards):
    members = [systole.Member("flowers", weight=1), systole.Member("leaves", weight=1)]
    outputs = {"id": systole.Output(feature="record_id", dtype="int64")}
    spec = systole.FeedSpec(mixture=members, global_batch=16, num_cores=2, outputs=outputs)
    with pytest.raises(systole.NotFound, match="name the shards of each"):
        systole.LocalFeed(shards, spec)
    with pytest.raises(systole.NotFound, match="leaves"):
        systole.LocalFeed({"flowers": shards}, spec)


@pytest.mark.parametrize(("split", "sizes"), [("balanced", [6, 5, 5]), ("fill", [6, 6, 4])])
def test_split_decides_how_cores_share_a_batch_they_do_not_divide(split, sizes, server, shards):
    spec = systole.FeedSpec(
        dataset="flowers",
        epochs=1,
        global_batch=16,
        num_cores=3,
        split=split,
        outputs={"id": systole.Output(feature="record_id", dtype="int64")},
    )
    ids = []
    for feed in (systole.LocalFeed(shards, spec, threads=1), systole.Feed(server.address, spec)):
        with feed:
            batches = list(feed)
            assert feed.stats()["padded_examples"] == 2 * len(batches)
            assert feed.stats()["masked_examples"] == 0
        assert [int(core["valid"].sum()) for core in batches[0].per_core()] == sizes
        ids.append([batch["id"][batch["valid"] == 1].tolist() for batch in batches])
    assert ids[0] == ids[1] == [list(range(i, i + 16)) for i in range(0, RECORDS, 16)]
    with pytest.raises(systole.InvalidSpec, match="split: BALANCED"):
        systole.LocalFeed(shards, systole.FeedSpec(**{**spec._fields, "split": "equal"}))
