"""The examples of moving from tf.data, Grain and DataLoader do the same job before and after. The
others do what they say."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from conftest import ROOT, systole
from readme_blocks import blocks, place, run

EXAMPLES = ROOT / "client" / "python" / "examples"


@pytest.fixture(scope="module")
def flowers(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("flowers")
    systole("make-flowers", folder / "images", "--images", 640, "--seed", 1)
    systole("pack", folder / "images", folder / "flowers", "--shards", 4, "--resize-short", 80)
    return folder


@pytest.mark.parametrize("name", ["from_tf_data", "from_grain", "from_dataloader"])
def test_before_and_after_do_the_same_job(name, flowers):
    found = runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name=name)["main"](str(flowers))
    before, after = found["before"], found["after"]
    assert before["steps"] == after["steps"] == 10
    assert before["shape"] == after["shape"]
    # The crops differ, but the pictures are the same.
    assert abs(before["mean"] - after["mean"]) < 0.05
    assert before.get("resumed", True) and after.get("resumed", True)


def test_the_readme_is_true(tmp_path):
    with place(tmp_path) as server:
        run(
            blocks("torch", "lightning", "transformers", "tensorflow", "keras", "grain", "orbax"),
            server,
        )
