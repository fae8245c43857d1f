"""The arguments that say which shards a LocalFeed reads, and what they must hold."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import Union

from systole import _errors, _systole
from systole._arguments import path, whole_number
from systole._message import Message

# Name -> glob or globs of its shards; or the globs alone, of the dataset that the spec names.
Datasets = Union[str, "os.PathLike[str]", Sequence[str], Mapping[str, str | Sequence[str]]]


def check_order(datasets: object) -> None:
    """Finds a spec where shards are wanted."""
    name = os.fsdecode(datasets) if isinstance(datasets, (str, os.PathLike)) else ""
    if isinstance(datasets, Message) or name.endswith((".textproto", ".pbtxt", ".json")):
        raise _errors.WrongType(
            "the first argument is a spec, and shards are wanted there: say LocalFeed(shards, spec)"
        )


def log_notes(dataset: _systole.Dataset) -> None:
    """Tells once of a dataset whose indexes are odd; warns if they cannot be written."""
    lost = [note for note in dataset.index_notes if "not kept" in note]
    notes = lost or dataset.index_notes
    if not notes:
        return
    more = f"; and {len(notes) - 1} more of its shards" if len(notes) > 1 else ""
    level = logging.WARNING if lost else logging.INFO
    logging.getLogger("systole").log(level, "dataset '%s': %s%s", dataset.name, notes[0], more)


def expected(
    numbers: int | Mapping[str, int] | None, option: str, name: str, names: list[str]
) -> int:
    """What is expected of the dataset `name`; 0: any number."""
    if numbers is None:
        return 0
    if not isinstance(numbers, Mapping):
        if len(set(names)) > 1:
            raise _errors.InvalidSpec(
                f"{option} is {numbers}, and the spec wants the datasets {', '.join(names)}; say "
                f'it of each, as in {{"{name}": {numbers}, ..}}'
            )
        numbers = {name: numbers}
    for known in numbers:
        if known not in names:
            raise _errors.InvalidSpec(
                f"{option} names the dataset {known!r}; the spec wants {', '.join(names)}"
            )
    wanted = whole_number(f"{option} of {name!r}", numbers.get(name, 0), "480")
    if name in numbers and wanted < 1:
        raise _errors.InvalidSpec(f"{option} of {name!r} is {wanted}, want 1 or more")
    return wanted


def globs(datasets: Datasets, name: str, names: list[str]) -> list[str]:
    if not isinstance(datasets, Mapping) and len(set(names)) > 1:
        raise _errors.NotFound(
            f"the spec wants the datasets {', '.join(names)}; say which shards each has, as in "
            f'{{"{name}": "data/{name}-*.tfrecord", ..}}'
        )
    if isinstance(datasets, Mapping):
        if name not in datasets:
            raise _errors.NotFound(
                f"the spec wants dataset {name!r}; there is {', '.join(datasets) or 'none'}"
            )
        datasets = datasets[name]
    if isinstance(datasets, (str, os.PathLike)):
        return [path("datasets", datasets)]
    try:
        return [path("datasets", one) for one in datasets]
    except TypeError:
        raise _errors.WrongType(
            f"datasets is {datasets!r}; want a glob, a folder, a list of them, or a dict of them "
            "by name"
        ) from None
