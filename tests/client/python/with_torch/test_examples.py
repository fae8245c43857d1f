"""The examples for PyTorch do what their descriptions say."""

from __future__ import annotations

import runpy

from conftest import ROOT, systole
from readme_blocks import blocks, place, run

EXAMPLES = ROOT / "client" / "python" / "examples"


def test_flowers_are_learnt_and_resumed_bit_for_bit(tmp_path):
    systole("make-flowers", tmp_path / "images", "--images", 3625, "--seed", 1)
    options = ("--shards", 16, "--resize-short", 80, "--validation", 0.2)
    systole("pack", tmp_path / "images", tmp_path / "flowers", *options)
    found = runpy.run_path(str(EXAMPLES / "flowers_torch.py"))["main"](str(tmp_path))
    assert found["accuracy"] >= 0.9
    assert found["images"] == 725
    assert found["bit_equal"] and found["compared"] == 10
    assert 0 < found["resumed_at"] < 8 * 45


def test_the_readme_is_true_for_torch(tmp_path):
    with place(tmp_path) as server:
        run(blocks("torch"), server)
