"""A feed that tests read once from a bucket and once from files. Each step must have the same
digest both times."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from conftest import LONGEST_WAIT, RECORDS

SPEC = """
dataset: "flowers" seed: 7 epochs: 1 shuffle { mode: GLOBAL }
global_batch: 16 num_cores: 2
outputs {
  name: "image" feature: "image" dtype: UINT8
  transforms { decode_jpeg {} } transforms { random_resized_crop { height: 16 width: 16 } }
}
outputs { name: "label" feature: "label" dtype: INT64 }
"""

# Prints a hash of every step. Each case runs in a process of its own, because a process reads its
# credentials once.
FEED = """
import hashlib
import sys

from systole import LocalFeed, configure

configure(block_cache=sys.argv[3] or None)
with LocalFeed(sys.argv[1], sys.argv[2]) as feed:
    for step in feed.steps():
        digest = hashlib.sha256(step["image"].tobytes() + step["label"].tobytes())
        print(digest.hexdigest())
"""


def write_spec(folder: Path) -> Path:
    spec = folder / "spec.textproto"
    spec.write_text(SPEC)
    return spec


def command(pattern: str, spec: Path, block_cache: Path | str = "") -> list[object]:
    return [sys.executable, "-c", FEED, pattern, spec, block_cache]


def run(command: list[object], **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a command with these variables, and without this machine's variables for buckets."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AWS_", "GOOGLE_", "STORAGE_"))
    }
    environment |= {"HOME": "/nonexistent", "AWS_REGION": "us-east-1"}
    return subprocess.run(
        [str(part) for part in command],
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=LONGEST_WAIT,
    )


def digests(pattern: str, spec: Path, **variables: str) -> list[str]:
    """The digests of all steps."""
    done = run(command(pattern, spec), **variables)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == RECORDS // 16
    return lines
