"""mypy --strict over the modules for frameworks. Some frameworks have no types themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import systole

MODULES = ["grain", "keras", "lightning", "orbax", "tensorflow", "torch", "transformers"]


def test_the_modules_are_typed_strictly(tmp_path):
    command = [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports"]
    command += ["--follow-imports", "silent", "--cache-dir", str(tmp_path)]
    parts = (Path(systole.__file__).parent / "torch").glob("_[a-z]*.py")
    for module in [*MODULES, *(f"torch.{part.stem}" for part in parts)]:
        command += ["-m", f"systole.{module}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
