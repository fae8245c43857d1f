"""mypy --strict over the modules for frameworks. Some frameworks have no types themselves."""

from __future__ import annotations

import subprocess
import sys

MODULES = ["grain", "keras", "lightning", "orbax", "tensorflow", "torch", "transformers"]


def test_the_modules_are_typed_strictly(tmp_path):
    command = [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports"]
    command += ["--follow-imports", "silent", "--cache-dir", str(tmp_path)]
    for module in MODULES:
        command += ["-p", f"systole.{module}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
