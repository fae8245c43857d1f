"""The examples do what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from conftest import ROOT, systole


def test_flowers_are_learnt_with_jax(tmp_path):
    systole("make-flowers", tmp_path / "images", "--images", 1200)
    systole(
        *("pack", tmp_path / "images", tmp_path / "flowers"),
        *("--shards", 4, "--validation", 0.2, "--resize-short", 64),
    )
    # One device: XLA ends a program whose host devices wait for each other on a busy machine.
    done = subprocess.run(
        [sys.executable, ROOT / "client/python/examples/flowers_jax.py", tmp_path],
        capture_output=True,
        text=True,
        env={**os.environ, "XLA_FLAGS": ""},
    )
    assert done.returncode == 0, done.stderr
    found = re.fullmatch(r"validation accuracy (0\.\d+) over 240 pictures\n", done.stdout)
    assert found is not None, done.stdout
    assert float(found.group(1)) >= 0.90
