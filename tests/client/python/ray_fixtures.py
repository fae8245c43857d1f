"""The fixtures of with_ray: a plugin of pytest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ray_cluster import Nodes


@pytest.fixture(scope="session")
def whole_cluster() -> Iterator[Nodes]:
    nodes = Nodes()
    yield nodes
    nodes.end()


@pytest.fixture
def nodes(whole_cluster: Nodes) -> Iterator[Nodes]:
    """The cluster. What a test adds is gone after the test."""
    yield whole_cluster
    whole_cluster.clear()


@pytest.fixture
def mark(tmp_path: Path) -> str:
    """A folder for indexes. The command lines of the test's servers name it."""
    folder = tmp_path / "indexes"
    folder.mkdir()
    return str(folder)
