"""systole.from_arrays: feeds of arrays have the batches and states of feeds of the same rows in
shards."""

from __future__ import annotations

import copy
import gc
import itertools
import os
import pickle
import subprocess
import sys
import textwrap
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
import systole
from conftest import LONGEST_WAIT, python

ROWS = 50
RNG = np.random.default_rng(5)
ARRAYS = {
    "image": RNG.integers(0, 256, (ROWS, 8, 6, 3), dtype=np.uint8),
    "label": RNG.integers(0, 5, ROWS, dtype=np.uint8),
    "path": RNG.normal(size=(ROWS, 4, 2)).astype(np.float32),
    "weight": RNG.normal(size=ROWS).astype(np.float32),
    "tokens": RNG.integers(-(2**62), 2**62, (ROWS, 7)),
}
OUTPUTS = {
    "image": systole.Output(
        feature="image",
        transforms=[
            systole.DecodeRaw(),
            systole.RandomCrop(height=5, width=4),
            systole.RandomFlip(),
            systole.Normalize(mean=[127.5], stddev=[63.75]),
        ],
        shape=[8, 6, 3],
        dtype="bfloat16",
    ),
    "pixels": systole.Output(
        feature="image", transforms=[systole.DecodeRaw()], shape=[8, 6, 3], dtype="uint8"
    ),
    "label": systole.Output(feature="label", dtype="int32"),
    "path": systole.Output(feature="path", shape=[4, 2]),
    "weight": systole.Output(feature="weight"),
    "tokens": systole.Output(feature="tokens", shape=[7]),
    "record": systole.Output(feature="record_id"),
}
ORDERS = {
    "none": {},
    "global": {"shuffle": systole.Shuffle("global")},
    "window": {"shuffle": {"mode": "WINDOW", "window_records": 16, "block_records": 4}},
    "select": {"select": [systole.Select(skip=3), systole.Select(take=40)]},
    "where": {
        "select": [systole.Select(skip=3), systole.Where(feature="label", not_in=[3])],
        "shuffle": {"mode": "WINDOW", "window_records": 16, "block_records": 4},
    },
    # The first member has a single record. Weights change at step 0 and in the second epoch.
    "weights": {
        "dataset": "",
        "mixture": [
            systole.Member("data", [systole.Select(take=1)], weight=1),
            systole.Member("data", [systole.Where(feature="label", greater=1)], weight=2),
            systole.Member("data", [systole.Select(skip=20)], weight=1),
        ],
        "weights": [
            systole.Weights(0, [1, 3, 2]),
            systole.Weights(8, [0, 1, 0]),
            systole.Weights(11, [1, 1, 1]),
        ],
        "shuffle": systole.Shuffle("global"),
    },
}


def spec_of(**more) -> systole.FeedSpec:
    fields = {
        "dataset": "data",
        "seed": 7,
        "global_batch": 8,
        "num_cores": 2,
        "tail": "pad",
        "epochs": 2,
        "outputs": OUTPUTS,
    }
    return systole.FeedSpec(**(fields | more))


def rows_of(arrays=ARRAYS):
    count = len(next(iter(arrays.values())))
    return [{name: array[i] for name, array in arrays.items()} for i in range(count)]


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> str:
    return systole.write(tmp_path_factory.mktemp("shard") / "data", rows_of()).shards[0]


def digests(feed) -> list[tuple[int, list[str]]]:
    with feed:
        return [(batch.step, feed.digest(batch)) for batch in feed.steps()]


@pytest.mark.parametrize("order", ORDERS)
def test_batches_are_those_of_the_shard(shard, order):
    spec = spec_of(**ORDERS[order])
    want = digests(systole.LocalFeed({"data": shard}, spec))
    assert len(want) >= 2 * 5
    data = systole.from_arrays(ARRAYS)
    assert digests(systole.LocalFeed(data, spec)) == want
    assert digests(systole.LocalFeed({"data": data}, spec, threads=3)) == want
    with systole.serve({"data": data}) as one, systole.serve({"data": data}, threads=3) as other:
        assert digests(systole.Feed(one, spec)) == want
        assert digests(systole.Feed([one.address, other.address], spec)) == want
        with systole.Feed(other, spec) as far, systole.LocalFeed(data, spec) as near:
            for step in range(0, len(want), 3):
                state = near.state_at(step)
                assert far.state_at(step) == state
                near.load_state_dict(state)
                far.load_state_dict(state)
                assert near.digest(next(near)) == far.digest(next(far)) == want[step][1]


