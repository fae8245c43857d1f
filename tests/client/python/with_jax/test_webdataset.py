"""LocalFeed reads WebDataset's archives as the command line reads them through a server."""

from __future__ import annotations

import shutil
import tarfile

import pytest
import systole
from conftest import ROOT
from systole import FeedSpec, Output


@pytest.mark.parametrize("name", ["ustar.tar", "gnu.tar", "pax.tar", "compressed.tar.gz"])
def test_samples_of_an_archive_come_in_their_order(tmp_path, name):
    archive = shutil.copy(ROOT / "tests/golden/webdataset" / name, tmp_path)
    with tarfile.open(archive) as files:
        labels = [
            int(files.extractfile(file).read()) for file in files if file.name.endswith(".cls")
        ]
    assert labels
    spec = FeedSpec(
        dataset="archive",
        global_batch=1,
        epochs=1,
        outputs={"label": Output("cls", dtype="INT32")},
        on_corrupt="mask",
    )
    with systole.LocalFeed(archive, spec) as feed:
        got = [int(b["label"][0]) for b in feed.steps() if b["valid"][0]]
    assert got == labels
