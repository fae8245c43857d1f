"""The console commands: the programs that came with the package."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def path_of(program: str) -> str:
    """The file of `systole` or `systole-server`."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", program)


def _run(program: str) -> NoReturn:
    os.execv(path_of(program), [program, *sys.argv[1:]])


def run_systole() -> NoReturn:
    _run("systole")


def run_systole_server() -> NoReturn:
    _run("systole-server")
