"""Feeds: the steps of a spec, from servers or made in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from systole import _errors, _systole
from systole._arguments import (
    checks_names,
    count_of_bytes,
    folder,
    number,
    path,
    whole_number,
)
from systole._base_feed import BaseFeed
from systole._datasets import Datasets, check_order, check_shapes, expected, log_notes, open_dataset
from systole._durations import seconds
from systole._hosts import share_of_cores
from systole._message import SpecLike, spec_bytes, spec_fields
from systole._serve import serve


class ServedFeed(BaseFeed):
    """The base of systole.Feed. Checks and converts Feed's arguments. `options` are the keywords
    from the table of a feed's options (_systole.feed_options).
    """

    def __init__(
        self,
        servers: str | Sequence[str] | serve,
        spec: SpecLike,
        cores: tuple[int, int] | None,
        process_index: int | None,
        process_count: int | None,
        keep_freed_memory: bool,
        options: Mapping[str, Any],
    ) -> None:
        if keep_freed_memory and not any(name in os.environ for name in _MALLOC_VARIABLES):
            _systole.keep_freed_memory(_ARENAS)
        addresses = addresses_of(servers)
        serialized = spec_bytes(spec)
        self._servers = addresses
        num_cores = spec_fields(serialized)["num_cores"]
        share, said_by = share_of_cores(num_cores, cores, process_index, process_count)
        values = _option_values(options)

        def open_at(token: str | None) -> _systole.FeedHandle:
            _check_process()
            return _systole.FeedHandle.open_client(
                serialized,
                addresses,
                token=token,
                cores=share,
                options=values,
            )

        super().__init__(serialized, num_cores, said_by, open_at)

    def _source(self) -> str:
        return ",".join(self._servers)


def addresses_of(servers: str | Sequence[str] | serve) -> list[str]:
    """The argument `servers`, as a list."""
    addresses: list[Any]
    if isinstance(servers, serve):
        return [servers.address]
    try:
        addresses = servers.split(",") if isinstance(servers, str) else list(servers)
    except TypeError:
        addresses = [servers]
    for address in addresses:
        if not isinstance(address, str):
            raise _errors.WrongType(
                f'servers has {address!r}; want addresses, such as "127.0.0.1:8470"'
            )
        if "*" in address or address.endswith(".tfrecord"):
            # A web address may hold secrets in any part, so the message shows none of it.
            is_web = address.lower().startswith(("http:", "https:"))
            shown = "an address of the web" if is_web else repr(os.path.basename(address))
            raise _errors.InvalidSpec(
                f"servers is {shown}, which looks like shards, not like the address of a "
                "server: read shards on this machine by systole.LocalFeed(shards, spec), or for "
                "PyTorch by FeedDataset(None, spec, datasets=shards)"
            )
    return addresses


# For each type in the table of options: checks a value and converts it for the extension.
_VALUE: dict[str, Callable[[str, Any], Any]] = {
    "Duration": seconds,
    "bool": lambda name, value: bool(value),
    "float": number,
    "int": count_of_bytes,
    "str": lambda name, value: str(value),
    "str | os.PathLike[str]": path,
}


def _option_values(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as the extension takes them: times in seconds, paths as text."""
    types = {row["name"]: row["type"] for row in _systole.feed_options()}
    return {name: _VALUE[types[name]](name, value) for name, value in options.items()}


# If one of these environment variables is set, malloc's settings are left alone.
_MALLOC_VARIABLES = (
    "MALLOC_ARENA_MAX",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "GLIBC_TUNABLES",
)
# How many heaps malloc has in a client (core/process/README.md). A feed over TCP is slower with
# more: with 4 heaps it reaches 0.9 of the rate that it has with 1 heap.
_ARENAS = 1

# The id of the process that has opened feeds from servers; None: no feed from servers was opened.
# gRPC keeps files open even after a feed's close(). If a child of fork() used gRPC, it would share
# these files with its parent, and neither process would receive anything from servers.
_process_of_feeds: int | None = None


def _check_process() -> None:
    """Call this before a feed from servers is opened. Raises FailedPrecondition if this process
    was forked from a process that had opened a feed from servers."""
    global _process_of_feeds
    if _process_of_feeds not in (None, os.getpid()):
        raise _errors.FailedPrecondition(
            "this process was forked from one that has opened a feed from servers, so it cannot "
            "open another: start processes by 'spawn' (DataLoader: "
            "multiprocessing_context='spawn'), or open feeds in the children only"
        )
    _process_of_feeds = os.getpid()


