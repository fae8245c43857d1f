"""Runs the code on both sides of client/python/MIGRATING.md: the other library's and ours. If both
sides have a fixed order and draw no random numbers, the values are equal. If the other library
draws the member of each example of a mixture, the members' shares are near ours."""

from __future__ import annotations

from collections import Counter

import migrating_page
import numpy as np
import pytest
import systole
from migrating_page import JOBS

THEIRS = [(job, kind) for job, blocks in JOBS.items() for kind, _ in blocks if kind != ""]
# In these jobs the rows must be equal on both sides, in the same order. The number is the allowed
# difference, as a fraction of the largest value.
EXACT = {
    ("2.", "tf"): 5e-7,  # We multiply by 1 / 255, and tf divides by 255.
    ("3.", "tf"): 5e-7,
    ("4.", "tf"): 0,
    ("5.", "grain"): 1e-6,  # We add the pixels for the mean in another order.
    ("11", "tf"): 0,
    ("12", "tf"): 0,
    ("15", "webdataset"): 0,
}
# In these jobs both sides must have the same examples in an epoch. Their order may differ.
SHUFFLED = {("1.", "tf"), ("8.", "torch"), ("8.", "dali")}


@pytest.fixture(scope="module", autouse=True)
def place(tmp_path_factory):
    with migrating_page.place(tmp_path_factory.mktemp("migrating")):
        yield


def epoch(batches) -> list[np.ndarray]:
    """Concatenates the batches. Returns one array for each name, in the order of the names."""
    if hasattr(batches, "build"):  # A pipeline of DALI.
        batches.build()
        steps = next(iter(batches.reader_meta().values()))["epoch_size"] // 60
        outputs = (batches.run() for _ in range(steps))
        batches = [[np.asarray(one.as_tensor()) for one in each] for each in outputs]
    columns = []
    for batch in batches:
        if isinstance(batch, dict):
            batch = [batch[name] for name in sorted(batch)]
        if not isinstance(batch, list | tuple):
            batch = [batch]
        columns.append([np.asarray(one) for one in batch])
    return [np.concatenate(column) for column in zip(*columns, strict=True)]


def ours(job) -> list[np.ndarray]:
    with migrating_page.run(job, "")["feed"] as feed:
        return epoch([{name: batch[name] for name in batch if name != "valid"} for batch in feed])


def theirs(job, library) -> list[np.ndarray]:
    return epoch(migrating_page.run(job, library)["batches"])


def labels_of(shards) -> np.ndarray:
    """The labels of these shards in data/, in the order of their records."""
    outputs = {"label": systole.Output("label")}
    spec = systole.FeedSpec(dataset="any", epochs=1, tail="pad", global_batch=60, outputs=outputs)
    with systole.LocalFeed(f"data/{shards}", spec) as feed:
        return np.concatenate([batch["label"] for batch in feed])


def rows(arrays) -> Counter[bytes]:
    return Counter(b"".join(one.tobytes() for one in row) for row in zip(*arrays, strict=True))


@pytest.mark.parametrize(("job", "library"), THEIRS)
def test_systole_and_the_migrated_library_give_equivalent_data(job, library):
    got = theirs(job, library)
    kind = (job[:2], library)
    if kind in EXACT:
        want = ours(job)
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            assert one.shape == other.shape
            assert np.abs(one.astype(float) - other).max() <= EXACT[kind] * np.abs(other).max()
    elif kind in SHUFFLED:
        pixels, labels = ours(job)
        if library == "dali":
            pixels = pixels.transpose(0, 2, 3, 1)
        assert rows([got[0], got[1].astype(np.int64).reshape(-1)]) == rows([pixels, labels])
    else:
        assert kind in OTHERWISE
        OTHERWISE[kind](job, got)


def brightened(job, got):
    assert got[0].shape == (600, 32, 32, 3) and ours(job)[0].shape == (480, 32, 32, 3)


def filtered(job, got):
    (labels,) = ours(job)  # The last batch is not full and is left out.
    assert len(labels) > 0 and 3 not in labels
    assert 0 <= len(got[0]) - len(labels) < 60
    assert got[0][: len(labels)].tolist() == labels.tolist()


def arrays(job, got):
    for one, other in zip(got, ours(job), strict=True):
        assert one.shape == other.shape and (one == other).all()


def packed(job, got):
    # Lists of 3 and 5 tokens share one row of 8, and lists of 2 and 6 tokens share the other row.
    rows_of_tokens = sorted(row.tolist() for row in got[0])
    assert rows_of_tokens == [[0, 1, 0, 1, 2, 3, 4, 5], [0, 1, 2, 0, 1, 2, 3, 4]]


def by_length(job, got):
    padded, lengths = ours(job)
    files = [row[:length].tobytes() for row, length in zip(padded, lengths, strict=True)]
    assert Counter(got[0].tolist()) == Counter(files)


def alike(job, got):
    images, masks = (one.transpose(0, 2, 3, 1) for one in got)
    found = ours(job)
    # webdataset decodes the mask to three channels, as it does the image.
    assert images.shape == found[0].shape and masks[..., :1].shape == found[1].shape
    assert (images[..., :1] == masks).all()


def weighted(job, got):
    members = labels_of("flowers-train-*.tfrecord"), labels_of("icons/*.tfrecord")

    def shares(labels, before=(0, 0)) -> list[tuple[int, int]]:
        """Returns all pairs of numbers (flowers, icons) for which `labels` may be the labels of the
        next flowers and the next icons, in any order. `before`: how many of each came before."""
        found = []
        for flowers in range(len(labels) + 1):
            turns = flowers, len(labels) - flowers
            taken = [
                np.take(member, range(begin, begin + count), mode="wrap")
                for member, begin, count in zip(members, before, turns, strict=True)
            ]
            if Counter(np.concatenate(taken).tolist()) == Counter(labels.tolist()):
                found.append(turns)
        return found

    (mine,) = ours(job)
    assert mine.shape == got[0].shape == (600,)
    assert (225, 75) in shares(mine[:300])
    assert (75, 225) in shares(mine[300:], before=(225, 75))
    # tf.data draws the member of each example. Of the first 300 draws, 225 are expected to be
    # flowers, and of the next 300 draws, 75. The standard deviation is 7.5.
    first = [one for one in shares(got[0][:300]) if abs(one[0] - 225) < 40]
    assert first
    assert any(
        abs(flowers - 75) < 40 for before in first for flowers, _ in shares(got[0][300:], before)
    )


OTHERWISE = {
    ("3.", "dali"): brightened,
    ("6.", "tf"): filtered,
    ("7.", "tf"): arrays,
    ("7.", "torch"): arrays,
    ("9.", "grain"): packed,
    ("10", "tf"): by_length,
    ("13", "webdataset"): alike,
    ("14", "tf"): weighted,
}
