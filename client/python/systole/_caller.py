"""Finds out how a DataLoader uses a dataset."""

from __future__ import annotations

from types import FrameType


def makes_batches(caller: FrameType) -> bool:
    """Whether the caller is the fetcher of a DataLoader that puts elements together into batches.

    A dataset cannot learn this from the DataLoader, which takes all elements of a batch before it
    puts them together. So this function looks at the DataLoader's fetcher, which calls
    iter(dataset) when the fetcher is made. False for other callers.
    """
    fetcher = caller.f_locals.get("self")
    is_fetcher = any("Fetcher" in kind.__name__ for kind in type(fetcher).__mro__)
    return is_fetcher and bool(getattr(fetcher, "auto_collation", False))
