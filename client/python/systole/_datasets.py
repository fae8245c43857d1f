"""The arguments of LocalFeed that name its shards, or say what the shards must hold."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any, Union

from systole import _errors, _systole
from systole._arguments import path, whole_number
from systole._arrays import Arrays
from systole._message import Message

# A dict from a dataset's name to the glob or globs of its shards, or to arrays. If the spec names
# one dataset, the globs or arrays may be given without a dict.
Datasets = Union[
    str, "os.PathLike[str]", Sequence[str], Arrays, Mapping[str, str | Sequence[str] | Arrays]
]


def check_order(datasets: object) -> None:
    """Raises if a spec was given in place of the shards."""
    name = os.fsdecode(datasets) if isinstance(datasets, (str, os.PathLike)) else ""
    if isinstance(datasets, Message) or name.endswith((".textproto", ".pbtxt", ".json")):
        raise _errors.WrongType(
            "the first argument is a spec, but it must be the shards: write LocalFeed(shards, spec)"
        )


def log_notes(dataset: _systole.Dataset) -> None:
    """Logs one line: the first remark on a dataset's indexes, and how many more there are. If an
    index could not be written, the line is a warning, and only such remarks count."""
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
    """The number that `option` (expect_records or expect_bytes) gives for the dataset `name`, or 0
    if any number will do.
    """
    if numbers is None:
        return 0
    if not isinstance(numbers, Mapping):
        if len(set(names)) > 1:
            raise _errors.InvalidSpec(
                f"{option} is {numbers}, but the spec has the datasets {', '.join(names)}; give "
                f'a number for each, as in {{"{name}": {numbers}, ..}}'
            )
        numbers = {name: numbers}
    for known in numbers:
        if known not in names:
            raise _errors.InvalidSpec(
                f"{option} names the dataset {known!r}, but the spec has {', '.join(names)}"
            )
    wanted = whole_number(f"{option} of {name!r}", numbers.get(name, 0), "480")
    if name in numbers and wanted < 1:
        raise _errors.InvalidSpec(f"{option} of {name!r} is {wanted}, want 1 or more")
    return wanted


def check_shapes(
    datasets: Datasets, names: list[str], outputs: list[dict[str, Any]], prefixes: list[str]
) -> None:
    """Raises if an output lacks the shape of its array's rows. `prefixes`: the prefixes of a zip's
    members, in the order of `names`; empty for other specs.
    """
    for name, prefix in zip(names, prefixes or [""] * len(names), strict=True):
        found = datasets.get(name) if isinstance(datasets, Mapping) else datasets
        if isinstance(found, Arrays):
            found.check_outputs(
                [
                    {**output, "feature": output["feature"].removeprefix(prefix)}
                    for output in outputs
                    if output["feature"].startswith(prefix)
                ]
            )


def open_dataset(
    datasets: Datasets,
    name: str,
    names: list[str],
    *,
    index_dir: str,
    write_index: bool,
    compression: str,
    expect_records: int,
    expect_bytes: int,
) -> _systole.Dataset:
    """Opens the dataset `name`. `names`: all datasets of the spec."""
    found = globs(datasets, name, names)
    if isinstance(found, Arrays):
        return found.dataset(name, expect_records, expect_bytes)
    return _systole.Dataset.open(
        name, found, index_dir, write_index, compression, expect_records, expect_bytes
    )


def globs(datasets: Datasets, name: str, names: list[str]) -> list[str] | Arrays:
    """The globs of the dataset `name`, or its arrays."""
    if not isinstance(datasets, Mapping) and len(set(names)) > 1:
        raise _errors.NotFound(
            f"the spec has the datasets {', '.join(names)}; name the shards of each, as in "
            f'{{"{name}": "data/{name}-*.tfrecord", ..}}'
        )
    if isinstance(datasets, Mapping):
        if name not in datasets:
            raise _errors.NotFound(
                f"the spec has the dataset {name!r}, but `datasets` has "
                f"{', '.join(datasets) or 'none'}"
            )
        datasets = datasets[name]
    if isinstance(datasets, Arrays):
        return datasets
    if isinstance(datasets, (str, os.PathLike)):
        return [path("datasets", datasets)]
    try:
        return [path("datasets", one) for one in datasets]
    except TypeError:
        raise _errors.WrongType(
            f"datasets is {datasets!r}; want a glob, a folder, a list of them, "
            "systole.from_arrays(..), or a dict of them by name"
        ) from None
