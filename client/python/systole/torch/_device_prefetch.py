"""Batches on a GPU."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
from systole import _device_prefetch
from systole._batch import AnyBatch
from systole._device_prefetch import Batches
from systole.torch._tensors import to_tensors


class DeviceBatch(dict[str, torch.Tensor]):
    """A batch's tensors on a device, by name, with the batch's step and epoch. Step and epoch are
    -1 in a batch that a library has made of the tensors alone, as Lightning does.
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
    thread copies each batch into pinned memory, and a separate CUDA stream brings the batch to the
    GPU. The copies take pinned memory for `size` + 1 batches, and memory of the GPU for `size` + 2.
    The trainer may be `size` steps ahead of the GPU.

    batches:   a feed (each loop is one epoch), or feed.steps() (one loop gives all steps left)
    device:    "cuda", "cuda:1" or a torch.device. On "cpu" the tensors stay in the feed's memory
    size:      batches that are under way while the trainer works on an earlier batch
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
        # When the trainer's work on the last batch is done. Without this event, a trainer that
        # never waits would be far ahead of the GPU, and each of its steps would take memory of the
        # GPU.
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
        # Unlike copy_(), memmove() takes only one processor. The feed needs the other processors.
        ctypes.memmove(kept.data_ptr(), tensor.data_ptr(), kept.numel() * kept.element_size())
        return kept


def _new_event() -> torch.cuda.Event:
    # With `blocking`, a thread that waits for the event sleeps.
    return torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
