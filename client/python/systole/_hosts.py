"""Which of a feed's cores belong to this process."""

from __future__ import annotations

import os
import sys


def share_of_cores(
    num_cores: int,
    cores: tuple[int, int] | None,
    process_index: int | None,
    process_count: int | None,
) -> tuple[tuple[int, int], str]:
    """The cores, [first, last + 1), and who said so.

    What is said goes first; else JAX, if it runs on several processes; else RANK and WORLD_SIZE of
    the environment; else all cores.
    """
    if cores is not None:
        if process_index is not None or process_count is not None:
            raise ValueError("give cores, or process_index and process_count, not both")
        first, end = cores
        if not 0 <= first < end <= num_cores:
            raise ValueError(f"cores={cores!r}: want a range inside (0, {num_cores})")
        return (first, end), "cores"
    if (process_index is None) != (process_count is None):
        raise ValueError("give both process_index and process_count, or neither")
    if process_index is not None and process_count is not None:
        said_by = "process_index"
    elif (jax := _from_jax()) is not None:
        process_index, process_count = jax
        said_by = "jax.process_index()"
    elif "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        process_index, process_count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        said_by = "RANK"
    else:
        return (0, num_cores), "all"
    if not 0 <= process_index < process_count:
        raise ValueError(f"{said_by} is {process_index}, want 0 to {process_count - 1}")
    if num_cores % process_count != 0:
        raise ValueError(
            f"the spec's num_cores is {num_cores}, which {process_count} processes ({said_by}) "
            "cannot share equally: change num_cores, or give cores=(first, end)"
        )
    each = num_cores // process_count
    return (process_index * each, (process_index + 1) * each), said_by


def _from_jax() -> tuple[int, int] | None:
    """JAX's numbers, if it runs on several processes. Does not initialise it."""
    jax = sys.modules.get("jax")
    if jax is None:
        return None
    try:
        if not jax.distributed.is_initialized():
            return None
    except AttributeError:
        return None
    return jax.process_index(), jax.process_count()
