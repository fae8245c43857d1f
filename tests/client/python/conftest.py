"""What the tests of the Python package share: a data set, servers, specs.

They test the package that is installed in their environment. tests/client/python/run.sh makes the
environment and installs the package.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

# These variables must be set before JAX is imported.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

# PyTorch's compiler and TensorFlow each bring a copy of LLVM. If TensorFlow's copy is loaded first,
# LLVM ends the process.
if importlib.util.find_spec("torch") and importlib.util.find_spec("tensorflow"):
    import torch._dynamo  # noqa: F401

import pytest
from systole import _base_feed, _programs

ROOT = Path(__file__).resolve().parents[3]
RECORDS = 96
# How many seconds a test waits at most for an event that must come. This is long enough on a
# machine that is ten times slower.
LONGEST_WAIT = 1200

# If a shell starts the tests in the background, they and all processes that they start ignore
# Ctrl-C. The next line ends this.
signal.signal(signal.SIGINT, signal.default_int_handler)


def systole(*arguments: object) -> str:
    """Runs the command line program; returns what it prints."""
    done = subprocess.run(
        [_programs.path_of("systole"), *map(str, arguments)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def python(
    code: str, *arguments: str, timeout: float = LONGEST_WAIT
) -> subprocess.CompletedProcess[str]:
    """Runs the code in a new process of this Python interpreter."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
    )


@pytest.fixture(scope="module", autouse=True)
def close_feeds() -> Iterator[None]:
    """Closes the feeds that a module's tests have left open. Models and trainers keep feeds alive
    in reference cycles, and an open LocalFeed sets the number of threads of later LocalFeeds."""
    yield
    _base_feed._close_feeds()


@pytest.fixture(scope="session")
def shards(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A glob pattern of shards with RECORDS small JPEGs."""
    folder = tmp_path_factory.mktemp("flowers")
    systole("make-flowers", folder / "images", "--images", RECORDS, "--size", 64)
    systole("pack", folder / "images", folder / "flowers", "--shards", 3)
    return str(folder / "flowers-train-*.tfrecord")


class Server:
    """A server process on a Unix socket or a TCP port."""

    def __init__(self, folder: Path, listen: str, shards: str, *options: str) -> None:
        port_file = folder / f"port-{os.urandom(4).hex()}"
        self.process = subprocess.Popen(
            [
                _programs.path_of("systole-server"),
                *("--listen", listen, "--port-file", str(port_file)),
                *("--dataset", f"flowers={shards}", *options),
            ],
            stderr=subprocess.DEVNULL,
        )
        while not port_file.exists():
            assert self.process.poll() is None, "the server did not start"
            time.sleep(0.005)
        port = port_file.read_text().strip()
        self.address = listen if listen.startswith("unix:") else f"127.0.0.1:{port}"

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def start_server(tmp_path: Path, shards: str) -> Iterator[Callable[..., Server]]:
    """Starts servers that end with the test."""
    servers: list[Server] = []

    def start(listen: str = "127.0.0.1:0", *options: str, data: str = shards) -> Server:
        servers.append(Server(tmp_path, listen, data, *options))
        return servers[-1]

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.signal(signal.SIGCONT)
            server.kill()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, shards: str) -> Iterator[Server]:
    """A server on a TCP port, for all tests that do not disturb a server."""
    running = Server(tmp_path_factory.mktemp("server"), "127.0.0.1:0", shards)
    yield running
    running.kill()


@pytest.fixture(scope="session")
def neighbour(tmp_path_factory: pytest.TempPathFactory, shards: str) -> Iterator[Server]:
    """A server on a Unix socket, for all tests that do not disturb a server. It shares memory with
    its clients for feeds whose slices have at least 256 KiB."""
    folder = tmp_path_factory.mktemp("neighbour")
    running = Server(folder, f"unix:{folder}/socket", shards)
    yield running
    running.kill()


def image(name: str, dtype: str, layout: str, size: int = 40, *, rounded: bool = False) -> str:
    end = "transforms { round_to_uint8 {} } " if rounded else ""
    end += "" if dtype == "UINT8" else "transforms { normalize { mean: 127 stddev: 63 } }"
    return (
        f'outputs {{ name: "{name}" feature: "image" transforms {{ decode_jpeg {{}} }} '
        f"transforms {{ random_resized_crop {{ height: {size} width: {size - 8} }} }} "
        f"transforms {{ random_flip {{}} }} {end} dtype: {dtype} layout: {layout} }}\n"
    )


LABELS = """
outputs { name: "label" feature: "label" dtype: INT32 }
outputs { name: "id" feature: "record_id" dtype: INT64 }
"""


def spec_text(outputs: str = "", more: str = "epochs: 2 tail: PAD") -> str:
    """A spec for four cores, with 16 examples a step and six steps an epoch."""
    return (
        'dataset: "flowers" seed: 5 shuffle { mode: GLOBAL } global_batch: 16 num_cores: 4 '
        f"{more}\n{outputs or image('image', 'BFLOAT16', 'NHWC')}{LABELS}"
    )


@pytest.fixture
def write_spec(tmp_path: Path) -> Callable[..., str]:
    """Writes a spec into a file; returns its path."""

    def write(text: str = "", name: str = "spec.textproto") -> str:
        path = tmp_path / name
        path.write_text(text or spec_text())
        return str(path)

    return write