class LocalFeed(BaseFeed):
    """A feed that is made in this process, by the engine that servers use. Its bytes and its state
    are the same as those of a feed from servers.

    datasets:           {name: glob, folder, a list of them, or systole.from_arrays(..)}; or, if the
                        spec names one dataset, only the glob, folder, list or arrays
    spec:               a path (textproto, or .json), a dict, systole.FeedSpec, or the message
    threads:            threads that read, decode and transform. All open LocalFeeds of a process
                        share these threads: another number than that of the open feeds, or
                        than that of systole.configure(), is refused. Default: the number of the
                        open feeds; else that of systole.configure(); else one for each CPU
    cores, process_index, process_count: as for Feed
    prefetch_bytes:     bytes of memory for steps of this feed that are made ahead of the trainer.
                        If two steps need more, the feed takes the memory of two steps, as far as
                        the memory_budget of systole.configure() allows. That budget limits all
                        feeds together
    cache_memory:       bytes of memory for values of outputs with cache="memory" or "disk";
                        default: none
    cache_disk:         folder that keeps values of outputs with cache="disk", for this run and
                        later ones. Only one feed at a time may use it. Default: none
    cache_disk_bytes:   the most bytes that the folder cache_disk may hold
    index_dir:          folder for the shards' indexes; default: beside each shard
    write_index:        whether the indexes of shards in a bucket are written into that bucket;
                        default: no. Indexes of shards elsewhere are always written
    compression:        of the shards: "gzip", "zlib", "zstd" or "none"; default: detected from each
                        shard
    expect_records:     the number of records of all shards together, or {name: number} for several
                        datasets. If the shards have another number, the feed is refused. Default:
                        any number
    expect_bytes:       as expect_records, but for the sum of the shards' file sizes in bytes
    allow_mixed_content: accept a state of another content version. That version may make slightly
                        different bytes
    """

    @checks_names("LocalFeed")
    def __init__(
        self,
        datasets: Datasets,
        spec: SpecLike,
        *,
        threads: int | None = None,
        cores: tuple[int, int] | None = None,
        process_index: int | None = None,
        process_count: int | None = None,
        prefetch_bytes: int = 256 << 20,
        cache_memory: int = 0,
        cache_disk: str | os.PathLike[str] = "",
        cache_disk_bytes: int = 16 << 30,
        index_dir: str | os.PathLike[str] = "",
        write_index: bool = False,
        compression: str = "detect",
        expect_records: int | Mapping[str, int] | None = None,
        expect_bytes: int | Mapping[str, int] | None = None,
        allow_mixed_content: bool = False,
    ) -> None:
        check_order(datasets)
        serialized = spec_bytes(spec)
        fields = spec_fields(serialized)
        num_cores = fields["num_cores"]
        share, said_by = share_of_cores(num_cores, cores, process_index, process_count)
        zipped = fields["zip"]
        members = fields["mixture"] or fields["concatenation"]
        names = [member["dataset"] for member in zipped or members] or [fields["dataset"]]
        prefixes = [member["prefix"] for member in zipped]
        check_shapes(datasets, names, fields["outputs"], prefixes)
        if threads is not None:
            threads = whole_number("threads", threads)
        ahead = count_of_bytes("prefetch_bytes", prefetch_bytes)
        kept = count_of_bytes("cache_memory", cache_memory)
        kept_on_disk = count_of_bytes("cache_disk_bytes", cache_disk_bytes)
        cache_folder = path("cache_disk", cache_disk)
        indexes = folder("index_dir", index_dir)
        opened = {
            name: open_dataset(
                datasets,
                name,
                names,
                index_dir=indexes,
                write_index=bool(write_index),
                compression=str(compression),
                expect_records=expected(expect_records, "expect_records", name, names),
                expect_bytes=expected(expect_bytes, "expect_bytes", name, names),
            )
            for name in dict.fromkeys(names)
        }
        for one in opened.values():
            log_notes(one)
        dataset = opened[names[0]]
        if members:
            dataset = _systole.Dataset.join([opened[name] for name in names])
        elif zipped:
            dataset = _systole.Dataset.zip(
                [(opened[n], p) for n, p in zip(names, prefixes, strict=True)]
            )
        self._dataset = dataset
        cache = _systole.ValueCache.make(kept, cache_folder, kept_on_disk)
        self._cache = cache
        lists = _systole.RecordLists.make()

        def open_at(token: str | None) -> _systole.FeedHandle:
            return _systole.FeedHandle.open_local(
                serialized,
                dataset,
                lists,
                token=token,
                cores=share,
                threads=threads,
                processors=len(os.sched_getaffinity(0)),
                prefetch_bytes=ahead,
                cache=cache,
                allow_mixed_content=bool(allow_mixed_content),
            )

        super().__init__(serialized, num_cores, said_by, open_at)

    def cache_stats(self) -> dict[str, Any]:
        """The metrics of core/cache by name, or by name and store. They say how often the cache had
        the value of an output with `cache`, how often it did not have it, and how much it keeps."""
        return dict(self._cache.stats())

    def masked_records(self) -> list[dict[str, Any]]:
        """The damaged records that were masked so far. Each has a dict with the keys shard, record
        (the record_id), offset and cause.
        """
        return list(self._dataset.masked_records)

    def _source(self) -> str:
        return f"{self._dataset.name} ({self._dataset.num_records} records)"
