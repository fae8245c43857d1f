"""Arrays in memory as a dataset."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from systole import _errors, _systole
from systole._arguments import checks_names

_DTYPES = ("uint8", "float32", "int64")
# The limits of a shard's columns (core/column/column.h).
_MOST_COLUMNS = 64
_MOST_COLUMN_NAME_BYTES = 1024
# For arrays of other dtypes: the dtype's kind -> the dtype to which the user can convert the array.
_INSTEAD = {"i": "int64", "u": "int64", "b": "int64", "f": "float32", "V": "float32"}


class Arrays:
    """NumPy arrays as a dataset. systole.from_arrays makes it."""

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        if not isinstance(arrays, Mapping):
            raise _errors.WrongType(
                f"arrays is a {type(arrays).__name__}; want a dict from names to NumPy arrays"
            )
        if not arrays:
            raise _errors.InvalidSpec("arrays is empty; want a dict from names to NumPy arrays")
        for name, array in arrays.items():
            _check(name, array)
        self._arrays = dict(arrays)
        first, *others = self._arrays
        rows = len(self._arrays[first])
        for name in others:
            if len(self._arrays[name]) != rows:
                raise _errors.InvalidSpec(
                    f"array {name!r} has {len(self._arrays[name])} rows and {first!r} has {rows}; "
                    "want the same number, one for each example"
                )
        if rows == 0:
            raise _errors.InvalidSpec(f"array {first!r} has no rows; want one for each example")
        self._rows = _systole.ArrayRows(
            [(name, array.dtype.name, array) for name, array in self._arrays.items()],
            rows,
            len(os.sched_getaffinity(0)),
        )

    def __len__(self) -> int:
        """The number of examples."""
        return len(self._rows)

    def dataset(self, name: str, expect_records: int, expect_bytes: int) -> _systole.Dataset:
        """These arrays as the dataset `name`. Raises if the number of records or bytes is not the
        expected number. An expected number of 0 means any number."""
        for what, seen, wanted in (
            ("records", len(self), expect_records),
            ("bytes", self._rows.shard_bytes, expect_bytes),
        ):
            if wanted not in (0, seen):
                raise _errors.FailedPrecondition(
                    f"dataset {name!r}: its arrays have {seen} {what}, expect_{what} says {wanted}"
                )
        return self._rows.dataset(name)

    def write_shard(self, path: str) -> None:
        """Writes all examples as one shard."""
        self._rows.write_shard(path)

    def columns(self) -> list[str]:
        """The names of the arrays that a server can keep as columns. Arrays with one value a row
        come first."""
        names = [name for name in self._arrays if len(name.encode()) <= _MOST_COLUMN_NAME_BYTES]
        names.sort(key=lambda name: self._arrays[name][:1].size > 1)
        return names[:_MOST_COLUMNS]

    def check_outputs(self, outputs: list[dict[str, Any]]) -> None:
        """Raises if an output cannot be made of arrays, or lacks the shape of its array's rows.
        `outputs`: the outputs of a spec."""
        for output in outputs:
            if output["feature"] == "record":
                raise _errors.InvalidSpec(
                    f"output {output['name']!r}: the feature 'record' is the bytes of a record, "
                    f"and rows of arrays have none; want one of {', '.join(self._arrays)}"
                )
            array = self._arrays.get(output["feature"])
            if array is None or array.ndim < 2 or output["shape"] or output.get("padded"):
                continue
            transforms = output["transforms"]
            if array.dtype == np.uint8 and not (transforms and "decode_raw" in transforms[0]):
                # The array may hold encoded files. If not, the feed's error says what is missing.
                continue
            raise _errors.InvalidSpec(
                f"output {output['name']!r} takes rows of the array {output['feature']!r} and "
                f"needs their shape: shape={list(array.shape[1:])}"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return Arrays, (self._arrays,)

    def __repr__(self) -> str:
        arrays = ", ".join(
            f"{name} {array.dtype}{list(array.shape[1:])}" for name, array in self._arrays.items()
        )
        return f"<systole.Arrays of {len(self)} examples: {arrays}>"


@checks_names("from_arrays")
def from_arrays(arrays: Mapping[str, npt.NDArray[Any]]) -> Arrays:
    """NumPy arrays as a dataset, for systole.LocalFeed and systole.serve:

        data = systole.from_arrays({"image": images, "label": labels})
        feed = systole.LocalFeed(data, spec)

    arrays: by name; the first dimension counts the examples. Types: uint8, float32 and int64. Each
            row must lie in one piece of memory, as in an array that was not transposed

    A feed reads the arrays where they are, and copies each value once: into a batch. The feed keeps
    the arrays alive. Do not change the arrays while a feed or a server may read them. Changes are
    not detected.

    The examples are those that systole.write makes of the same rows: a row of uint8 with one
    dimension or more is bytes, which `decode_raw` reads. Order, draws, bytes and state of a feed
    are the same as with one shard of these examples. from_arrays reads all bytes once, to make the
    dataset's fingerprint. A feed refuses a state of arrays with other bytes.

    systole.serve writes the arrays into a temporary file, because its server is another process.
    When the server starts, it reads the file and makes the columns that a `where` may test. A
    pickled Arrays holds a copy of the arrays.
    """
    return Arrays(arrays)


def _check(name: object, array: object) -> None:
    """Raises if the array cannot be part of a dataset. The message says what to do."""
    if not isinstance(name, str) or not name:
        raise _errors.WrongType(f"arrays has the name {name!r}; want a str")
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise _errors.InvalidSpec(f"arrays has the name {name!r}: {error}") from None
    if not isinstance(array, np.ndarray):
        raise _errors.WrongType(
            f"array {name!r} is a {type(array).__name__}; want a NumPy array: np.asarray(..)"
        )
    if isinstance(array, np.ma.MaskedArray):
        raise _errors.WrongType(
            f"array {name!r} has a mask, which a dataset cannot keep; want a plain array, such as "
            "array.filled(0)"
        )
    if array.ndim == 0:
        raise _errors.InvalidSpec(
            f"array {name!r} has no dimension; the first dimension must count the examples"
        )
    if array.dtype.name not in _DTYPES:
        instead = _INSTEAD.get(array.dtype.kind)
        what = f': pass {name}.astype("{instead}")' if instead else ""
        raise _errors.WrongType(
            f"array {name!r} has the dtype {array.dtype}; want uint8, float32 or int64{what}"
        )
    if not array.dtype.isnative:
        raise _errors.InvalidSpec(
            f"array {name!r} has the bytes of its numbers in the other order: pass "
            f'{name}.astype("{array.dtype.name}")'
        )
    if not array[:1].flags.c_contiguous:
        raise _errors.InvalidSpec(
            f"the rows of array {name!r} do not lie in one piece: pass np.ascontiguousarray({name})"
        )
