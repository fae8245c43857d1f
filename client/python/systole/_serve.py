"""A temporary server process on this machine, for this user alone."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from types import TracebackType

from systole import _errors
from systole._arguments import checks_names, count_of_bytes, path, whole_number
from systole._durations import Duration, seconds
from systole._programs import path_of

_LOG_BYTES = 4000


class serve:
    """A `systole-server` of the shards on this machine, for other processes of this user:

        with systole.serve({"photos": "/data/photos-*.tfrecord"}, threads=4) as server:
            feed = systole.Feed(server.address, spec)

    datasets:      {name: glob, folder, or a list of them}
    threads:       threads that read, decode and transform; default: one for each CPU
    memory_budget: bytes for batches in flight, and for the threads that make them
    index_dir:     folder for the shards' indexes; default: beside each shard
    write_index:   whether indexes are written into buckets, beside shards that lie there;
                   elsewhere they always are; default: no
    compression:   of the shards: "gzip", "zlib", "zstd" or "none"; default: detected from each
                   shard
    cache_memory:  bytes of memory for values of outputs with cache="memory" or "disk"; default:
                   none
    cache_disk:    folder for values of outputs with cache="disk", also over restarts
    read_budget:   bytes, beside memory_budget, for records of buckets and web servers: those that
                   are read ahead and those that are kept for later; default: a quarter of
                   memory_budget
    block_cache:   folder on a local disk for such records, also over restarts
    block_cache_bytes: the most that is kept in that folder
    start_timeout: how long to wait until the server serves, in seconds or as "10m"; to build
                   indexes of large shards takes longer

    The server listens on a private Unix socket and shares memory with its clients. It ends with the
    block, or with this process, even if this process is killed. It leaves no file behind. If the
    server does not start, systole.Error contains its log.
    """

    @checks_names("serve")
    def __init__(
        self,
        datasets: Mapping[str, str | os.PathLike[str] | Sequence[str]],
        *,
        threads: int | None = None,
        memory_budget: int = 1 << 30,
        index_dir: str | os.PathLike[str] | None = None,
        write_index: bool = False,
        compression: str = "detect",
        cache_memory: int = 0,
        cache_disk: str | os.PathLike[str] | None = None,
        read_budget: int | None = None,
        block_cache: str | os.PathLike[str] | None = None,
        block_cache_bytes: int = 64 << 30,
        start_timeout: Duration = 600,
    ) -> None:
        if not isinstance(datasets, Mapping):
            raise _errors.WrongType(
                f"datasets is {datasets!r}; want a dict, because a server has datasets by name: "
                f"serve({{'photos': {datasets!r}}}) for a spec with dataset='photos'"
            )
        budget = count_of_bytes("memory_budget", memory_budget)
        kept = count_of_bytes("cache_memory", cache_memory)
        arguments = [f"--memory-budget={budget}", f"--compression={compression}"]
        for name, globs in datasets.items():
            for one in [globs] if isinstance(globs, (str, os.PathLike)) else globs:
                arguments += ["--dataset", f"{name}={path('datasets', one)}"]
        arguments += [f"--cache-memory={kept}"]
        if cache_disk is not None:
            arguments += ["--cache-disk", path("cache_disk", cache_disk)]
        if read_budget is not None:
            arguments += [f"--read-budget={count_of_bytes('read_budget', read_budget)}"]
        if block_cache is not None:
            limit = count_of_bytes("block_cache_bytes", block_cache_bytes)
            arguments += ["--block-cache", path("block_cache", block_cache)]
            arguments += [f"--block-cache-bytes={limit}"]
        if threads is not None:
            arguments += ["--threads", str(whole_number("threads", threads))]
        if write_index:
            arguments += ["--write-index"]
        if index_dir is not None:
            arguments += ["--index-dir", path("index_dir", index_dir)]
        self._arguments = arguments
        self._start_timeout = seconds("start_timeout", start_timeout)
        self._guard: subprocess.Popen[bytes] | None = None
        self._folder = ""

    @property
    def address(self) -> str:
        """The address that the server listens on: "unix:..."."""
        if self._guard is None:
            raise _errors.FailedPrecondition("the server runs only inside the `with` block")
        return f"unix:{self._folder}/socket"

    def __enter__(self) -> serve:
        # Only this user may enter the folder.
        self._folder = tempfile.mkdtemp(prefix="systole-")
        served = os.path.join(self._folder, "port")
        command = [
            path_of("systole-server"),
            "--listen",
            f"unix:{self._folder}/socket",
            "--port-file",
            served,
            *self._arguments,
        ]
        guard = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_guard.py")
        self._log = tempfile.TemporaryFile()
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", guard, self._folder, *command],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
        )
        try:
            deadline = time.monotonic() + self._start_timeout
            while not os.path.exists(served):
                if self._guard.poll() is not None:
                    raise _errors.Error(f"the server did not start:\n{self.log()}")
                if time.monotonic() > deadline:
                    raise _errors.Unavailable(
                        f"the server does not serve after {self._start_timeout:g} s; its log:\n"
                        f"{self.log()}"
                    )
                time.sleep(0.01)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def log(self) -> str:
        """The last lines that the server wrote."""
        size = os.fstat(self._log.fileno()).st_size
        begin = max(0, size - _LOG_BYTES)
        # Leaves the file's position alone, because the server writes there.
        text = os.pread(self._log.fileno(), _LOG_BYTES, begin)
        return text.decode(errors="replace").strip()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        guard, self._guard = self._guard, None
        if guard is None:
            return
        assert guard.stdin is not None
        guard.stdin.close()
        guard.wait()
        self._log.close()