def examples(batches) -> list[tuple[int, bytes, bytes]]:
    """The record id, image and path of each example, without padding."""
    return [
        (int(batch["record"][i]), batch["image"][i].tobytes(), batch["path"][i].tobytes())
        for batch in batches
        for i in np.flatnonzero(batch["valid"])
    ]


@pytest.mark.parametrize("order", [order for order in ORDERS if order != "weights"])
def test_a_state_resumes_with_another_batch_size_and_number_of_cores(shard, order, caplog):
    def spec(global_batch, num_cores):
        more = {"global_batch": global_batch, "num_cores": num_cores, "epochs": 4}
        return spec_of(**ORDERS[order], **more)

    data = systole.from_arrays(ARRAYS)
    with systole.LocalFeed(shard, spec(8, 2)) as feed:
        want = examples(feed.steps())
    with systole.serve({"data": data}) as server:
        # The feeds, and how many steps each gives. None: all steps up to the end of the epoch.
        lives = [
            (systole.LocalFeed(data, spec(16, 4)), 2),
            (systole.Feed(server, spec(4, 1)), 1),
            (systole.Feed(server, spec(2, 2)), 2),
            (systole.LocalFeed(shard, spec(8, 8)), None),
            (systole.Feed(server, spec(32, 2)), 1),
            (systole.LocalFeed(data, spec(2, 1)), None),
            (systole.Feed(server, spec(16, 16)), None),
            (systole.LocalFeed(data, spec(8, 2)), None),
        ]
        seen, state = [], None
        for feed, steps in lives:
            with feed:
                if state is not None:
                    feed.load_state_dict(state)
                seen += examples(itertools.islice(feed, steps))
                state = feed.state_dict()
    assert seen == want
    assert not [one for one in caplog.records if "skipped" in one.getMessage()]


def test_a_feed_goes_on_when_one_of_its_servers_is_killed(shard):
    spec = spec_of(**ORDERS["weights"] | {"epochs": 40})
    want = digests(systole.LocalFeed({"data": shard}, spec))
    data = systole.from_arrays(ARRAYS)
    with systole.serve({"data": data}) as one, systole.serve({"data": data}) as other:
        with systole.Feed([one.address, other.address], spec, prefetch_bytes=1) as feed:
            got = []
            for batch in feed.steps():
                got.append((batch.step, feed.digest(batch)))
                if batch.step == 20:
                    one._process._guard.kill()  # The kernel then kills the server, too (_guard.py).
                    one._process._guard.wait()
            assert got == want


def test_values_are_the_rows(shard):
    with systole.LocalFeed(systole.from_arrays(ARRAYS), spec_of(epochs=1)) as feed:
        for batch in feed:
            valid = batch["valid"].astype(bool)
            records = batch["record"][valid]
            for output, name in (("pixels", "image"), ("path", "path"), ("tokens", "tokens")):
                np.testing.assert_array_equal(batch[output][valid], ARRAYS[name][records])
            np.testing.assert_array_equal(batch["label"][valid], ARRAYS["label"][records])
            np.testing.assert_array_equal(batch["weight"][valid], ARRAYS["weight"][records])


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_threads_and_cores_change_nothing(shard, threads):
    spec = spec_of(shuffle=systole.Shuffle("global"))
    want = digests(systole.LocalFeed(shard, spec))
    data = systole.from_arrays(ARRAYS)
    assert digests(systole.LocalFeed(data, spec, threads=threads)) == want
    for core in (0, 1):
        one = digests(systole.LocalFeed(data, spec, threads=threads, cores=(core, core + 1)))
        assert one == [(step, [cores[core]]) for step, cores in want]


