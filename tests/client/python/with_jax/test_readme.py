"""Every block of client/python/README.md works, and what it shows is what comes out."""

from __future__ import annotations

import re

from conftest import ROOT
from readme_blocks import README, blocks, place, run


def test_the_readme_is_true(tmp_path, capsys):
    code = blocks("jax")
    assert len(code) >= 12
    with place(tmp_path) as server:
        run(code, server)
    assert (tmp_path / "page.html").exists()
    printed = " ".join(capsys.readouterr().out.split())
    shown = re.search(r"^```\n(<systole.*?)```$", README.read_text(), re.M | re.S)
    assert shown is not None
    # All but the share of the time, which is the machine's.
    first, second = re.split(r"\d+%", " ".join(shown.group(1).split()))
    assert first in printed and second in printed


def test_the_projects_readme_is_true(tmp_path, shards, server, monkeypatch):
    text = (ROOT / "README.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    code = code.replace("/tmp/packed/flowers-train-*.tfrecord", shards)
    code = code.replace("127.0.0.1:8470,127.0.0.1:8471", f"{server.address},{server.address}")
    monkeypatch.chdir(ROOT)
    taken = []
    names = {"train_step": lambda image, label: taken.append((image, label))}
    exec(code, names)
    assert len(taken) == 1  # 96 examples, 64 a step.
    image, label = taken[0]
    assert f"{image.dtype}{list(image.shape)} and {label.dtype}{list(label.shape)}" in text
    assert names["state"]["step"] == 1
    names["feed"].close()
