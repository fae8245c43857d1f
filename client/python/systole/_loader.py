"""A feed in the form of a DataLoader, for Trainers on PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from systole._any_feed import AnyFeed
from systole._batch import AnyBatch

ElementT = TypeVar("ElementT")


class Loader(Generic[ElementT]):
    """A loop over a Loader is an epoch, and len() is the number of the epoch's steps.

    element:        turns a batch into what the Trainer gets
    restart:        each loop begins with the feed's first step. For validation
    without_end:    a loop goes on after the epoch, for a Trainer that ends the epochs itself
    """

    def __init__(
        self,
        feed: AnyFeed[Any],
        element: Callable[[AnyBatch], ElementT],
        *,
        restart: bool,
        without_end: bool = False,
    ) -> None:
        self._feed = feed
        self._element = element
        self._restart = restart
        self._without_end = without_end

    def __len__(self) -> int:
        return len(self._feed)

    def __iter__(self) -> Iterator[ElementT]:
        if self._restart:
            self._feed.stand_at(0)
        for batch in self._feed.steps() if self._without_end else self._feed:
            yield self._element(batch)