@pytest.mark.parametrize("step", [0, 1, 6, 7, 13])
def test_a_state_loads_in_feeds_of_arrays_shards_and_servers(shard, step):
    spec = spec_of(shuffle=systole.Shuffle("global"))
    data = systole.from_arrays(ARRAYS)
    want = digests(systole.LocalFeed(shard, spec))

    def state_at(feed):
        with feed:
            steps = feed.steps()
            for _ in range(step):
                next(steps)
            return feed.state_dict()

    with systole.serve({"data": data}) as server:
        places = [
            lambda: systole.LocalFeed(data, spec),
            lambda: systole.LocalFeed(shard, spec),
            lambda: systole.Feed(server, spec),
        ]
        states = [state_at(open_feed()) for open_feed in places]
        for state in states:
            for open_feed in places:
                feed = open_feed()
                feed.load_state_dict(state)
                assert digests(feed) == want[step:]


@pytest.mark.parametrize("name", list(ARRAYS))
def test_a_state_of_other_values_is_refused(name):
    spec = spec_of()
    with systole.LocalFeed(systole.from_arrays(ARRAYS), spec) as feed:
        next(feed)
        state = feed.state_dict()
    other = ARRAYS[name].copy()
    other.reshape(ROWS, -1)[-1, -1] += 1
    with systole.LocalFeed(systole.from_arrays(ARRAYS | {name: other}), spec) as feed:
        with pytest.raises(systole.FailedPrecondition):
            feed.load_state_dict(state)
    copies = {one: array.copy() for one, array in reversed(ARRAYS.items())}
    with systole.LocalFeed(systole.from_arrays(copies), spec) as feed:
        feed.load_state_dict(state)


def test_arrays_and_shards_mix_in_one_feed(shard, tmp_path):
    spec = spec_of(
        dataset="",
        mixture=[systole.Member("data", weight=3), systole.Member("more", weight=1)],
        shuffle=systole.Shuffle("global"),
    )
    more = {name: array[:20] for name, array in ARRAYS.items()}
    more_shard = systole.write(tmp_path / "more", rows_of(more)).shards[0]
    want = digests(systole.LocalFeed({"data": shard, "more": more_shard}, spec))
    for datasets in (
        {"data": systole.from_arrays(ARRAYS), "more": more_shard},
        {"data": [shard], "more": systole.from_arrays(more)},
        {"data": systole.from_arrays(ARRAYS), "more": systole.from_arrays(more)},
    ):
        assert digests(systole.LocalFeed(datasets, spec)) == want


def test_arrays_and_shards_are_zipped_in_one_feed(shard, tmp_path):
    outputs = dict(OUTPUTS)
    for name, output in OUTPUTS.items():
        if output.feature != "record_id":
            outputs[f"more/{name}"] = copy.deepcopy(output)
            outputs[f"more/{name}"].feature = f"more/{output.feature}"
    spec = spec_of(
        dataset="",
        zip=[systole.Member("data"), systole.Member("more", prefix="more/")],
        shuffle=systole.Shuffle("global"),
        outputs=outputs,
    )
    more = {name: array[::-1] for name, array in ARRAYS.items()}
    more_shard = systole.write(tmp_path / "more", rows_of(more)).shards[0]
    shards = {"data": shard, "more": more_shard}
    want = digests(systole.LocalFeed(shards, spec))
    data, others = systole.from_arrays(ARRAYS), systole.from_arrays(more)
    for datasets in (
        {"data": data, "more": more_shard},
        {"data": [shard], "more": others},
        {"data": data, "more": others},
    ):
        assert digests(systole.LocalFeed(datasets, spec)) == want
    with systole.serve({"data": data, "more": more_shard}) as server:
        assert digests(systole.Feed(server, spec)) == want
    with systole.LocalFeed({"data": data, "more": others}, spec) as feed:
        batch = next(feed)
    np.testing.assert_array_equal(batch["more/label"], more["label"][batch["record"]])
    np.testing.assert_array_equal(batch["more/pixels"], more["image"][batch["record"]])


