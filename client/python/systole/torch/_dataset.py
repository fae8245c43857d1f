"""A feed as a dataset for DataLoader."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.utils.data
from systole._base_feed import BaseFeed
from systole._caller import makes_batches
from systole._datasets import Datasets
from systole._errors import FailedPrecondition, InvalidSpec
from systole._feed import LocalFeed, addresses_of
from systole._hosts import share_of_cores
from systole._message import SpecLike, spec_bytes, spec_fields
from systole._serve import serve
from systole._served_feed import Feed
from systole.torch._tensors import Tensors, no_batches_of_batches, to_tensors

# The most workers of one DataLoader. Each needs at least one core.
_MAX_WORKERS = 1024
_WHERE_THE_STATE_SAYS = -1


class FeedDataset(torch.utils.data.IterableDataset[dict[str, torch.Tensor]]):
    """A feed as a dataset for DataLoader(dataset, batch_size=None).

    servers:   as for systole.Feed; None: reads `datasets`, as systole.LocalFeed does
    split_steps: lets each of several workers give a part of a step
    options:   those of systole.Feed or systole.LocalFeed. If none of cores, process_index and
               process_count is given, and torch.distributed is initialised, the feed gets the share
               of this rank

    A loop gives one epoch, and len() is the number of steps of an epoch. An element is a whole
    batch, so the DataLoader has no batch to make. Any batch_size other than None is refused. A feed
    works on threads of its own, so num_workers=0 is enough.

    More than one worker needs split_steps=True. Each worker then opens a feed for its share of this
    process's cores, and an element is a part of a step. The number of workers must divide the
    number of cores.

    Workers hold the position of the feed. torchdata's StatefulDataLoader can save this position,
    but state_dict() cannot. Workers that are not persistent need a call of set_epoch() before each
    loop but the first. Workers that read from servers need multiprocessing_context="spawn", because
    forked workers are refused once this process has opened a feed from servers. len() and
    state_dict() also open such a feed in this process.
    """

    def __init__(
        self,
        servers: str | Sequence[str] | serve | None,
        spec: SpecLike,
        *,
        datasets: Datasets | None = None,
        split_steps: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        if (servers is None) == (datasets is None):
            raise InvalidSpec(
                "give servers, or datasets=.. for a feed of this process: FeedDataset(None, spec, "
                'datasets="data/*.tfrecord")'
            )
        self._servers = None if servers is None else addresses_of(servers)
        self._datasets = datasets
        self._spec = spec
        self._split_steps = split_steps
        self._options = options
        distributed = torch.distributed
        said = {"cores", "process_index", "process_count"} & options.keys()
        if not said and distributed.is_available() and distributed.is_initialized():
            self._options.update(
                process_index=distributed.get_rank(), process_count=distributed.get_world_size()
            )
        # Computed here, because JAX in a worker does not know the share of this process.
        self._cores, _ = share_of_cores(
            spec_fields(spec_bytes(spec))["num_cores"],
            options.get("cores"),
            options.get("process_index"),
            options.get("process_count"),
        )
        self._feed: BaseFeed | None = None
        self._worker = -1  # Which worker opened the feed; -1: the main process.
        self._state: Mapping[str, Any] | None = None
        self._loaded_by_worker = False
        self._loop = ""  # State of the feed's last loop: "", "begun" or "ended".
        self._orders = _Orders()

    def __getstate__(self) -> dict[str, Any]:
        # A feed stays in its process. A worker opens a feed of its own.
        return {**self.__dict__, "_feed": None}

    def _open(self, **options: Any) -> BaseFeed:
        """A feed at the position where the first loop begins."""
        options = {**self._options, **options}
        feed: BaseFeed
        if self._servers is not None:
            feed = Feed(self._servers, self._spec, **options)
        else:
            assert self._datasets is not None
            feed = LocalFeed(self._datasets, self._spec, **options)
        try:
            if self._state is not None:
                feed.load_state_dict(self._state)
            _go_to_epoch(feed, self._orders.epoch)
        except BaseException:
            feed.close()
            raise
        return feed

    @property
    def feed(self) -> BaseFeed:
        """The feed that this process reads. Opened at the first use."""
        info = torch.utils.data.get_worker_info()
        worker = -1 if info is None else info.id
        if self._feed is None or self._worker != worker:
            if info is None:
                self._feed = self._open()
            else:
                self._feed = self._open_for_worker(info.id, info.num_workers)
            self._worker = worker
            self._loop = ""
        return self._feed

    def _open_for_worker(self, worker: int, workers: int) -> BaseFeed:
        first, end = self._cores
        if workers > 1 and not self._split_steps:
            raise InvalidSpec(
                f"{workers} workers would each give a part of a batch: use num_workers=0, which is "
                "enough, because a feed works on threads of its own; or allow parts of a batch, by "
                "FeedDataset(.., split_steps=True)"
            )
        if (end - first) % workers != 0:
            raise InvalidSpec(
                f"{workers} workers cannot share {end - first} cores equally: use num_workers=0, "
                "which is enough for a feed, or a number that divides them"
            )
        self._orders.follow_first(worker, self._loaded_by_worker)
        each = (end - first) // workers
        begin = first + worker * each
        for name in ("process_index", "process_count"):
            self._options.pop(name, None)
        return self._open(cores=(begin, begin + each))

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        if makes_batches(sys._getframe(1)):
            no_batches_of_batches(None)
        # DataLoader waits until all workers have come here, so all workers read the same last order
        # (see _Orders). If each worker read it with its first batch, set_epoch() could give a new
        # order while some workers have read the old one.
        return self._batches(self._orders.last())

    def _batches(self, order: tuple[int, int]) -> Iterator[dict[str, torch.Tensor]]:
        feed = self.feed
        if self._worker >= 0 and self._loop:
            # This worker is persistent, and begins a loop that is not its first.
            if self._orders.follow_next(self._worker, order, self._loop == "ended"):
                feed.skip_to(self._orders.epoch * len(feed))
        self._loop = "begun"
        for batch in feed:
            yield Tensors(to_tensors(batch))
        self._loop = "ended"

    def __len__(self) -> int:
        return len(self.feed)

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next loop. A feed that is in this epoch already keeps its position.

        Call this between loops. The call is needed only with workers that are made anew for each
        loop, because such workers do not know of earlier loops.
        """
        if epoch < 0:
            raise InvalidSpec(f"epoch is {epoch}, want 0 or more")
        if self._orders.any_followed():
            self._state = None  # The workers have begun with this state.
        self._orders.give(epoch)
        if self._feed is not None:
            _go_to_epoch(self._feed, epoch)

    # torch.distributed.checkpoint and torchdata call these methods (protocol Stateful).

    def state_dict(self) -> dict[str, Any]:
        """The feed's state. Raises FailedPrecondition if workers read the feed, because only the
        workers know the position."""
        in_worker = torch.utils.data.get_worker_info() is not None
        if not in_worker and not self._loop and self._orders.any_followed():
            raise FailedPrecondition(
                "the DataLoader's workers hold the position: take num_workers=0, or torchdata's "
                "StatefulDataLoader and its state_dict()"
            )
        return self.feed.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """This process, and workers that begin from now on, go on where state_dict() was taken."""
        self._state = dict(state_dict)
        info = torch.utils.data.get_worker_info()
        if info is not None:
            self._loaded_by_worker = True
        else:
            self._orders.give(_WHERE_THE_STATE_SAYS)
        if self._feed is not None and self._worker == (-1 if info is None else info.id):
            self._feed.load_state_dict(state_dict)


