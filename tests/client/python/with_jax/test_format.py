"""The Python sources are formatted, and ruff finds nothing in them (client/python/ruff.toml)."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conftest import ROOT


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]])
def test_python_sources_pass_ruff(command):
    done = subprocess.run(
        [
            *(sys.executable, "-m", "ruff", *command, "--no-cache"),
            *("--config", ROOT / "client/python/ruff.toml"),
            *(ROOT / "client/python", ROOT / "tests/client/python"),
            *(ROOT / "tests/deploy", ROOT / "tests/tidy.py", ROOT / "deploy/kubernetes"),
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