def test_a_zip_that_does_not_fit_says_why(shard):
    def refusal(members, error=systole.InvalidSpec, **data):
        spec = spec_of(dataset="", zip=members, outputs={"label": OUTPUTS["label"]})
        with pytest.raises(error) as refused:
            systole.LocalFeed(data, spec)
        return str(refused.value)

    data = systole.from_arrays(ARRAYS)
    fewer = systole.from_arrays({name: array[1:] for name, array in ARRAYS.items()})
    a, b = systole.Member("a"), systole.Member("b", prefix="b/")
    assert f"zip[1] ('b') has {ROWS - 1} records" in refusal([a, b], a=data, b=fewer)
    assert "both have a feature 'image'" in refusal([a, systole.Member("b")], a=data, b=shard)
    assert "zip has 1 members, want 2 to 8" in refusal([a], a=data)
    assert "'b'" in refusal([a, b], systole.NotFound, a=data)


def test_conditions_on_arrays_choose_rows_and_write_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    others = {name: array[::-1] for name, array in ARRAYS.items()}
    chosen = [systole.Where(feature="label", in_=[1, 3])]
    spec = spec_of(
        dataset="",
        concatenation=[systole.Member("data", chosen), systole.Member("others", chosen)],
        epochs=1,
        outputs={"label": OUTPUTS["label"]},
    )
    data = {"data": systole.from_arrays(ARRAYS), "others": systole.from_arrays(others)}
    with systole.LocalFeed(data, spec) as feed:
        labels = [label for batch in feed for label in batch["label"][batch["valid"] == 1]]
    kept = ARRAYS["label"][np.isin(ARRAYS["label"], [1, 3])].tolist()
    assert labels == kept + kept[::-1]
    assert os.listdir(tmp_path) == []


def test_views_with_any_row_stride_are_accepted():
    spec = spec_of(shuffle=systole.Shuffle("global"))
    turned = {name: array[::-2] for name, array in ARRAYS.items()}
    copied = {name: array.copy() for name, array in turned.items()}
    assert digests(systole.LocalFeed(systole.from_arrays(turned), spec)) == digests(
        systole.LocalFeed(systole.from_arrays(copied), spec)
    )
    same = {name: np.broadcast_to(array[0], array.shape) for name, array in ARRAYS.items()}
    with systole.LocalFeed(systole.from_arrays(same), spec) as feed:
        np.testing.assert_array_equal(next(feed)["tokens"][5], ARRAYS["tokens"][0])


def test_memory_mapped_arrays_are_accepted(tmp_path):
    np.save(tmp_path / "image.npy", ARRAYS["image"])
    mapped = ARRAYS | {"image": np.load(tmp_path / "image.npy", mmap_mode="r")}
    spec = spec_of()
    assert digests(systole.LocalFeed(systole.from_arrays(mapped), spec)) == digests(
        systole.LocalFeed(systole.from_arrays(ARRAYS), spec)
    )


class Watched(np.ndarray):
    """An array that a weak reference can watch."""


def test_a_feed_keeps_its_arrays_alive_and_frees_them_when_it_is_gone():
    watched = ARRAYS["tokens"].copy().view(Watched)
    gone = weakref.ref(watched)
    feed = systole.LocalFeed(systole.from_arrays(ARRAYS | {"tokens": watched}), spec_of())
    del watched
    gc.collect()
    assert gone() is not None
    batch = next(feed)
    feed.close()
    del feed
    assert batch["tokens"].shape == (8, 7)
    del batch
    # A thread that made a batch ahead may still hold the arrays for a moment.
    for _ in range(1000):
        gc.collect()
        if gone() is None:
            break
        time.sleep(0.01)
    assert gone() is None
    # While from_arrays() uses an array, NumPy refuses to resize it.
    held = ARRAYS["tokens"].copy()
    data = systole.from_arrays({"tokens": held})
    with pytest.raises(ValueError, match="resize"):
        held.resize((1, 7))
    del data


def test_from_arrays_frees_its_arrays_when_the_result_is_dropped():
    gone = []
    for _ in range(100):
        watched = np.arange(10).view(Watched)
        gone.append(weakref.ref(watched))
        systole.from_arrays({"x": watched})
        del watched
    gc.collect()
    # A pending call of Python frees the arrays. Python makes pending calls between turns of a loop.
    for _ in range(100):
        pass
    assert [one for one in gone if one() is not None] == []


