"""Finds out how a DataLoader uses a dataset."""

from __future__ import annotations

from types import FrameType


def makes_batches(caller: FrameType) -> bool:
    """Whether the caller is the fetcher of a DataLoader that puts elements together into batches.

    False for all other callers. The fetcher is the object of the DataLoader that calls
    iter(dataset). The dataset is not told whether the DataLoader makes batches of its elements.
    The fetcher's attribute `auto_collation` says whether it does.
    """
    fetcher = caller.f_locals.get("self")
    is_fetcher = any("Fetcher" in kind.__name__ for kind in type(fetcher).__mro__)
    return is_fetcher and bool(getattr(fetcher, "auto_collation", False))
