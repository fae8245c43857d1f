"""Checks what a function of systole.map gives for a batch. Its names, shapes and dtypes must be
those of the first batch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
from systole import _errors
from systole._array import Array
from systole._batch import AnyBatch, ArraySpec

# What a function gives: arrays by name, or values that np.asarray() turns into arrays.
Arrays = Mapping[str, Any]
Function = Callable[[Any], Arrays]


class MappedBatch(AnyBatch):
    """One step of a mapped feed: the arrays that the function gave, and `valid`."""

    def __init__(
        self, batch: AnyBatch, specs: Mapping[str, ArraySpec], arrays: Mapping[str, Array]
    ) -> None:
        super().__init__(batch.step, batch.epoch, specs, batch.cores, batch.total_cores)
        self._arrays = arrays

    def __getitem__(self, name: str) -> Array:
        self._spec_of(name)
        return self._arrays[name]

    def _part(self, name: str, spec: ArraySpec, index: int) -> Array:
        examples = spec.per_core_shape[0]
        return cast(Array, self._arrays[name][index * examples : (index + 1) * examples])


class Shapes:
    """Keeps the names, shapes and dtypes of the first batch's arrays, and checks that every later
    batch has the same.

    Thread-safe.
    """

    def __init__(self, function: str) -> None:
        self._function = function
        self._lock = threading.Lock()
        self._specs: dict[str, ArraySpec] | None = None

    def specs(self) -> dict[str, ArraySpec] | None:
        """The properties of the arrays by name. None before the first batch."""
        return self._specs

    def batch_of(self, batch: AnyBatch, given: Arrays) -> MappedBatch:
        examples = len(batch["valid"])
        arrays = {name: np.asarray(value).view(Array) for name, value in given.items()}
        if "valid" not in arrays:
            arrays["valid"] = batch["valid"]
        with self._lock:
            if self._specs is None:
                self._specs = {
                    name: self._spec(name, array, examples, batch) for name, array in arrays.items()
                }
        specs = self._specs
        if arrays.keys() != specs.keys():
            raise _errors.InvalidSpec(
                f"{self._function} gave the arrays {', '.join(sorted(arrays))} for step "
                f"{batch.step}, but {', '.join(sorted(specs))} for an earlier step: give the same "
                "arrays for each"
            )
        for name, array in arrays.items():
            spec = specs[name]
            if array.shape != spec.shape or array.dtype != spec.dtype:
                assert spec.shape is not None
                raise _errors.InvalidSpec(
                    f"{self._function} gave {name!r} as {_shown(array.dtype, array.shape)} for "
                    f"step {batch.step}, but as {_shown(spec.dtype, spec.shape)} for an earlier "
                    "step: give the same shape and dtype for each"
                )
        return MappedBatch(batch, specs, arrays)

    def _spec(self, name: str, array: Array, examples: int, batch: AnyBatch) -> ArraySpec:
        if array.dtype.hasobject:
            raise _errors.InvalidSpec(
                f"{self._function} gave {name!r} as Python objects for step {batch.step}: give an "
                "array of numbers, bytes or strings of one size"
            )
        if array.ndim == 0 or array.shape[0] != examples:
            want = (examples, *array.shape[1:])
            raise _errors.InvalidSpec(
                f"{self._function} gave {name!r} in the shape {list(array.shape)} for step "
                f"{batch.step}; want {list(want)}, because the batch has {examples} examples"
            )
        cores = batch.cores[1] - batch.cores[0]
        per_core = (examples // cores, *array.shape[1:])
        return ArraySpec(name, array.dtype, array.shape, per_core, 0, None, 0)


def _shown(dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    return f"{dtype}{list(shape)}"


class PerExample:
    """A function of batches that calls another function for each example that is not padding."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self.__name__ = name_of(function)

    def __call__(self, batch: Mapping[str, Any]) -> Arrays:
        arrays = {name: np.asarray(batch[name]) for name in batch}
        valid = arrays["valid"]
        # In a batch that is all padding, the function is called for the first example, because only
        # a call shows the shapes of the arrays.
        called = np.flatnonzero(valid) if valid.any() else np.arange(1)
        made: dict[str, np.ndarray[Any, Any]] = {}
        for i in called:
            example = self._function({name: array[i] for name, array in arrays.items()})
            if not isinstance(example, Mapping):
                raise no_mapping(self.__name__, example)
            parts = {name: np.asarray(value) for name, value in example.items()}
            if not made:
                made = {
                    name: np.zeros((len(valid), *part.shape), part.dtype)
                    for name, part in parts.items()
                }
            if parts.keys() != made.keys():
                raise ValueError(
                    f"gave {', '.join(sorted(parts))} for example {i} of the batch, but "
                    f"{', '.join(sorted(made))} for another: give the same arrays for each"
                )
            for name, part in parts.items():
                rows = made[name]
                if part.shape != rows.shape[1:] or part.dtype != rows.dtype:
                    raise ValueError(
                        f"gave {name!r} as {_shown(part.dtype, part.shape)} for example {i} of the "
                        f"batch, but as {_shown(rows.dtype, rows.shape[1:])} for another: give the "
                        "same shape and dtype for each"
                    )
                rows[i] = part
        return made


def name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def no_mapping(function: str, given: object) -> _errors.WrongType:
    return _errors.WrongType(
        f"{function} gave a {type(given).__name__}; want a dict of arrays by their names"
    )
