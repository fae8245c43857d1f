"""Prints the digests of the first step of a LocalFeed, as `systole feed --digest --steps 1` does.

usage: local_digests.py SHARDS SPEC    (every dataset of the spec has these shards)
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import systole


def main(shards: str, spec: str) -> None:
    names = re.findall(r'dataset: "([^"]+)"', Path(spec).read_text())
    feed = systole.LocalFeed(dict.fromkeys(names, shards), spec)
    step = next(feed.steps())
    for core, digest in enumerate(feed.digest(step)):
        print(step.step, core, digest)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
