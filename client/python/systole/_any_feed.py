"""The common base of feeds, and of feeds whose batches a function changes (systole.map)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from systole import _errors
from systole._arguments import whole_number
from systole._batch import AnyBatch, ArraySpec

BatchT = TypeVar("BatchT", bound=AnyBatch)
FeedT = TypeVar("FeedT", bound="AnyFeed[Any]")
STATE_VERSION = 1

# Methods that datasets of tf.data and other libraries have, and what to use in their place.
_NOT_HERE = {
    "take": "itertools.islice(feed.steps(), n) gives n batches",
    "skip": "skip_to(step) goes on with another step; the spec's select=[Select(skip=n)] leaves "
    "out records",
    "map": "systole.map(feed, function) applies a function of yours; the spec's transforms= are "
    "faster",
    "filter": "use the spec's select= to pick records, or leave out batches that you get",
    "batch": "its elements are batches; the spec's global_batch is their number of examples",
    "repeat": "use the spec's epochs=; feed.steps() goes on over all epochs",
    "shuffle": "use the spec's shuffle=Shuffle('global')",
    "prefetch": "use prefetch_bytes=; for devices, device_prefetch() of systole.jax or "
    "systole.torch",
    "shard": "process_index= and process_count= give this process its part",
    "as_numpy_iterator": "its batches are NumPy arrays already",
}


class AnyFeed(Iterator[BatchT], Generic[BatchT]):
    """An iterator of batches with a state.

    `for batch in feed` gives the rest of the current epoch. The next loop goes on with the next
    epoch. After the feed's last epoch a loop is empty. len(feed) is the number of steps of an
    epoch. `for batch in feed.steps()` gives the rest of all epochs. At the end of an epoch
    `next(feed)` raises StopIteration until a new loop begins. `next(feed.steps())` raises it only
    at the end of the feed.
    """

    def __init__(self, next_step: int = 0) -> None:
        self._next_step = next_step
        self._epoch_end: int | None = None
        self._peeked: BatchT | None = None

    # ---- What each kind of feed implements ----

    def __len__(self) -> int:
        """Steps of an epoch."""
        raise NotImplementedError

    def state_at(self, step: int) -> dict[str, Any]:
        """The state to go on with step `step`. For callers that take batches ahead."""
        raise NotImplementedError

    def start_prefetch(self) -> None:
        """Begins to fetch now, before anybody takes a batch. Grain calls this after set_state()."""
        raise NotImplementedError

    @property
    def cores(self) -> tuple[int, int]:
        """The cores of this feed, [first, last + 1)."""
        raise NotImplementedError

    @property
    def element_spec(self) -> dict[str, ArraySpec]:
        """The arrays of every batch, by name."""
        raise NotImplementedError

    @property
    def num_steps(self) -> int | None:
        """Steps of the whole feed; None if it has no end."""
        raise NotImplementedError

    def stats(self) -> dict[str, Any]:
        """Counts since the feed was opened, or since skip_to() or load_state_dict()."""
        raise NotImplementedError

    def close(self) -> None:
        """Ends the feed. A thread that waits for a batch gets Cancelled. Batches stay valid."""
        raise NotImplementedError

    def _taker(self) -> Callable[[], BatchT | None]:
        """A function that gives the next batch, or None at the end of the feed. After _move() or
        close() the function raises Cancelled. So a thread that calls an old function after _move()
        takes no batch from the new place.
        """
        raise NotImplementedError

    def _move(self, token: str) -> int:
        """Makes the next _taker() begin at the step of the token. Returns the number of this
        step."""
        raise NotImplementedError

    # ---- Batches ----

    def __iter__(self: FeedT) -> FeedT:
        """This feed, for the rest of its current epoch."""
        self._epoch_end = (self.epoch + 1) * len(self)
        return self

    def __next__(self) -> BatchT:
        """Returns the next batch. Ctrl-C ends the wait. Raises StopIteration at the epoch's end.

        Raises DataLoss, FailedPrecondition, Unavailable and other kinds of systole.Error.
        """
        if self._epoch_end is None:
            iter(self)
        assert self._epoch_end is not None
        if self._next_step >= self._epoch_end:
            raise StopIteration
        batch = self._peeked or self._taker()()
        self._peeked = None
        if batch is None:
            raise StopIteration
        self._next_step = batch.step + 1
        return batch

    def steps(self) -> Steps[BatchT]:
        """The rest of the feed, over all epochs. For a training that counts steps."""
        return Steps(self)

    def peek(self) -> BatchT:
        """The next batch, even if it belongs to the next epoch. peek() does not consume the
        batch."""
        if self._peeked is None:
            self._peeked = self._taker()()
        if self._peeked is None:
            raise StopIteration("the feed has ended: there is no next batch")
        return self._peeked

    # ---- Position ----

    @property
    def step(self) -> int:
        """The number of the batch that comes next, counted over all epochs."""
        return self._next_step

    @property
    def epoch(self) -> int:
        """The epoch of the batch that comes next."""
        return self._next_step // len(self)

    def skip_to(self, step: int) -> None:
        """Goes to step number `step`, forwards or back. Costs as much as opening the feed."""
        step = whole_number("step", step)
        if step < 0:
            raise _errors.InvalidSpec(f"step is {step}, want 0 or more")
        self.load_state_dict(self.state_at(step))

    def stand_at(self, step: int) -> None:
        """Calls skip_to(step) if the feed is at another step. For modules that decide themselves at
        which step a loop begins."""
        if self._next_step != step:
            self.skip_to(step)

    def state_dict(self) -> dict[str, Any]:
        """The state after the last batch that was taken. Before the first batch it is the state of
        the feed's beginning. The state is the same on every host of a job. A job with another
        number of hosts can load it, into a Feed or a LocalFeed. Part of PyTorch's protocol
        Stateful.
        """
        return self.state_at(self._next_step)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Goes on where state_dict() was taken. The state counts examples, so the spec may have
        another global_batch than the feed that gave the state. If no batch of the new size begins
        at the state's example, the feed goes on with the batch that begins next, and logs how many
        examples it skips.

        Raises FailedPrecondition if the data, their order or the content version differ. The
        message says which of them.
        """
        if (
            not isinstance(state_dict, Mapping)
            or state_dict.get("version") != STATE_VERSION
            or not {"token", "step"} <= state_dict.keys()
        ):
            raise _errors.WrongType(
                f"this is not a state of a feed, or a newer release made it: want a result of "
                f"state_dict(), with version {STATE_VERSION}, a step and a token, got "
                f"{state_dict!r:.200}"
            )
        # The state's `step` is for people. It counts batches of the size that the old feed had.
        self._go_to(str(state_dict["token"]))

    def get_state(self) -> bytes:
        """state_dict() as JSON. Part of Grain's and Orbax's protocol."""
        return json.dumps(self.state_dict()).encode()

    def set_state(self, state: bytes) -> None:
        """Calls load_state_dict() with the state that get_state() gave."""
        try:
            state_dict = json.loads(state)
        except (TypeError, ValueError):
            raise _errors.WrongType(
                f"this is not a state of a feed: want a result of get_state(), got {state!r:.200}"
            ) from None
        self.load_state_dict(state_dict)

    def _go_to(self, token: str) -> None:
        self._next_step = self._move(token)
        self._epoch_end = None
        self._peeked = None

    if not TYPE_CHECKING:  # mypy reports unknown attributes and indexing by itself.

        def __getattr__(self, name: str) -> Any:
            if name in _NOT_HERE:
                raise _errors.WrongName(f"a feed has no {name}(): {_NOT_HERE[name]}")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

        def __getitem__(self, index: object) -> Any:
            raise _errors.WrongType(
                "a feed cannot be indexed: loop over it, call skip_to(step) to go to a step, or "
                "give systole.torch.FeedDataset(..) to a DataLoader"
            )

    def __enter__(self: FeedT) -> FeedT:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class Steps(Iterator[BatchT], Generic[BatchT]):
    """The rest of a feed, epoch after epoch. Ends with the feed, which may have no end.

    A Steps has no position of its own: its next batch is the feed's next batch.
    """

    def __init__(self, feed: AnyFeed[BatchT]) -> None:
        self.feed = feed

    def __next__(self) -> BatchT:
        batch = next(self.feed, None)
        if batch is None:  # The end of an epoch, or of the feed.
            batch = next(iter(self.feed))
        return batch
