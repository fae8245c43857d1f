"""The blocks of client/python/MIGRATING.md, job by job, and the files that they read."""

from __future__ import annotations

import io
import os
import re
import struct
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from conftest import ROOT, systole

PAGE = ROOT / "client/python/MIGRATING.md"
THEIRS = ("tf", "torch", "grain", "dali", "webdataset")
ICONS = np.random.default_rng(1).integers(0, 256, (120, 32, 32, 3), np.uint8)
Block = tuple[str, str]  # The library ("" is ours), and the code.


def _parts() -> list[tuple[str, list[Block]]]:
    text = PAGE.read_text()
    headings = ["", *re.findall(r"^## (.*)$", text, re.M)]
    parts = re.split(r"^## .*$", text, flags=re.M)
    return [
        (heading, re.findall(r"^```python *([\w-]*)\n(.*?)^```$", part, re.M | re.S))
        for heading, part in zip(headings, parts, strict=True)
    ]


_PARTS = _parts()
_IMPORTS = dict(_PARTS[0][1])
JOBS = dict(_PARTS[1:])


def run(job: str, library: str) -> dict[str, Any]:
    """Runs the job's block for `library` ("" is ours); returns the names that the block defines."""
    (code,) = [code for kind, code in JOBS[job] if kind == library]
    names: dict[str, Any] = {"images": ICONS, "labels": np.arange(len(ICONS))}
    imports = _IMPORTS["imports"] + (_IMPORTS[f"{library}-imports"] if library else "")
    exec(compile(imports + code, f"{PAGE.name}, {job}", "exec"), names)
    return names


def _png(pixels: np.ndarray[Any, Any]) -> bytes:
    """A PNG file of uint8 pixels, [height, width, 1 or 3]."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)

    height, width, channels = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def _write_tar(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


@contextmanager
def place(folder: Path) -> Iterator[None]:
    """Enters a folder with the files that the page mentions:

    data/images/CLASS/*.jpg       600 flowers of 5 classes
    data/flowers-train-*          480 of these flowers, in 4 shards
    data/flowers-0.tar, -1.tar    60 of these flowers each, as `jpg` and `cls`
    data/icons/*                  ICONS, of 2 classes, as raw values
    data/scenes-0.tar, -1.tar     60 of ICONS each, as `png`, and `mask.png` with the red channel
    """
    before = os.getcwd()
    os.chdir(folder)
    try:
        systole("make-flowers", "data/images", "--images", 600)
        systole("pack", "data/images", "data/flowers", "--shards", 4, "--validation", 0.2)
        for i, icon in enumerate(ICONS):
            file = Path("icons", "even" if i % 2 == 0 else "odd", f"{i:03}.png")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(_png(icon))
        systole("pack", "icons", "data/icons/icons", "--shards", 3, "--raw")
        pictures = sorted(Path("data/images").glob("*/*.jpg"))
        for shard in range(2):
            numbers = range(60 * shard, 60 * shard + 60)
            flowers, scenes = {}, {}
            for i in numbers:
                flowers[f"{i:03}.jpg"] = pictures[4 * i].read_bytes()
                flowers[f"{i:03}.cls"] = str(i % 7).encode()
                scenes[f"{i:03}.png"] = _png(ICONS[i])
                scenes[f"{i:03}.mask.png"] = _png(ICONS[i][..., :1])
            _write_tar(Path(f"data/flowers-{shard}.tar"), flowers)
            _write_tar(Path(f"data/scenes-{shard}.tar"), scenes)
        yield
    finally:
        os.chdir(before)
