"""A temporary server process on this machine, for this user alone."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from types import TracebackType

from systole import _errors
from systole._arguments import checks_names
from systole._arrays import Arrays
from systole._durations import Duration, seconds
from systole._server_options import (
    arrays_and_others,
    columns_by_name,
    globs_by_name,
    server_arguments,
)
from systole._server_process import ServerProcess


class serve:
    """A `systole-server` of shards or arrays on this machine, for other processes of this user:

        with systole.serve({"photos": "/data/photos-*.tfrecord"}, threads=4) as server:
            feed = systole.Feed(server.address, spec)

    datasets:      {name: glob, folder, a list of them, or systole.from_arrays(..)}. The server
                   is another process, so arrays are written into a file. The file has as many
                   bytes as the arrays. It is in the folder for temporary files (TMPDIR), and is
                   removed when the server ends
    threads:       threads that read, decode and transform; default: one for each CPU
    memory_budget: bytes for batches in flight, and for the threads that make them
    index_dir:     folder for the shards' indexes; default: beside each shard
    write_index:   whether the indexes of shards in a bucket are written into that bucket; default:
                   no. Indexes of shards elsewhere are always written
    compression:   of the shards: "gzip", "zlib", "zstd" or "none"; default: detected from each
                   shard
    cache_memory:  bytes of memory for values of outputs with cache="memory" or "disk"; default:
                   none
    cache_disk:    folder for values of outputs with cache="disk". A later server with this folder
                   uses the values again
    read_budget:   bytes, on top of memory_budget, for records of buckets and web servers that are
                   read ahead or kept for later; default: a quarter of memory_budget
    block_cache:   folder on a local disk that keeps what was read from buckets and web servers. A
                   later server with this folder uses the files again
    block_cache_bytes: the most bytes that the folder block_cache may hold
    columns:       features that a feed's `where` may test, such as ["label"]; for several datasets
                   {name: list}. A column has a feature's values of all records of a shard. Before
                   the server serves, it reads all records of the shards that have no such columns
                   yet, and keeps the columns beside the indexes. Default: no feature of shards,
                   every feature of arrays (64 at most)
    start_timeout: how long to wait until the server serves, in seconds or as "10m". The first start
                   may take long, because the server builds indexes and columns before it serves

    The server listens on a private Unix socket and shares memory with its clients. It ends with the
    `with` block, or with this process, even if this process is killed. It leaves no file behind. If
    the server does not start, systole.Error contains the server's log.
    """

    @checks_names("serve")
    def __init__(
        self,
        datasets: Mapping[str, str | os.PathLike[str] | Sequence[str] | Arrays],
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
        columns: Mapping[str, Sequence[str]] | Sequence[str] = (),
        start_timeout: Duration = 600,
    ) -> None:
        arrays, others = arrays_and_others(datasets)
        self._arrays: dict[str, Arrays] = arrays
        self._arguments = server_arguments(
            globs_by_name(others),
            threads=threads,
            memory_budget=memory_budget,
            index_dir=index_dir,
            write_index=write_index,
            compression=compression,
            cache_memory=cache_memory,
            cache_disk=cache_disk,
            read_budget=read_budget,
            block_cache=block_cache,
            block_cache_bytes=block_cache_bytes,
        )
        # No other server reads the arrays' file, so this server must make the columns.
        self._columns = {name: each.columns() for name, each in arrays.items()}
        self._columns |= columns_by_name(columns, [*arrays, *others])
        self._start_timeout = seconds("start_timeout", start_timeout)
        self._process: ServerProcess | None = None

    @property
    def address(self) -> str:
        """The address that the server listens on: "unix:..."."""
        return f"unix:{self._running().socket}"

    def __enter__(self) -> serve:
        self._process = ServerProcess("", self._arguments, self._write_files)
        try:
            self._process.wait_until_it_serves(self._start_timeout)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _write_files(self, folder: str) -> list[str]:
        """Writes the arrays, and a config with the columns, into `folder`, which only this user may
        enter. Returns the server's arguments that name the files."""
        arguments = []
        for number, (name, arrays) in enumerate(self._arrays.items()):
            shard = os.path.join(folder, f"arrays-{number}.tfrecord")
            arrays.write_shard(shard)
            arguments += ["--dataset", f"{name}={shard}"]
        if self._columns:
            config = os.path.join(folder, "columns.json")
            datasets = [{"name": name, "columns": some} for name, some in self._columns.items()]
            with open(config, "w", encoding="utf-8") as file:
                json.dump({"datasets": datasets}, file)
            arguments += ["--config", config]
        return arguments

    def log(self) -> str:
        """The last lines that the server wrote."""
        return self._running().log()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def _running(self) -> ServerProcess:
        if self._process is None:
            raise _errors.FailedPrecondition("the server runs only inside the `with` block")
        return self._process
