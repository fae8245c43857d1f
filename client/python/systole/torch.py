"""Feeds for PyTorch: an IterableDataset whose elements are whole batches.

dataset = systole.torch.FeedDataset("feeds-0:8470", "spec.textproto")
for batch in DataLoader(dataset, batch_size=None, num_workers=0):
    loss = train_step(batch["image"], batch["label"])
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.utils.data
from systole._batch import Batch
from systole._feed import BaseFeed, Datasets, Feed, LocalFeed
from systole._message import SpecLike


def to_tensors(batch: Batch) -> dict[str, torch.Tensor]:
    """The batch's arrays as tensors, in the feed's own memory: no copy."""
    return {name: torch.from_dlpack(batch[name]) for name in batch}  # type: ignore[attr-defined]


class FeedDataset(torch.utils.data.IterableDataset[dict[str, torch.Tensor]]):
    """A feed as a dataset for DataLoader(dataset, batch_size=None).

    servers:   as for systole.Feed; None: from `datasets`, as for systole.LocalFeed
    options:   those of systole.Feed or systole.LocalFeed. Where cores are not said, they are the
               share of this rank, if torch.distributed is initialised.

    A loop gives one epoch. num_workers=0 is all that a feed needs, which works on threads of its
    own. With workers, each opens a feed for its share of this process' cores, so that an element is
    a part of a step; a number that does not divide the cores is refused.
    """

    def __init__(
        self,
        servers: str | Sequence[str] | None,
        spec: SpecLike,
        *,
        datasets: Datasets | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        if (servers is None) == (datasets is None):
            raise ValueError("give servers, or datasets=.. for a local feed")
        self._servers = servers
        self._datasets = datasets
        self._spec = spec
        self._options = options
        distributed = torch.distributed
        said = {"cores", "process_index", "process_count"} & options.keys()
        if not said and distributed.is_available() and distributed.is_initialized():
            self._options.update(
                process_index=distributed.get_rank(), process_count=distributed.get_world_size()
            )
        self._feed: BaseFeed | None = None
        self._worker = -1
        self._state: Mapping[str, Any] | None = None

    def _open(self, **options: Any) -> BaseFeed:
        options = {**self._options, **options}
        if self._servers is not None:
            return Feed(self._servers, self._spec, **options)
        assert self._datasets is not None
        return LocalFeed(self._datasets, self._spec, **options)

    @property
    def feed(self) -> BaseFeed:
        """The feed that this process reads, opened when it is asked for first."""
        info = torch.utils.data.get_worker_info()
        worker = -1 if info is None else info.id
        if self._feed is None or self._worker != worker:
            if info is None:
                self._feed = self._open()
            else:
                self._feed = self._open_for_worker(info.id, info.num_workers)
            self._worker = worker
            if self._state is not None:
                self._feed.load_state_dict(self._state)
        return self._feed

    def _open_for_worker(self, worker: int, workers: int) -> BaseFeed:
        with self._open() as whole:
            first, end = whole.cores
        if (end - first) % workers != 0:
            raise ValueError(
                f"{workers} workers cannot share {end - first} cores equally: use num_workers=0, "
                "which a feed needs no more than, or a number that divides them"
            )
        each = (end - first) // workers
        begin = first + worker * each
        for name in ("process_index", "process_count"):
            self._options.pop(name, None)
        return self._open(cores=(begin, begin + each))

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        for batch in self.feed:
            yield to_tensors(batch)

    def __len__(self) -> int:
        return len(self.feed)

    # torch.distributed.checkpoint's Stateful, and torchdata's.

    def state_dict(self) -> dict[str, Any]:
        return self.feed.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        self._state = dict(state_dict)
        if self._feed is not None:
            self._feed.load_state_dict(state_dict)