def test_many_feeds_that_end_at_once_leave_no_array_behind():
    spec = spec_of(outputs={"x": systole.Output(feature="x", dtype="int64")})
    gone, feeds = [], []
    # If 100 feeds end at once, Python refuses some of the pending calls that free the arrays.
    for _ in range(100):
        watched = np.arange(10).view(Watched)
        gone.append(weakref.ref(watched))
        feeds.append(systole.LocalFeed(systole.from_arrays({"x": watched}), spec))
        next(feeds[-1])
        del watched
    gc.collect()
    assert all(one() is not None for one in gone)
    for feed in feeds:
        feed.close()
    del feed
    feeds.clear()
    # A thread that made a batch ahead may still hold the arrays for a moment.
    deadline = time.monotonic() + LONGEST_WAIT
    while any(one() is not None for one in gone) and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    assert [one for one in gone if one() is not None] == []


WRONG = [
    (np.zeros((3, 2)), TypeError, r"'x' has the dtype float64; .*: pass x.astype\(\"float32\"\)"),
    (np.zeros(3, np.int32), TypeError, r"int32; .*: pass x.astype\(\"int64\"\)"),
    (np.zeros(3, bool), TypeError, r"bool; .*: pass x.astype\(\"int64\"\)"),
    (np.zeros(3, np.float16), TypeError, r"float16; .*: pass x.astype\(\"float32\"\)"),
    (np.zeros(3, complex), TypeError, r"complex128; want uint8, float32 or int64$"),
    (np.array(["a", "b", "c"]), TypeError, r"<U1; want uint8"),
    (np.zeros(3, ">i8"), ValueError, r"in the other order: pass x.astype\(\"int64\"\)"),
    (np.zeros((3, 2, 2), np.int64).transpose(0, 2, 1)[:, :, ::-1], ValueError, "in one piece"),
    (np.zeros((3, 4), np.int64)[:, ::2], ValueError, r"np.ascontiguousarray\(x\)"),
    (np.zeros(4, np.int64), ValueError, r"'x' has 4 rows and 'y' has 3"),
    (np.array(3), ValueError, r"'x' has no dimension"),
    ([1, 2, 3], TypeError, r"'x' is a list; want a NumPy array"),
]


@pytest.mark.parametrize("array, kind, message", WRONG)
def test_unsupported_arrays_are_refused_with_the_reason_or_remedy(array, kind, message):
    with pytest.raises(systole.InvalidSpec, match=message) as caught:
        systole.from_arrays({"y": np.zeros(3, np.int64), "x": array})
    assert isinstance(caught.value, kind)


def test_invalid_dicts_of_arrays_are_refused_with_the_reason():
    for wrong, message in (
        ({}, "arrays is empty"),
        (np.zeros(3), "arrays is a ndarray; want a dict"),
        ({1: np.zeros(3, np.int64)}, "has the name 1; want a str"),
        ({"": np.zeros(3, np.int64)}, "has the name ''"),
        ({"\ud800": np.zeros(3, np.int64)}, "surrogates"),
        ({"x": np.zeros((0, 3), np.int64)}, "'x' has no rows"),
    ):
        with pytest.raises(systole.InvalidSpec, match=message):
            systole.from_arrays(wrong)


def test_outputs_that_do_not_fit_the_arrays_are_refused_with_the_remedy():
    data = systole.from_arrays(ARRAYS)
    for name, output, message in (
        ("path", systole.Output(feature="path"), r"shape=\[4, 2\]"),
        ("tokens", systole.Output(feature="tokens"), r"shape=\[7\]"),
        (
            "pixels",
            systole.Output(feature="image", transforms=[systole.DecodeRaw()]),
            r"shape=\[8, 6, 3\]",
        ),
        ("image", systole.Output(feature="image", shape=[8, 6, 3]), "decode_raw"),
        ("none", systole.Output(feature="imag"), "did you mean 'image'"),
        ("whole", systole.Output(feature="record", shape=[8]), "rows of arrays have none"),
    ):
        with pytest.raises(systole.InvalidSpec, match=message) as caught:
            systole.LocalFeed(data, spec_of(outputs={name: output}))
        assert name in str(caught.value)


