"""LocalFeed reads a folder of images as it reads the shards that `systole pack` makes from it."""

from __future__ import annotations

import numpy as np
import pytest
import systole
from conftest import systole as program
from systole import FeedSpec, Output

IMAGES = 24


@pytest.fixture(scope="module")
def flowers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    program("make-flowers", folder / "flowers", "--images", IMAGES, "--size", 32)
    program("pack", folder / "flowers", folder / "packed/flowers", "--shards", 1)
    return folder


def spec(**more) -> FeedSpec:
    pixels = systole.Image("image", resize=(16, 16), dtype="uint8")
    return FeedSpec(
        dataset="flowers",
        global_batch=1,
        epochs=1,
        outputs={
            "image": pixels,
            "label": Output("label", dtype="INT64"),
            "size": Output("size", dtype="INT32", shape=[3]),
        },
        **more,
    )


def examples(source, feed_spec):
    """The examples as (label, size, pixels), in the feed's order."""
    with systole.LocalFeed(source, feed_spec) as feed:
        return [
            (int(batch["label"][0]), batch["size"][0].tolist(), batch["image"][0].tobytes())
            for batch in feed.steps()
        ]


def test_a_folder_has_the_examples_of_its_packed_shards(flowers):
    glob = str(flowers / "flowers/*/*.jpg")
    of_images = examples({"flowers": glob}, spec())
    of_shards = examples(str(flowers / "packed/flowers-train-*"), spec())
    assert len(of_images) == IMAGES
    assert [label for label, _, _ in of_images] == sorted(label for label, _, _ in of_images)
    # `pack` shuffles.
    assert sorted(of_images) == sorted(of_shards)
    # The first feed has written an index. The next feed opens the folder from the index.
    assert (flowers / "flowers/images.idx").exists()
    assert examples(glob, spec()) == of_images


def test_a_folder_path_is_refused_with_the_glob_to_use(flowers):
    with pytest.raises(systole.Error, match=r"use .*/flowers/\*/\*\.jpg"):
        systole.LocalFeed(str(flowers / "flowers"), spec())


def test_a_broken_image_is_masked(tmp_path):
    program("make-flowers", tmp_path / "flowers", "--images", 10, "--size", 32)
    (tmp_path / "flowers/rose/rose_000002.jpg").write_bytes(b"no image")
    glob = str(tmp_path / "flowers/*/*.jpg")
    with pytest.raises(systole.Error, match="rose/rose_000002.jpg"):
        examples(glob, spec())
    with systole.LocalFeed(glob, spec(on_corrupt="mask")) as feed:
        valid = np.concatenate([batch["valid"] for batch in feed.steps()])
    assert valid.tolist().count(0) == 1
    assert len(valid) == 10
