"""Feeds for PyTorch: an IterableDataset whose elements are whole batches, and batches on a GPU.

dataset = systole.torch.FeedDataset("feeds-0:8470", "spec.textproto")
for batch in DataLoader(dataset, batch_size=None, num_workers=0):
    loss = train_step(batch["image"], batch["label"])

feed = systole.Feed("feeds-0:8470", "spec.textproto")
for batch in systole.torch.device_prefetch(feed, "cuda"):
    loss = train_step(batch["image"], batch["label"])
"""

from __future__ import annotations

import ctypes
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
import torch.utils.data
from systole import _device_prefetch
from systole._base_feed import BaseFeed
from systole._batch import AnyBatch
from systole._caller import makes_batches
from systole._datasets import Datasets
from systole._device_prefetch import Batches
from systole._errors import FailedPrecondition, InvalidSpec
from systole._feed import LocalFeed, addresses_of
from systole._hosts import share_of_cores
from systole._message import SpecLike, spec_bytes, spec_fields
from systole._serve import serve
from systole._served_feed import Feed


class Tensors(dict[str, torch.Tensor]):
    """A batch's tensors by name. It has a class of its own so that we can refuse a DataLoader that
    would make batches of batches.
    """


def _no_batches_of_batches(batch: Any, *, collate_fn_map: Any = None) -> Any:
    raise InvalidSpec(
        "a feed's elements are whole batches already, and this DataLoader would make batches of "
        "them: give it batch_size=None; the spec's global_batch is the number of examples"
    )


# Makes default_collate refuse the type. DataLoader uses default_collate unless batch_size is None.
# This is for loaders that makes_batches() does not know.
torch.utils.data._utils.collate.default_collate_fn_map[Tensors] = _no_batches_of_batches


def to_tensors(batch: AnyBatch) -> dict[str, torch.Tensor]:
    """The batch's arrays as tensors, in the feed's own memory. Only what a function of systole.map
    made in other memory, or turned around, is copied.
    """
    return {name: torch.from_dlpack(batch[name]) for name in batch}  # type: ignore[attr-defined]


class DeviceBatch(dict[str, torch.Tensor]):
    """A batch's tensors on a device, by name, with the batch's step and epoch. Both are -1 in a
    batch that a library has made of the tensors alone, as Lightning does.
    """

    def __init__(
        self,
        tensors: Mapping[str, torch.Tensor] | Iterable[tuple[str, torch.Tensor]] = (),
        *,
        step: int = -1,
        epoch: int = -1,
    ) -> None:
        super().__init__(tensors)
        self.step = step
        self.epoch = epoch


class DevicePrefetch(_device_prefetch.DevicePrefetch[DeviceBatch]):
    def __init__(self, batches: Batches, device: torch.device | str | int, size: int = 2) -> None:
        super().__init__(batches, size)
        self._device = torch.device(device)
        on_gpu = self._device.type == "cuda"
        self._transfers = _Transfers(self._device, self._size + 1) if on_gpu else None

    def _begin(self, batch: AnyBatch) -> Any:
        if self._transfers is not None:
            return self._transfers.begin(batch)
        tensors = {name: one.to(self._device) for name, one in to_tensors(batch).items()}
        return DeviceBatch(tensors, step=batch.step, epoch=batch.epoch)

    def _end(self, begun: Any) -> DeviceBatch:
        return begun if self._transfers is None else self._transfers.end(begun)

    def _release(self) -> None:
        if self._transfers is not None:
            self._transfers.release()


def device_prefetch(
    batches: Batches, device: torch.device | str | int, size: int = 2
) -> DevicePrefetch:
    """Batches on a device. Batch n + 1 travels while the trainer works on batch n.

    A GPU reads memory on its own, beside the trainer's kernels, only if the memory is pinned. So a
    thread copies each batch into pinned memory, and a CUDA stream of its own brings it to the GPU.
    This takes pinned memory for `size` + 1 batches, and memory of the GPU for `size` + 2. The
    trainer may be `size` steps ahead of the GPU.

    batches:   a feed: each loop is one epoch; or feed.steps(): one loop gives all that is left
    device:    "cuda", "cuda:1" or a torch.device. On "cpu" the tensors stay in the feed's memory
    size:      batches that are under way while the trainer works on another
    """
    return DevicePrefetch(batches, device, size)


class _Transfers:
    """Copies from the feed's memory to pinned memory, and from there to a GPU."""

    def __init__(self, device: torch.device, count: int) -> None:
        # A thread has a current device of its own, which is GPU 0 at first.
        index = torch.cuda.current_device() if device.index is None else device.index
        self._device = torch.device(device.type, index)
        self._stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        self._thread = ThreadPoolExecutor(
            1, "systole-transfers", initializer=torch.cuda.set_device, initargs=(self._device,)
        )
        self._batches = deque(_PinnedBatch() for _ in range(count))
        self._given: _PinnedBatch | None = None  # The batch that the trainer has.

    def begin(self, batch: AnyBatch) -> Future[tuple[DeviceBatch, _PinnedBatch]]:
        pinned = self._batches[0]
        self._batches.rotate(-1)
        return self._thread.submit(self._copy, batch, pinned)

    def end(self, begun: Future[tuple[DeviceBatch, _PinnedBatch]]) -> DeviceBatch:
        batch, pinned = begun.result()
        stream = torch.cuda.current_stream(self._device)
        assert pinned.arrived is not None
        stream.wait_event(pinned.arrived)
        for tensor in batch.values():
            tensor.record_stream(stream)  # Its memory is used again only after the trainer's work.
        self._given = pinned
        return batch

    def release(self) -> None:
        if self._given is not None:
            self._given.used = _new_event()
            self._given.used.record(torch.cuda.current_stream(self._device))
            self._given = None

    def _copy(self, batch: AnyBatch, pinned: _PinnedBatch) -> tuple[DeviceBatch, _PinnedBatch]:
        pinned.wait()
        with torch.cuda.stream(self._stream):
            tensors = {
                name: pinned.copy(name, tensor).to(self._device, non_blocking=True)
                for name, tensor in to_tensors(batch).items()
            }
            pinned.arrived = _new_event()
            pinned.arrived.record(self._stream)
        return DeviceBatch(tensors, step=batch.step, epoch=batch.epoch), pinned


