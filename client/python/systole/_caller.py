"""Finds out how a DataLoader uses a dataset."""

from __future__ import annotations

from types import FrameType


def makes_batches(caller: FrameType) -> bool:
    """Whether the caller is the fetcher of a DataLoader that puts elements together into batches.

    False for all other callers. The fetcher is the object of the DataLoader that calls
    iter(dataset). A dataset only gives elements, and does not see whether the DataLoader then puts
    them together. But the fetcher has an attribute that says so.
    """
    fetcher = caller.f_locals.get("self")
    is_fetcher = any("Fetcher" in kind.__name__ for kind in type(fetcher).__mro__)
    return is_fetcher and bool(getattr(fetcher, "auto_collation", False))
