"""The options of a server that systole.serve and systole.ray.serve both have."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from systole import _errors
from systole._arguments import count_of_bytes, path, whole_number
from systole._arrays import Arrays

# The globs of each dataset by its name.
ServedDatasets = Mapping[str, str | os.PathLike[str] | Sequence[str]]


def globs_by_name(datasets: ServedDatasets) -> dict[str, list[str]]:
    """The argument `datasets`, checked. Arrays are refused."""
    if not isinstance(datasets, Mapping):
        raise _errors.WrongType(
            f"datasets is {datasets!r}; want a dict, because a server has datasets by name: "
            f"serve({{'photos': {datasets!r}}}) for a spec with dataset='photos'"
        )
    for name, globs in datasets.items():
        if isinstance(globs, Arrays):
            raise _errors.WrongType(
                f"the dataset {name!r} is systole.from_arrays(..), which only systole.serve and "
                "systole.LocalFeed take: write shards by systole.write"
            )
    return {
        str(name): [
            path("datasets", one)
            for one in ([globs] if isinstance(globs, (str, os.PathLike)) else globs)
        ]
        for name, globs in datasets.items()
    }


def arrays_and_others(
    datasets: Mapping[str, str | os.PathLike[str] | Sequence[str] | Arrays],
) -> tuple[dict[str, Arrays], ServedDatasets]:
    """Splits the argument `datasets` into the arrays and all other entries, both by name. Does not
    check the other entries."""
    if not isinstance(datasets, Mapping):
        return {}, datasets
    arrays: dict[str, Arrays] = {}
    others: dict[str, str | os.PathLike[str] | Sequence[str]] = {}
    for name, one in datasets.items():
        if isinstance(one, Arrays):
            arrays[str(name)] = one
        else:
            others[name] = one
    return arrays, others


def columns_by_name(
    columns: Mapping[str, Sequence[str]] | Sequence[str], names: Sequence[str]
) -> dict[str, list[str]]:
    """The argument `columns`, checked. `names`: the names of the datasets."""
    if not isinstance(columns, Mapping):
        if not isinstance(columns, str) and not columns:
            return {}
        if len(names) > 1:
            raise _errors.InvalidSpec(
                f"columns is {columns!r}, but there are the datasets {', '.join(names)}; give a "
                f'list for each, as in {{"{names[0]}": {columns!r}}}'
            )
        columns = {name: columns for name in names}
    for name, features in columns.items():
        if name not in names:
            raise _errors.InvalidSpec(
                f"columns names the dataset {name!r}, but the datasets are {', '.join(names)}"
            )
        if isinstance(features, str) or not all(isinstance(one, str) for one in features):
            raise _errors.WrongType(
                f'columns of {name!r} is {features!r}; want a list of features, such as ["label"]'
            )
    return {name: list(features) for name, features in columns.items() if features}


def server_arguments(
    globs: Mapping[str, Sequence[str]],
    *,
    threads: int | None = None,
    memory_budget: int | None = None,
    index_dir: str | os.PathLike[str] | None = None,
    write_index: bool = False,
    compression: str | None = None,
    cache_memory: int | None = None,
    cache_disk: str | os.PathLike[str] | None = None,
    read_budget: int | None = None,
    block_cache: str | os.PathLike[str] | None = None,
    block_cache_bytes: int | None = None,
) -> list[str]:
    """The command line of `systole-server`. Arguments that are None are left out."""
    arguments = []
    for name, some in globs.items():
        for one in some:
            arguments += ["--dataset", f"{name}={one}"]
    for name, size in (
        ("memory_budget", memory_budget),
        ("cache_memory", cache_memory),
        ("read_budget", read_budget),
        ("block_cache_bytes", block_cache_bytes),
    ):
        if size is not None:
            arguments += [f"--{name.replace('_', '-')}={count_of_bytes(name, size)}"]
    for name, place in (
        ("index_dir", index_dir),
        ("cache_disk", cache_disk),
        ("block_cache", block_cache),
    ):
        if place is not None:
            arguments += [f"--{name.replace('_', '-')}", path(name, place)]
    if compression is not None:
        arguments += [f"--compression={compression}"]
    if threads is not None:
        arguments += ["--threads", str(whole_number("threads", threads))]
    if write_index:
        arguments += ["--write-index"]
    return arguments
