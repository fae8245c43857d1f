"""What systole.jax.device_prefetch() and systole.torch.device_prefetch() have in common."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

from systole import _errors
from systole._any_feed import AnyFeed, Steps
from systole._arguments import whole_number
from systole._batch import AnyBatch

Batches = AnyFeed[Any] | Steps[Any]
DeviceBatchT = TypeVar("DeviceBatchT")


class DevicePrefetch(Iterator[DeviceBatchT], Generic[DeviceBatchT]):
    """Gives batches on devices. While the trainer works on a batch, the next `size` batches are
    under way to the devices.

    Over a feed, a loop ends with the epoch, and the next loop goes on with the next step. Over
    feed.steps(), a loop ends with the feed. state_dict() counts the batches that were taken from
    this object, and not those under way. Save this state, not the feed's.

    The feed itself is ahead by the batches under way. After a loop that you left early, go on with
    this object. A new object over the same feed would skip the batches under way.
    """

    def __init__(self, batches: Batches, size: int) -> None:
        size = whole_number("size", size, "2")
        if size < 1:
            raise _errors.InvalidSpec(f"size is {size}, want 1 or more")
        if not isinstance(batches, (AnyFeed, Steps)):
            raise _errors.WrongType(
                f"batches is a {type(batches).__name__}; want a feed, or feed.steps(); apply your "
                "functions by systole.map(feed, function), or to the batches that come from here"
            )
        self._feed = batches.feed if isinstance(batches, Steps) else batches
        self._batches = batches
        self._size = size
        self._waiting: deque[tuple[int, Any]] = deque()  # (step, batch under way)
        self._next_step = self._feed.step

    def _begin(self, batch: AnyBatch) -> Any:
        """Begins to bring the batch to the devices. Returns what _end() takes."""
        raise NotImplementedError

    def _end(self, begun: Any) -> DeviceBatchT:
        """Returns the batch, for the trainer. May wait."""
        raise NotImplementedError

    def _release(self) -> None:
        """Called when the trainer requests the next batch. By then the trainer has given the
        devices all its work on the last batch."""

    def __iter__(self) -> DevicePrefetch[DeviceBatchT]:
        if not self._waiting:
            iter(self._batches)
        return self

    def __next__(self) -> DeviceBatchT:
        self._release()
        while len(self._waiting) <= self._size:
            batch = next(self._batches, None)
            if batch is None:
                break
            self._waiting.append((batch.step, self._begin(batch)))
        if not self._waiting:
            raise StopIteration
        step, begun = self._waiting[0]
        try:
            on_devices = self._end(begun)
        except Exception:
            self.load_state_dict(self.state_dict())  # The next call tries this batch again.
            raise
        self._waiting.popleft()
        self._next_step = step + 1
        return on_devices

    def __len__(self) -> int:
        """Steps of an epoch."""
        return len(self._feed)

    @property
    def feed(self) -> AnyFeed[Any]:
        """The feed below, for its stats() and metrics(). It is ahead by the batches under way."""
        return self._feed

    def state_dict(self) -> dict[str, Any]:
        """The feed's state after the last batch that was taken from here."""
        return self._feed.state_at(self._next_step)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        self._feed.load_state_dict(state_dict)
        self._waiting.clear()
        self._next_step = self._feed.step
