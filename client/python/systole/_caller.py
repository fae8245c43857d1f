"""Finds out how a DataLoader uses a dataset."""

from __future__ import annotations

from types import FrameType


def makes_batches(caller: FrameType) -> bool:
    """Whether the caller is the fetcher of a DataLoader that puts elements together into batches.

    A DataLoader asks for as many elements as its batch_size before it does anything with them, and
    tells the dataset nothing. So this function looks at the fetcher, which calls iter(dataset) when
    it is made. False for other callers.
    """
    fetcher = caller.f_locals.get("self")
    is_fetcher = any("Fetcher" in kind.__name__ for kind in type(fetcher).__mro__)
    return is_fetcher and bool(getattr(fetcher, "auto_collation", False))
