"""systole.serve: a server that ends with its block or its parent, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest
import systole
from conftest import LONGEST_WAIT, image, spec_text


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A zombie does not count as a process.
    return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()


def servers_in(folder: str) -> list[int]:
    """The processes whose command line names the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if folder in (entry / "cmdline").read_text():
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


def wait_until(holds) -> bool:
    deadline = time.monotonic() + LONGEST_WAIT
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_serve_shares_memory_by_a_private_socket_and_leaves_nothing(shards, write_spec):
    # A core's part of less than 256 KiB would be sent, not shared. These parts are larger.
    outputs = image("image", "BFLOAT16", "NHWC", size=160)
    spec = write_spec(spec_text(outputs, more="epochs: 1 tail: PAD"))
    with systole.LocalFeed(shards, spec, threads=2) as feed:
        wanted = [feed.digest(batch) for batch in feed]
    with systole.serve({"flowers": shards}, threads=2) as server:
        assert server.address.startswith("unix:")
        folder = Path(server.address.removeprefix("unix:")).parent
        assert folder.stat().st_mode & 0o077 == 0
        with systole.Feed(server.address, spec) as feed:
            assert [feed.digest(batch) for batch in feed] == wanted
            stats = feed.stats()
    assert len(wanted) == 6
    assert stats["not_shared"] == ""
    assert stats["shared_payload_bytes"] == stats["payload_bytes"] > 0
    assert not folder.exists()
    assert servers_in(str(folder)) == []
    with pytest.raises(systole.FailedPrecondition, match="with"):
        _ = server.address


def test_serve_raises_the_servers_start_error_and_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(systole.Error, match=r"nothing-\*.tfrecord"):
        with systole.serve({"flowers": str(tmp_path / "nothing-*.tfrecord")}):
            pass
    assert list(tmp_path.iterdir()) == []


def test_an_error_in_the_with_block_ends_the_server(shards):
    with pytest.raises(ZeroDivisionError):
        with systole.serve({"flowers": [shards]}) as server:
            folder = str(Path(server.address.removeprefix("unix:")).parent)
            1 / 0
    assert wait_until(lambda: not servers_in(folder) and not os.path.exists(folder))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_server_ends_when_a_signal_ends_its_parent(how, shards):
    child = subprocess.Popen(
        [
            sys.executable,
            "-c",
            textwrap.dedent(
                """
                import sys, time, systole
                with systole.serve({"flowers": sys.argv[1]}) as server:
                    print(server.address, flush=True)
                    time.sleep(600)
                """
            ),
            shards,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    folder = str(Path(child.stdout.readline().strip().removeprefix("unix:")).parent)
    assert servers_in(folder)
    child.send_signal(how)
    child.wait()
    assert wait_until(lambda: not servers_in(folder) and not os.path.exists(folder))


def test_the_server_ends_when_its_guard_process_is_killed(shards):
    with systole.serve({"flowers": shards}) as server:
        folder = str(Path(server.address.removeprefix("unix:")).parent)
        found = {pid: Path(f"/proc/{pid}/cmdline").read_text() for pid in servers_in(folder)}
        (guard,) = [pid for pid, words in found.items() if "_guard.py" in words]
        assert len(found) == 2
        os.kill(guard, signal.SIGKILL)
        assert wait_until(lambda: not servers_in(folder))
    assert not os.path.exists(folder)
