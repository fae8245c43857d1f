"""LocalFeed reads shards from versitygw, a server of S3, and from fake-gcs-server.

The programs also write into versitygw. They do not write into fake-gcs-server, which lacks the
uploads of Cloud Storage's XML API.
"""

from __future__ import annotations

import glob
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import bucket_feed
from conftest import LONGEST_WAIT, ROOT
from systole import _programs

PROGRAMS = ROOT / "build/bucket-servers"
FOLDER = "flowers of +100% & more/\u00e4"  # Has characters that URLs and XML encode.


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@contextmanager
def running(port: int, command: list[object], **variables: str) -> Iterator[None]:
    server = subprocess.Popen(
        [str(part) for part in command],
        env=os.environ | variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + LONGEST_WAIT
    try:
        while True:
            assert server.poll() is None and time.monotonic() < deadline
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.1)
        yield
    finally:
        server.kill()
        server.wait()


def bucket_with(shards: str, root: Path) -> None:
    folder = root / "shards" / FOLDER
    folder.mkdir(parents=True)
    for shard in glob.glob(shards):
        shutil.copy(shard, folder)


def test_versitygw_accepts_feeds_and_uploads_and_refuses_a_wrong_key(shards, tmp_path):
    bucket_with(shards, tmp_path / "buckets")
    spec = bucket_feed.write_spec(tmp_path)
    port = free_port()
    pattern = f"s3://shards/{FOLDER}/*.tfrecord"
    variables = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "reader",
        "AWS_SECRET_ACCESS_KEY": "the-key-of-the-reader",
    }
    versitygw = [
        PROGRAMS / "versitygw",
        "--port",
        f"127.0.0.1:{port}",
        "posix",
        tmp_path / "buckets",
    ]
    with running(
        port, versitygw, ROOT_ACCESS_KEY="reader", ROOT_SECRET_KEY="the-key-of-the-reader"
    ):
        assert bucket_feed.digests(pattern, spec, **variables) == bucket_feed.digests(shards, spec)
        program = _programs.path_of("systole")
        prefix = f"s3://shards/{FOLDER}/packed/flowers"
        images = Path(shards).parent / "images"
        for command in (
            ["pack", images, prefix, "--shards", 3],
            ["index", f"{prefix}-train-*"],
            ["verify", f"{prefix}-train-*"],
        ):
            done = bucket_feed.run([program, *command], **variables)
            assert done.returncode == 0, done.stderr
        packed = bucket_feed.digests(f"{prefix}-train-*", spec, **variables)
        assert packed == bucket_feed.digests(shards, spec)
        folder = tmp_path / "buckets/shards" / FOLDER / "packed"
        assert (folder / "flowers-train-00000-of-00003.tfrecord.idx").is_file()

        large = tmp_path / "large"
        bucket_feed.run([program, "make-flowers", large, "--images", 64, "--size", 400])
        raw = ["--shards", 1, "--raw"]
        for out in (tmp_path / "p", f"s3://shards/{FOLDER}/raw/p"):
            done = bucket_feed.run([program, "pack", large, out, *raw], **variables)
            assert done.returncode == 0, done.stderr
        local = (tmp_path / "p-train-00000-of-00001.tfrecord").read_bytes()
        assert (folder.parent / "raw/p-train-00000-of-00001.tfrecord").read_bytes() == local
        assert len(local) > 16 << 20

        wrong = variables | {"AWS_SECRET_ACCESS_KEY": "the-key-of-nobody"}
        refused = bucket_feed.run(bucket_feed.command(pattern, spec), **wrong)
        assert refused.returncode != 0
        assert "SignatureDoesNotMatch" in refused.stderr
        assert "the-key-of-nobody" not in refused.stderr


def test_fake_gcs_server_serves_a_glob(shards, tmp_path):
    bucket_with(shards, tmp_path / "buckets")
    spec = bucket_feed.write_spec(tmp_path)
    port = free_port()
    server = [
        *(PROGRAMS / "fake-gcs-server", "-scheme", "http", "-host", "127.0.0.1"),
        *("-port", port, "-public-host", f"127.0.0.1:{port}"),
        *("-backend", "memory", "-data", tmp_path / "buckets"),
    ]
    with running(port, server):
        pattern = f"gs://shards/{FOLDER}/*.tfrecord"
        variables = {"STORAGE_EMULATOR_HOST": f"127.0.0.1:{port}"}
        assert bucket_feed.digests(pattern, spec, **variables) == bucket_feed.digests(shards, spec)