class _PinnedBatch:
    """Pinned memory for a batch."""

    def __init__(self) -> None:
        self.arrived: torch.cuda.Event | None = None  # When the GPU has read the last batch.
        # When the trainer's work on it is done. Without this, a trainer that never waits would be
        # far ahead of the GPU, and each of its steps would take memory of the GPU.
        self.used: torch.cuda.Event | None = None
        self._tensors: dict[str, torch.Tensor] = {}

    def wait(self) -> None:
        """Waits until the last batch is not needed any more."""
        for event in (self.arrived, self.used):
            if event is not None:
                event.synchronize()

    def copy(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        kept = self._tensors.get(name)
        if kept is None or kept.shape != tensor.shape or kept.dtype != tensor.dtype:
            kept = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
            self._tensors[name] = kept
        if not tensor.is_contiguous():
            return kept.copy_(tensor)
        # Unlike copy_(), this takes one processor. The feed needs the others.
        ctypes.memmove(kept.data_ptr(), tensor.data_ptr(), kept.numel() * kept.element_size())
        return kept


def _new_event() -> torch.cuda.Event:
    # With `blocking`, a thread that waits for the event sleeps.
    return torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]


# The most workers of one DataLoader. Each needs at least one core.
_MAX_WORKERS = 1024
_WHERE_THE_STATE_SAYS = -1


class FeedDataset(torch.utils.data.IterableDataset[dict[str, torch.Tensor]]):
    """A feed as a dataset for DataLoader(dataset, batch_size=None).

    servers:   as for systole.Feed; None: reads `datasets`, as systole.LocalFeed does
    split_steps: lets each of several workers give a part of a step
    options:   those of systole.Feed or systole.LocalFeed. Without cores, process_index and
               process_count the feed gets this rank's share, if torch.distributed is initialised.

    A loop gives one epoch, and len() is its number of steps. An element is a whole batch, so the
    DataLoader has no batch to make. Any batch_size other than None is refused. A feed works on
    threads of its own, so num_workers=0 is enough.

    Several workers are refused, unless split_steps says that an element may be a part of a step.
    Each worker then opens a feed for its share of this process's cores. The number of workers must
    divide the number of cores.

    With workers, call set_epoch() before each loop but the first, unless they are persistent. The
    workers hold the position. torchdata's StatefulDataLoader can save it, but state_dict() cannot.
    Workers that read from servers need multiprocessing_context="spawn", because forked workers are
    refused once this process has opened a feed from servers. len() and state_dict() open one, too.
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
        # Found out here, because workers cannot ask JAX about this process.
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
        # A feed stays in its process. A worker opens its own.
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
            _no_batches_of_batches(None)
        # Reads the last order (see _Orders) here and not with the first batch, because DataLoader
        # waits until all workers have come here.
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
        """Sets the epoch of the next loop. A feed that is in this epoch already goes on in it.

        Call it between loops. It is needed only with workers that are made anew for each loop,
        because these do not know of earlier loops.
        """
        if epoch < 0:
            raise InvalidSpec(f"epoch is {epoch}, want 0 or more")
        if self._orders.any_followed():
            self._state = None  # The workers have begun with this state.
        self._orders.give(epoch)
        if self._feed is not None:
            _go_to_epoch(self._feed, epoch)

    # The protocol Stateful of torch.distributed.checkpoint, and that of torchdata.

    def state_dict(self) -> dict[str, Any]:
        """The feed's state. FailedPrecondition if workers read the feed, because only they
        know the position."""
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
    """The main process's orders to its workers: the epoch at which to begin.

    A worker follows an order in one loop only. Otherwise workers that are made anew for each loop
    would give the same epoch again and again. New workers follow the last order that was given
    before they were made. Persistent workers see later orders in shared memory.
    """

    def __init__(self) -> None:
        self._number = 0
        self.epoch = _WHERE_THE_STATE_SAYS
        # Shared: the last order's number and epoch, and the number that each worker has followed.
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
        """Call it in a worker's first loop. Earlier workers may have had the same number."""
        followed = int(self._cells[2 + worker])
        if not loaded_by_worker and followed == self._number:
            raise _repeated()
        # StatefulDataLoader gives its workers a state. If that state is the end of an epoch,
        # StatefulDataLoader at once makes new workers without a state. The new workers may then
        # follow set_epoch().
        if not (loaded_by_worker and self.epoch != _WHERE_THE_STATE_SAYS):
            self._cells[2 + worker] = max(followed, self._number)

    def follow_next(self, worker: int, order: tuple[int, int], ended: bool) -> bool:
        """Call it in later loops of a worker. Returns True if the loop begins with `epoch`, False
        if it goes on where the last loop ended."""
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
