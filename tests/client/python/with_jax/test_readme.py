"""Every block of client/python/README.md works, and prints what the page shows."""

from __future__ import annotations

import re

from conftest import ROOT
from readme_blocks import README, blocks, place, run


def test_the_client_readmes_code_runs_and_prints_what_it_shows(tmp_path, capsys):
    code = blocks("jax", "prometheus")
    assert len(code) >= 12
    with place(tmp_path) as server:
        run(code, server)
    assert (tmp_path / "page.html").exists()
    printed = " ".join(capsys.readouterr().out.split())
    shown = re.search(r"^```\n(<systole.*?)```$", README.read_text(), re.M | re.S)
    assert shown is not None
    # The shares of the time, and what the loop waits for, depend on the machine.
    first, second, _ = re.split(r"\d+%", " ".join(shown.group(1).split()))
    assert first in printed and second.rstrip(", ") in printed


def test_the_project_readmes_example_prints_a_batch(tmp_path, shards, monkeypatch, capsys):
    text = (ROOT / "README.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    monkeypatch.chdir(ROOT)
    names = {}
    exec(code.replace("/tmp/packed/flowers-train-*.tfrecord", shards), names)
    # 96 examples, 64 a step.
    assert capsys.readouterr().out.startswith("0 (64, 64, 64, 3) bfloat16 [")
    assert names["state"]["step"] == 1
    names["feed"].close()
