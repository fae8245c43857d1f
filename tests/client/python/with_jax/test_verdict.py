"""stats() and print(feed) say what limits a feed. In each test, one thing takes far longer than
everything else."""

from __future__ import annotations

import http.server
import socket
import threading
import time
from pathlib import Path

import pytest
import systole
from conftest import systole as program
from systole import FeedSpec, Output

# The picture is enlarged to 2048 x 2048 and shrunk again. This takes a tenth of a second for each
# example: a hundred times as long as everything else in a batch.
COSTLY = """
dataset: "flowers" select { take: 12 } epochs: 1 global_batch: 2 num_cores: 2
outputs { name: "label" feature: "label" dtype: INT32 }
outputs { name: "picture" feature: "image" dtype: FLOAT32
  transforms { decode_jpeg {} } transforms { resize { height: 2048 width: 2048 } }
  transforms { resize { height: 8 width: 8 } } }
"""
CHEAP = """
dataset: "flowers" epochs: 4 global_batch: 8 num_cores: 2
outputs { name: "label" feature: "label" dtype: INT32 }
"""


@pytest.fixture(params=["local", "served"])
def open_feed(request, shards, server, write_spec):
    def open_it(spec: str):
        if request.param == "local":
            return systole.LocalFeed(shards, write_spec(spec))
        return systole.Feed(server.address, write_spec(spec))

    return open_it


def test_a_costly_output_is_named_as_the_limit_of_a_waiting_loop(open_feed):
    for _ in range(10):
        with open_feed(COSTLY) as feed:
            assert feed.stats()["limit"] == "unknown"
            for _ in feed.steps():
                pass
            stats = feed.stats()
            shown = repr(feed)
        # On a busy machine this loop may wait longer for a processor than for data. Then the limit
        # is "trainer", and the test opens the feed again.
        if stats["limit"] != "trainer":
            break
    assert (stats["limit"], stats["limit_output"]) == ("decode", "picture"), stats
    assert stats["limit_operation"] == "resize"
    assert stats["recent_limit"] == "decode"
    waits = stats["trainer_wait_seconds"]
    assert waits["decode"] == max(waits.values())
    assert waits["decode"] / sum(waits.values()) == pytest.approx(stats["limit_share"])
    assert sum(waits.values()) <= stats["trainer_seconds"]
    assert "of that for decode (picture, resize)" in shown


def test_a_slow_training_loop_is_named_as_the_limit(open_feed):
    with open_feed(CHEAP) as feed:
        for _ in feed:
            time.sleep(0.1)  # The feed makes a batch in less than a millisecond.
        stats = feed.stats()
        assert stats["limit"] == "trainer", stats
        assert stats["limit_output"] is None
        assert stats["limit_operation"] is None
        assert stats["limit_share"] == 0
        assert "the trainer is the limit" in repr(feed)


def pump(source: socket.socket, sink: socket.socket, bytes_per_second: float) -> None:
    try:
        while data := source.recv(16384):
            sink.sendall(data)
            time.sleep(len(data) / bytes_per_second)
    except OSError:
        pass  # The other direction has ended.
    for end in (source, sink):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


@pytest.fixture
def slow_link(server):
    """The address of a slow link to the server. The link carries a megabyte a second."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return  # The listener is closed.
            upstream = socket.create_connection(("127.0.0.1", int(server.address.split(":")[1])))
            for ends in ((client, upstream, 1e9), (upstream, client, 1e6)):
                threading.Thread(target=pump, args=ends, daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"127.0.0.1:{listener.getsockname()[1]}"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


def test_a_slow_link_is_named_as_the_limit_of_a_waiting_loop(slow_link, write_spec):
    # A batch has 123 KB, which the link carries in an eighth of a second.
    with systole.Feed(slow_link, write_spec(), finish="server") as feed:
        for _ in feed:
            pass
        stats = feed.stats()
        assert stats["limit"] == "wire", stats
        assert "of that for wire" in repr(feed)


class SlowFiles(http.server.BaseHTTPRequestHandler):
    """Serves files, or one range of a file. Waits `pause` seconds before it answers a GET."""

    protocol_version = "HTTP/1.1"
    folder = Path()
    pause = 0.0

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        time.sleep(self.pause)
        self.answer()

    def answer(self) -> None:
        file = self.folder / Path(self.path).name
        if not file.exists():  # The feed looks for indexes beside the shards.
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        data = file.read_bytes()
        wanted = self.headers.get("Range")
        self.send_response(206 if wanted else 200)
        self.send_header("ETag", '"1"')
        self.send_header("Accept-Ranges", "bytes")
        if wanted:
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            begin, end = int(first), min(int(last or len(data)), len(data) - 1)
            self.send_header("Content-Range", f"bytes {begin}-{end}/{len(data)}")
            data = data[begin : end + 1]
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def slow_files(tmp_path):
    program("make-flowers", tmp_path / "images", "--images", 96, "--size", 16)
    program("pack", tmp_path / "images", tmp_path / "flowers", "--shards", 12)
    handler = type("Handler", (SlowFiles,), {"folder": tmp_path})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    base = f"http://127.0.0.1:{server.server_address[1]}"
    yield handler, [f"{base}/{shard.name}" for shard in sorted(tmp_path.glob("*.tfrecord"))]
    server.shutdown()
    thread.join()
    server.server_close()


def test_slow_storage_is_named_as_the_limit_of_a_waiting_loop(slow_files):
    handler, addresses = slow_files
    spec = FeedSpec(
        dataset="flowers",
        global_batch=8,
        epochs=1,
        outputs={"label": Output("label", dtype="INT64")},
    )
    with systole.LocalFeed({"flowers": addresses}, spec, threads=1) as feed:
        handler.pause = 0.2  # From here on, each read of a file takes 0.2 s.
        for _ in feed:
            pass
        stats = feed.stats()
        assert stats["limit"] == "storage", stats
        assert "of that for storage" in repr(feed)