def _go_to_epoch(feed: BaseFeed, epoch: int) -> None:
    if epoch != _WHERE_THE_STATE_SAYS and feed.epoch != epoch:
        feed.skip_to(epoch * len(feed))


class _Orders:
    """The main process's orders to its workers. An order says in which epoch the next loop begins.

    A worker follows an order in one loop only. Otherwise workers that are made anew for each loop
    would give the same epoch again and again. New workers follow the last order that was given
    before they were made. Persistent workers find later orders in shared memory.
    """

    def __init__(self) -> None:
        self._number = 0
        self.epoch = _WHERE_THE_STATE_SAYS
        # Shared with the workers: the number and the epoch of the last order, and for each worker
        # the number of the order that it has followed last.
        self._cells = torch.zeros(2 + _MAX_WORKERS, dtype=torch.int64)
        self._cells.share_memory_()  # type: ignore[no-untyped-call]
        self.give(_WHERE_THE_STATE_SAYS)

    def give(self, epoch: int) -> None:
        self._number += 1
        self.epoch = epoch
        self._cells[0] = self._number
        self._cells[1] = epoch

    def last(self) -> tuple[int, int]:
        """The number and the epoch of the last order."""
        return int(self._cells[0]), int(self._cells[1])

    def any_followed(self) -> bool:
        return bool((self._cells[2:] != 0).any())

    def follow_first(self, worker: int, loaded_by_worker: bool) -> None:
        """Call this in a worker's first loop. Raises FailedPrecondition if an earlier worker with
        the same number `worker` has followed the last order, and this worker has loaded no state.
        """
        followed = int(self._cells[2 + worker])
        if not loaded_by_worker and followed == self._number:
            raise _repeated()
        # StatefulDataLoader gives its workers a state. If that state is the end of an epoch,
        # StatefulDataLoader at once makes new workers without a state. The new workers may then
        # follow set_epoch().
        if not (loaded_by_worker and self.epoch != _WHERE_THE_STATE_SAYS):
            self._cells[2 + worker] = max(followed, self._number)

    def follow_next(self, worker: int, order: tuple[int, int], ended: bool) -> bool:
        """Call this in a worker's later loops. Returns True if the loop begins with the order's
        epoch, and False if the loop goes on where the last loop ended."""
        number, epoch = order
        if number == self._number:
            if not ended:
                raise _repeated()
            return False
        if epoch == _WHERE_THE_STATE_SAYS:
            raise FailedPrecondition(
                "persistent workers cannot be given a state: make a new DataLoader"
            )
        self._number, self.epoch = order
        self._cells[2 + worker] = number
        return True


def _repeated() -> FailedPrecondition:
    return FailedPrecondition(
        "workers have begun this epoch before: call the dataset's set_epoch(epoch) before each "
        "loop, or use num_workers=0, which is enough for a feed"
    )
