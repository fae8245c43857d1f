"""Compressed shards, and folders of compressed shards, give the same feed as plain files."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest
import systole

COMPRESSED = {
    "gzip": gzip.compress,
    "zlib": zlib.compress,
    "none": bytes,
}


@pytest.fixture(params=COMPRESSED)
def kind(request):
    return request.param


@pytest.fixture
def folder(kind, shards, tmp_path):
    """A folder that holds the shards, compressed, and nothing else."""
    folder = tmp_path / "shards"
    folder.mkdir()
    for path in Path(shards).parent.glob(Path(shards).name):
        (folder / path.name).write_bytes(COMPRESSED[kind](path.read_bytes()))
    return folder


def bytes_of(feed):
    with feed:
        return [{name: batch[name].tobytes() for name in batch} for batch in feed]


def test_feeds_of_compressed_shards_have_the_bytes_of_plain_ones(kind, folder, shards, write_spec):
    spec = write_spec()
    plain = bytes_of(systole.LocalFeed(shards, spec))
    assert bytes_of(systole.LocalFeed(folder, spec)) == plain
    assert bytes_of(systole.LocalFeed({"flowers": folder}, spec, compression=kind)) == plain
    with systole.serve({"flowers": folder}, compression=kind) as server:
        assert bytes_of(systole.Feed(server.address, spec)) == plain
    assert len(list(folder.glob("*.idx.restart"))) == (0 if kind == "none" else 3)


def test_an_unknown_compression_is_refused(shards, write_spec):
    with pytest.raises(systole.InvalidSpec, match="'lz4', want one of: detect, none, gzip"):
        systole.LocalFeed(shards, write_spec(), compression="lz4")


def test_a_wrong_compression_is_refused_with_the_name_of_the_shard(shards, write_spec):
    with pytest.raises(systole.DataLoss, match="flowers-train-00000.*does not begin as zstd"):
        systole.LocalFeed(shards, write_spec(), compression="zstd")
