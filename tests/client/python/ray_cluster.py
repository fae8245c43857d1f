"""A Ray cluster of several nodes on this machine, and its server processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

from conftest import LONGEST_WAIT

# These variables are set before anything imports Ray. Ray's workers import the tests' modules.
os.environ["PYTHONPATH"] = str(Path(__file__).parent)
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
# With Ray's own niceness, its workers would wait for everything else that runs on this machine.
os.environ["RAY_worker_niceness"] = "0"
# How many health checks in a row, 3 s apart, a node may miss before Ray takes it for dead. On a
# busy machine a living node misses some.
os.environ["RAY_health_check_failure_threshold"] = "10"

import ray
from ray.cluster_utils import Cluster

_STORE_BYTES = 80 << 20


def wait_until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + LONGEST_WAIT
    while not holds():
        assert time.monotonic() < deadline, f"after {LONGEST_WAIT:g} s this still does not hold"
        time.sleep(0.05)


class Nodes:
    """The cluster: a head with the driver and one CPU, two nodes with the resource `feeder`, and
    the nodes that a test adds.
    """

    def __init__(self) -> None:
        options = {"num_cpus": 1, "object_store_memory": _STORE_BYTES, "include_dashboard": False}
        self._cluster = Cluster(initialize_head=True, head_node_args=options)
        self.address = self._cluster.address
        ray.init(address=self.address, log_to_driver=False, logging_level="warning")
        self._added = []
        # The nodes that all tests use.
        self.feeders = [self.add(feeder=1), self.add(feeder=1)]
        self._kept = list(self._added)

    def add(self, cpus: int = 4, **resources: float) -> str:
        """Adds a node; returns its id."""
        node = self._cluster.add_node(
            num_cpus=cpus, object_store_memory=_STORE_BYTES, resources=resources
        )
        self._added.append(node)
        wait_until(lambda: node.node_id in alive())
        return str(node.node_id)

    def kill(self, node_id: str) -> None:
        (node,) = [one for one in self._added if one.node_id == node_id]
        self._added.remove(node)
        self._cluster.remove_node(node, allow_graceful=False)

    def clear(self) -> None:
        for node in self._added[len(self._kept) :]:
            self.kill(node.node_id)
        wait_until(lambda: len(alive()) == 1 + len(self._kept))

    def end(self) -> None:
        ray.shutdown()
        self._cluster.shutdown()


def alive() -> list[str]:
    return [one["NodeID"] for one in ray.nodes() if one["Alive"]]


def server_processes(mark: str) -> dict[int, int]:
    """The ids of server processes whose command line has `mark`, and of their parents."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().decode().split("\0")
                if words[0].endswith("/systole-server") and mark in words:
                    found[int(entry.name)] = parent_of(int(entry.name))
            except (OSError, IndexError):
                pass  # It has ended.
    return found


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)


def start_driver(code: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Runs the code as a job of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
