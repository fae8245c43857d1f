"""Checks the arguments of the package's functions. Errors name the argument."""

from __future__ import annotations

import difflib
import functools
import inspect
import os
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from systole import _errors

Function = TypeVar("Function", bound=Callable[..., Any])

# Names that other libraries use, and this package's names for the same things.
_ELSEWHERE = {
    "num_threads": "threads",
    "num_workers": "threads",
    "rank": "process_index",
    "shard_index": "process_index",
    "world_size": "process_count",
    "num_shards": "process_count",
    "batch_size": "global_batch",
    "std": "stddev",
    "hflip": "flip",
    "horizontal_flip": "flip",
    "random_horizontal_flip": "flip",
}


def unknown_name(owner: str, name: str, known: Iterable[str]) -> _errors.WrongName:
    """The error for a name that `owner` does not have."""
    names = list(known)
    meant = _ELSEWHERE.get(name)
    if meant not in names:
        meant = next(iter(difflib.get_close_matches(name, names, n=1)), None)
    hint = f"; did you mean {meant!r}?" if meant else "."
    return _errors.WrongName(f"{owner} has no {name!r}{hint} It has {', '.join(names)}")


def parameters_of(function: Callable[..., Any]) -> list[str]:
    """The names of the function's parameters, without self."""
    return [name for name in inspect.signature(function).parameters if name != "self"]


def checks_names(owner: str) -> Callable[[Function], Function]:
    """A decorator for a function or an __init__. An unknown keyword then raises unknown_name()."""

    def decorate(function: Function) -> Function:
        known = parameters_of(function)

        @functools.wraps(function)
        def checked(*args: Any, **options: Any) -> Any:
            for name in options:
                if name not in known:
                    raise unknown_name(f"{owner}()", name, known)
            return function(*args, **options)

        return cast(Function, checked)

    return decorate


def whole_number(name: str, value: Any, example: str = "4") -> int:
    """The argument as an int. A float without a fraction, such as 1e9, is accepted."""
    try:
        return int(value.__index__())
    except (AttributeError, TypeError):
        pass
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise _errors.WrongType(f"{name} is {value!r}; want a whole number, such as {example}")


def count_of_bytes(name: str, value: Any) -> int:
    return whole_number(name, value, "256 << 20 (bytes) or 1e9")


def number(name: str, value: Any) -> float:
    """The argument as a float."""
    if isinstance(value, str):
        raise _errors.WrongType(f"{name} is {value!r}; want a number, such as 0.5")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise _errors.WrongType(f"{name} is {value!r}; want a number, such as 0.5") from None


def path(name: str, value: Any) -> str:
    """The argument as a path."""
    try:
        return os.fsdecode(value)
    except TypeError:
        raise _errors.WrongType(f"{name} is {value!r}; want a path") from None


def folder(name: str, value: Any) -> str:
    """The argument as the path of a folder that exists. "" if the argument is None or ""."""
    if value in (None, ""):
        return ""
    where = path(name, value)
    if not os.path.isdir(where):
        raise _errors.NotFound(f"{name} is {where!r}, and there is no such folder: create it")
    return where