def test_arrays_with_an_unexpected_number_of_rows_or_bytes_are_refused(shard):
    data = systole.from_arrays(ARRAYS)
    size = os.path.getsize(shard)  # The arrays count as many bytes as a shard of the same rows.
    with systole.LocalFeed(data, spec_of(), expect_records=ROWS, expect_bytes=size):
        pass
    for wrong, message in (
        ({"expect_records": ROWS + 1}, "have 50 records, expect_records says 51"),
        ({"expect_records": ROWS - 1}, "have 50 records, expect_records says 49"),
        ({"expect_bytes": size + 1}, f"have {size} bytes, expect_bytes says {size + 1}"),
        ({"expect_bytes": size - 1}, f"have {size} bytes, expect_bytes says {size - 1}"),
    ):
        with pytest.raises(systole.FailedPrecondition, match=message):
            systole.LocalFeed(data, spec_of(), **wrong)


def test_arrays_are_pickled_and_shown():
    data = systole.from_arrays(ARRAYS)
    assert len(data) == ROWS
    assert repr(data).startswith(
        "<systole.Arrays of 50 examples: image uint8[8, 6, 3], label uint8[]"
    )
    again = pickle.loads(pickle.dumps(data))
    assert digests(systole.LocalFeed(again, spec_of())) == digests(
        systole.LocalFeed(data, spec_of())
    )
    with systole.LocalFeed(data, spec_of()) as feed:
        assert "data (50 records)" in repr(feed)


def test_a_server_removes_the_file_of_its_arrays():
    with systole.serve({"data": systole.from_arrays(ARRAYS)}) as server:
        folder = Path(server.address.removeprefix("unix:")).parent
        files = sorted(path.name for path in folder.iterdir())
        assert "arrays-0.tfrecord" in files
        assert folder.stat().st_mode & 0o077 == 0
    assert not folder.exists()


def test_a_server_that_cannot_write_its_arrays_leaves_no_file(tmp_path):
    code = """
        import os, resource, numpy as np, systole
        data = systole.from_arrays({"x": np.zeros((1000, 1000), np.int64)})
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        import signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            systole.serve({"data": data}).__enter__()
        except systole.Error as error:
            print("refused:", error)
        print(os.listdir(os.environ["TMPDIR"]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    assert done.stdout.startswith("refused:") and done.stdout.endswith("\n[]\n"), done


def test_a_server_filters_arrays_with_odd_names_and_many_features():
    odd = 'a "label"\\ of\nflowers: äöü'
    arrays = {f"wide{i}": np.zeros((9, 2), np.int64) for i in range(70)}
    arrays |= {"n" * 2000: np.arange(9), odd: np.arange(9)}
    spec = systole.FeedSpec(
        dataset="d",
        select=[systole.Where(feature=odd, less=4), systole.Where(feature=odd, not_in=[1])],
        global_batch=3,
        num_cores=1,
        outputs={"x": systole.Output(feature=odd, dtype="int64")},
    )
    data = systole.from_arrays(arrays)
    with systole.serve({"d": data}) as server, systole.Feed(server, spec) as feed:
        assert next(feed)["x"].tolist() == [0, 2, 3]


def test_servers_other_than_systole_serve_refuse_arrays():
    from systole._server_options import globs_by_name

    with pytest.raises(systole.InvalidSpec, match="only systole.serve and systole.LocalFeed"):
        globs_by_name({"data": systole.from_arrays(ARRAYS)})


def test_the_process_may_end_while_a_feed_reads():
    code = """
        import numpy as np, systole
        data = systole.from_arrays({"x": np.zeros((1000, 1000), np.float32)})
        spec = systole.FeedSpec(dataset="d", global_batch=8, epochs=0, outputs={
            "x": systole.Output(feature="x", shape=[1000])})
        feed = systole.LocalFeed(data, spec)
        next(feed)
    """
    done = python(code)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_child_of_fork_feeds_from_its_parents_arrays():
    code = """
        import os, numpy as np, systole
        data = systole.from_arrays({"x": np.arange(1000)})
        spec = systole.FeedSpec(dataset="d", global_batch=8, shuffle=systole.Shuffle("global"),
                                epochs=1, outputs={"x": systole.Output(feature="x")})

        def values():
            with systole.LocalFeed(data, spec) as feed:
                return [batch["x"].tolist() for batch in feed]

        want = values()
        if (child := os.fork()) == 0:
            os._exit(0 if values() == want else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    done = python(code)
    assert done.stdout == "0\n", done.stderr
