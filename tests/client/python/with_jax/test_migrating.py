"""Our side of client/python/MIGRATING.md does what the page says. `tests/run.sh frameworks` runs
the other libraries' blocks, too, and compares their results with ours."""

from __future__ import annotations

import itertools

import migrating_page
import numpy as np
import pytest
from conftest import ROOT
from migrating_page import ICONS, JOBS, PAGE, THEIRS

OURS = [job for job, blocks in JOBS.items() if any(kind == "" for kind, _ in blocks)]


@pytest.fixture(scope="module", autouse=True)
def place(tmp_path_factory):
    with migrating_page.place(tmp_path_factory.mktemp("migrating")):
        yield


@pytest.fixture(scope="module")
def labels() -> np.ndarray:
    """The labels of the packed flowers, in the order of their records."""
    return epoch("4. Interleave", {"select": []})["label"]


def epoch(job: str, changed: dict[str, object] | None = None) -> dict[str, np.ndarray]:
    """The examples of an epoch of the job's feed, without padding."""
    names = migrating_page.run(job, "")
    feed = names["feed"]
    if changed is not None:
        for name, value in changed.items():
            setattr(names["spec"], name, value)
        feed.close()
        feed = names["systole"].LocalFeed("data/flowers-train-*.tfrecord", names["spec"])
    batches = list(feed)
    feed.close()
    return {
        name: np.concatenate([np.asarray(batch[name]) for batch in batches]) for name in batches[0]
    }


def test_the_page_has_fifteen_jobs_and_covers_every_library():
    assert [int(job.split(".")[0]) for job in JOBS] == list(range(1, 16))
    kinds = {kind for blocks in JOBS.values() for kind, _ in blocks}
    assert kinds == {"", *THEIRS}
    assert f"({PAGE.name})" in (ROOT / "client/python/README.md").read_text()


@pytest.mark.parametrize("job", OURS)
def test_every_feed_gives_an_epoch_in_batches_of_60(job):
    valid = epoch(job)["valid"]
    assert len(valid) >= 120 and len(valid) % 60 == 0 and valid.all()


def test_raw_values_are_those_that_were_packed():
    found = np.sort(epoch("2. Raw values: `decode_raw`")["image"].reshape(120, -1), axis=0)
    assert np.allclose(found, np.sort(ICONS.reshape(120, -1) / 255, axis=0), atol=1e-6)


def test_arrays_come_back_as_they_were():
    found = epoch("7. Arrays")
    assert (found["image"] == ICONS).all() and found["label"].tolist() == list(range(120))


def test_interleaved_shards_take_turns(labels):
    shards = labels.reshape(4, 30, 4)  # 4 shards of 30 turns of 4 records.
    turns = [shards[pair : pair + 2].swapaxes(0, 1).reshape(-1) for pair in (0, 2)]
    assert (epoch("4. Interleave")["label"] == np.concatenate(turns)).all()


def test_a_filter_leaves_records_out(labels):
    found, wanted = epoch("6. Filter")["label"], labels[labels != 3]
    assert 0 <= len(wanted) - len(found) < 60 and (found == wanted[: len(found)]).all()


def test_a_zip_has_record_i_of_each_member():
    found = epoch("11. Zip")
    assert found["rank/label"].tolist() == list(range(120))
    assert (found["label"] == epoch("2. Raw values: `decode_raw`")["label"]).all()


def test_skip_take_and_shard_count_records(labels):
    assert (epoch("12. Take, skip, shard")["label"] == labels[40:280][1::2]).all()


def test_an_image_and_its_mask_are_cut_alike():
    found = epoch("13. An image and its mask, drawn alike")
    assert found["image"].shape == (120, 24, 24, 3)
    assert (found["image"][..., :1] == found["mask"]).all()
    # Not every image is cut at its top left corner.
    assert not (found["image"] == ICONS[:, :24, :24]).all(axis=(1, 2, 3)).all()


def test_a_tar_gives_its_samples_in_order():
    assert epoch("15. Tar archives")["label"].tolist() == [i % 7 for i in range(120)]


def test_members_of_a_mixture_have_their_share_of_every_batch(labels):
    icons = epoch("2. Raw values: `decode_raw`")["label"]
    names = migrating_page.run("14. Weights, and weights that change", "")
    with names["feed"] as feed:
        first = next(feed)["label"]
    assert sorted(first) == sorted([*labels[:45], *icons[:15]])
    names["spec"].outputs = {"id": names["systole"].Output("record_id")}
    with names["systole"].LocalFeed(names["shards"], names["spec"]) as feed:
        flowers = [int((batch["id"] < len(labels)).sum()) for batch in itertools.islice(feed, 7)]
    assert flowers == [45] * 5 + [15] * 2
