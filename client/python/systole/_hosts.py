"""The share of a feed's cores that belongs to this process."""

from __future__ import annotations

import os
import sys
from typing import Any

from systole import _errors
from systole._arguments import whole_number


def share_of_cores(
    num_cores: int,
    cores: tuple[int, int] | None,
    process_index: int | None,
    process_count: int | None,
) -> tuple[tuple[int, int], str]:
    """The cores of this process, [first, last + 1), and the name of the source that gives them.

    The source is the first of these that exists: the arguments; JAX, if it runs on several
    processes; RANK and WORLD_SIZE of the environment. If none exists, the result is all cores and
    "all".
    """
    if cores is not None:
        if process_index is not None or process_count is not None:
            raise _errors.InvalidSpec("give cores, or process_index and process_count, not both")
        return _range_of(cores, num_cores), "cores"
    if (process_index is None) != (process_count is None):
        raise _errors.InvalidSpec("give both process_index and process_count, or neither")
    if process_index is not None and process_count is not None:
        process_index = whole_number("process_index", process_index, "0")
        process_count = whole_number("process_count", process_count)
        said_by = "process_index"
    elif (jax := _from_jax()) is not None:
        process_index, process_count = jax
        said_by = "jax.process_index()"
    elif "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        process_index, process_count = _from_environment("RANK"), _from_environment("WORLD_SIZE")
        said_by = "RANK"
    else:
        return (0, num_cores), "all"
    if not 0 <= process_index < process_count:
        raise _errors.InvalidSpec(f"{said_by} is {process_index}, want 0 to {process_count - 1}")
    if num_cores % process_count != 0:
        raise _errors.InvalidSpec(
            f"the spec's num_cores is {num_cores}, which {process_count} processes ({said_by}) "
            "cannot share equally: change num_cores, or give cores=(first, end)"
        )
    each = num_cores // process_count
    return (process_index * each, (process_index + 1) * each), said_by


def _range_of(cores: Any, num_cores: int) -> tuple[int, int]:
    """The argument `cores`, checked."""
    how = f"want (first, end), the cores from `first` to `end - 1`, inside (0, {num_cores})"
    try:
        first, end = cores
    except (TypeError, ValueError):
        raise _errors.WrongType(f"cores={cores!r}: {how}") from None
    first, end = whole_number("cores[0]", first), whole_number("cores[1]", end)
    if not 0 <= first < end <= num_cores:
        raise _errors.InvalidSpec(f"cores={cores!r}: {how}, as the spec's num_cores is {num_cores}")
    return first, end


def _from_environment(name: str) -> int:
    try:
        return int(os.environ[name])
    except ValueError:
        raise _errors.InvalidSpec(
            f"the environment's {name} is {os.environ[name]!r}, want a whole number: set it right, "
            "unset it, or give cores=(first, end)"
        ) from None


def _from_jax() -> tuple[int, int] | None:
    """JAX's process index and count, if JAX runs on several processes. Does not initialise JAX."""
    jax = sys.modules.get("jax")
    if jax is None:
        return None
    try:
        if not jax.distributed.is_initialized():
            return None
    except AttributeError:
        return None
    return jax.process_index(), jax.process_count()
