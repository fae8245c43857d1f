"""Feeds as Grain's datasets.

dataset = systole.grain.IterDataset(lambda: systole.Feed("feeds-0:8470", "spec.textproto"))
iterator = iter(dataset)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

try:
    import grain
except ImportError as error:
    raise ImportError("systole.grain needs Grain: pip install grain") from error

import numpy as np
from systole import _errors
from systole._any_feed import AnyFeed

Arrays = dict[str, np.ndarray[Any, Any]]


class _WithoutParent:
    # Grain's own _parent fails an assertion if there is no parent. When MaxText closes an iterator,
    # it calls hasattr(iterator, "_parent"), and hasattr() does not catch an AssertionError.
    @property
    def _parent(self) -> NoReturn:
        raise AttributeError("a feed is where the data come from: it has no parent")


class DatasetIterator(_WithoutParent, grain.DatasetIterator[Arrays]):  # type: ignore[misc]
    """The batches of a feed, over all its epochs, as dicts of arrays in the feed's memory."""

    def __init__(self, feed: AnyFeed[Any]) -> None:
        super().__init__()
        self._feed = feed
        self._batches = feed.steps()

    @property
    def feed(self) -> AnyFeed[Any]:
        """The feed below, for its stats() and metrics(). close() closes it, too."""
        return self._feed

    def __next__(self) -> Arrays:
        self._assert_not_closed()
        batch = next(self._batches)
        return {
            name: np.asarray(batch[name])
            for name, spec in batch.element_spec.items()
            if spec.shape is not None
        }

    def get_state(self) -> dict[str, Any]:
        """The feed's state_dict(). It is the same on every host."""
        return self._feed.state_dict()

    def set_state(self, state: dict[str, Any]) -> None:
        self._feed.load_state_dict(state)

    def start_prefetch(self) -> None:
        self._feed.start_prefetch()

    def close(self) -> None:
        super().close()
        self._feed.close()

    def __str__(self) -> str:
        return f"systole.grain.DatasetIterator({self._feed!r})"


class IterDataset(_WithoutParent, grain.IterDataset[Arrays]):  # type: ignore[misc]
    """A feed as a grain.IterDataset, for trainers that take one.

    open_feed: opens the feed, such as lambda: systole.LocalFeed(..), or a systole.map() of a feed.
               Each iterator opens a feed of its own, which begins with the first step.

    Elements are whole batches: this process's part of the global batch, so .batch() is not needed.
    The feed works on threads of its own, so .mp_prefetch() would only copy. Grain's .map() runs in
    the trainer's thread; systole.map() runs in parallel.

    Arrays with the examples in their last dimension are left out if the feed has several cores.
    """

    def __init__(self, open_feed: Callable[[], AnyFeed[Any]]) -> None:
        if not callable(open_feed):
            raise _errors.WrongType(
                f"open_feed is a {type(open_feed).__name__}; want a function that opens a feed, "
                "such as lambda: systole.LocalFeed(..), because each iterator needs its own"
            )
        super().__init__()
        self._open_feed = open_feed

    def __iter__(self) -> DatasetIterator:
        return DatasetIterator(self._open_feed())

    def __str__(self) -> str:
        return "systole.grain.IterDataset"
