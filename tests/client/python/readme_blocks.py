"""The Python blocks of client/python/README.md, each run by itself, as a reader would try it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conftest import ROOT, Server, systole

README = ROOT / "client/python/README.md"
KINDS = {
    "",
    "grain",
    "jax",
    "keras",
    "lightning",
    "orbax",
    "prometheus",
    "ray",
    "torch",
    "tensorflow",
    "transformers",
}
# The names that the page introduces for all later blocks. A block must make any other name itself,
# imports included.
CARRIED = ("systole", "feed", "spec")


def blocks(*kinds: str) -> list[str]:
    """The blocks marked ```python, or ```python KIND for one of `kinds`."""
    found = re.findall(r"^```python *(\w*)\n(.*?)^```$", README.read_text(), re.M | re.S)
    assert {kind for kind, _ in found} == KINDS
    return [code for kind, code in found if kind == "" or kind in kinds]


def shell_lines() -> list[list[str]]:
    """The `systole` commands that make the data set."""
    text = README.read_text()
    return [
        line.split()[1:] for line in re.findall(r"^systole (?:make-flowers|pack) .*$", text, re.M)
    ]


@contextmanager
def place(folder: Path) -> Iterator[Server]:
    """Enters a folder with the files that the README mentions, and yields a server of its data."""
    (folder / "data").mkdir()
    (folder / "deploy").symlink_to(ROOT / "deploy")
    before = os.getcwd()
    os.chdir(folder)
    try:
        lines = shell_lines()
        assert len(lines) == 2
        for line in lines:
            systole(*line)
        server = Server(folder, "127.0.0.1:0", str(folder / "data/flowers-train-*.tfrecord"))
        try:
            yield server
        finally:
            server.kill()
    finally:
        os.chdir(before)


def run(code: list[str], server: Server) -> None:
    """Runs the blocks. A block gets only the names in CARRIED from the blocks before it."""
    carried: dict[str, object] = {}
    for block in code:
        names = dict(carried)
        block = block.replace("127.0.0.1:8470", server.address).replace("9471", "0")
        exec(compile(block, str(README), "exec"), names)
        # The first value of each name is kept: later blocks use the name for values of their own.
        carried = {name: names[name] for name in CARRIED if name in names} | carried
