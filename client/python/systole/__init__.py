"""Ready batches for accelerators: deterministic to the bit, exact on resume.

feed = systole.LocalFeed({"photos": "/data/photos-*.tfrecord"}, "spec.textproto")
feed = systole.Feed("feeds-0:8470,feeds-1:8470", "spec.textproto")
for batch in feed:                        # one epoch
    train_step(batch["image"], batch["label"])
"""

from __future__ import annotations

import os


def _load() -> None:
    """Loads the extension so that it uses its own protobuf and gRPC, not those that TensorFlow may
    have loaded into the process.
    """
    import sys

    flags = sys.getdlopenflags()
    # AddressSanitizer refuses RTLD_DEEPBIND.
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):
        sys.setdlopenflags(os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND)
    try:
        from systole import _systole  # noqa: F401
    finally:
        sys.setdlopenflags(flags)


_load()

from systole import _systole  # noqa: E402
from systole._any_feed import AnyFeed, Steps  # noqa: E402
from systole._arguments import checks_names, count_of_bytes, path, whole_number  # noqa: E402
from systole._array import Array  # noqa: E402
from systole._arrays import Arrays, from_arrays  # noqa: E402
from systole._batch import AnyBatch, ArraySpec, Batch, Page, Ragged  # noqa: E402
from systole._errors import (  # noqa: E402
    Cancelled,
    DataLoss,
    Error,
    FailedPrecondition,
    FunctionError,
    Internal,
    InvalidSpec,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
)
from systole._feed import LocalFeed  # noqa: E402
from systole._map import MappedFeed  # noqa: E402
from systole._map import map as map  # noqa: E402
from systole._mapped_batch import MappedBatch  # noqa: E402
from systole._metrics import Metric, Sample  # noqa: E402
from systole._records import Written, read, write  # noqa: E402
from systole._serve import serve  # noqa: E402
from systole._served_feed import Feed  # noqa: E402
from systole._spec import *  # noqa: E402, F403
from systole._spec import __all__ as _spec_names  # noqa: E402

__version__: str = _systole.version


@checks_names("configure")
def configure(
    *,
    threads: int | None = None,
    memory_budget: int | None = None,
    read_budget: int | None = None,
    block_cache: str | os.PathLike[str] | None = None,
    block_cache_bytes: int = 64 << 30,
) -> None:
    """Sets what all LocalFeeds of this process share.

    threads:           threads that read, decode and transform at the same time; default: `threads`
                       of the first feed, or else one for each CPU
    memory_budget:     bytes for all steps that are made ahead of the trainers; default: 1 GiB,
                       or four times the prefetch_bytes of the first feed, if that is more
    read_budget:       bytes, on top of memory_budget, for records from buckets and web servers:
                       those that are read ahead and those that are kept for later; default: a
                       quarter of memory_budget
    block_cache:       folder on a local disk that keeps what was read from buckets and web servers,
                       for this run and later ones; default: nothing is kept. Only one process may
                       use a folder at a time. Processes forked from this process use no folder
    block_cache_bytes: the most bytes that are kept in the folder block_cache

    The values apply to feeds opened from now on, also in processes forked from this one. Raises
    FailedPrecondition while LocalFeeds with other values are open.
    """
    if threads is not None:
        threads = whole_number("threads", threads)
    if memory_budget is not None:
        memory_budget = count_of_bytes("memory_budget", memory_budget)
    _systole.configure(
        threads=threads,
        memory_budget=memory_budget,
        read_budget=0 if read_budget is None else count_of_bytes("read_budget", read_budget),
        block_cache="" if block_cache is None else path("block_cache", block_cache),
        block_cache_bytes=count_of_bytes("block_cache_bytes", block_cache_bytes),
    )


content_version = _systole.content_version
keep_freed_memory = _systole.keep_freed_memory

# `map` is left out: `from systole import *` must not hide Python's own.
__all__ = [
    "AnyBatch",
    "AnyFeed",
    "Array",
    "ArraySpec",
    "Arrays",
    "Batch",
    "Cancelled",
    "DataLoss",
    "Error",
    "FailedPrecondition",
    "Feed",
    "FunctionError",
    "Internal",
    "InvalidSpec",
    "LocalFeed",
    "MappedBatch",
    "MappedFeed",
    "Metric",
    "NotFound",
    "Page",
    "PermissionDenied",
    "Ragged",
    "ResourceExhausted",
    "Sample",
    "Steps",
    "Unavailable",
    "Written",
    "configure",
    "content_version",
    "from_arrays",
    "keep_freed_memory",
    "read",
    "serve",
    "write",
    *_spec_names,
]
