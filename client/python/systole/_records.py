"""Writes examples into shards, and reads records back."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from systole import _errors, _systole
from systole._arguments import checks_names, folder, path, whole_number

Number = TypeVar("Number", np.int64, np.float32)

# What one example holds by name: arrays, numbers, bytes, texts, lists of these, and dicts.
Example = Mapping[str, Any]
# What systole.read gives for an example.
ReadExample = dict[str, npt.NDArray[np.int64] | npt.NDArray[np.float32] | list[bytes]]

_WANT = "want an array of numbers or texts, a number, bytes, a str, or a list or dict of these"
_LARGEST = np.iinfo(np.int64).max
_BYTES = (bytes, bytearray, memoryview)


@dataclass(frozen=True)
class Written:
    """What systole.write has written."""

    records: int
    """The number of examples."""
    bytes: int
    """The size of all shards together."""
    shards: list[str]
    """The paths of the shards."""
    manifest: str
    """The path of the file that says how many records and bytes each shard has."""


@checks_names("write")
def write(
    prefix: str | os.PathLike[str],
    examples: Iterable[Example],
    *,
    shards: int = 1,
    compression: str = "none",
    threads: int | None = None,
) -> Written:
    """Writes examples as TFRecord shards of tf.train.Example, with the same bytes as TensorFlow:

        systole.write("data/train", ({"image": x, "label": y} for x, y in pairs), shards=16)

    prefix:      the beginning of the shards' paths, in a folder or in a bucket (s3://BUCKET/PREFIX
                 or gs://). The shards are PREFIX-00000-of-00016.tfrecord and so on;
                 PREFIX.manifest lists them
    examples:    dicts, from a list, a generator, .. Example i goes to shard i % shards, so the
                 same examples give the same bytes
    shards:      the number of shards, at most the number of examples. All shards are written at the
                 same time. In a bucket, each shard takes up to 40 MiB of memory, and there may be
                 at most 100 shards
    compression: "zstd", "gzip", "zlib" or "none", for each shard as a whole
    threads:     threads that compress and write; default: one for each CPU

    | a value                                      | becomes a list of                           |
    |----------------------------------------------|---------------------------------------------|
    | bytes, str (as UTF-8)                        | bytes: one value                            |
    | array of uint8 with 1 dimension or more      | bytes: one value, the array's bytes, which  |
    |                                              | `decode_raw` reads                          |
    | int, bool, array of other integers or bools  | int64                                       |
    | float, array of floats                       | float32                                     |
    | array of texts                               | bytes: one value for each text              |
    | list or tuple of numbers or of texts         | int64, float32 or bytes: one value an item  |
    | dict                                         | features with the names "name/key"          |

    An array becomes a flat list. Give its shape in the spec, by `shape`. Floats are rounded to
    float32.

    The shards get their names only after all examples are written. If a value cannot be written, or
    `examples` raises, no shard is left. Earlier shards with the same prefix are replaced if their
    number is the same. If their number is another, raises systole.Error.
    """
    where = path("prefix", prefix)
    if not where or where.endswith("/"):
        raise _errors.InvalidSpec("prefix names only a folder; want a name after it: out/train")
    writer = _systole.ExampleWriter(
        where,
        whole_number("shards", shards),
        str(compression),
        len(os.sched_getaffinity(0)) if threads is None else whole_number("threads", threads),
    )
    try:
        number = 0
        for number, example in enumerate(examples, 1):
            writer.add(_features(number - 1, example))
        written, manifest = writer.finish()
    except BaseException:
        writer.abandon()
        raise
    return Written(
        records=number,
        bytes=sum(size for _, _, size in written),
        shards=[name for name, _, _ in written],
        manifest=manifest,
    )


@checks_names("read")
def read(
    shards: str | os.PathLike[str] | Sequence[str],
    *,
    compression: str = "detect",
    index_dir: str | os.PathLike[str] = "",
) -> Iterator[ReadExample]:
    """Iterates over the records of shards, in the order of shards and records:

        for example in systole.read("data/train-*.tfrecord"):
            example["label"]  # array([3])

    shards:      a glob, a folder, or a list of them, in any store and format that a feed reads
    compression: "gzip", "zlib", "zstd" or "none"; default: detected from each shard
    index_dir:   folder for the shards' indexes; default: beside each shard

    Each example is a dict. An int64 feature is an array of int64, and a float feature an array of
    float32; each has one dimension. A bytes feature is a list of bytes. Each shard is opened
    when the loop comes to it, and in the same way as for a feed. A damaged record raises
    systole.DataLoss.
    """
    names = [shards] if isinstance(shards, (str, os.PathLike)) else shards
    try:
        patterns = [path("shards", one) for one in names]
    except TypeError:
        raise _errors.WrongType(
            f"shards is {shards!r}; want a glob, a folder, or a list of them"
        ) from None
    walk = _systole.RecordWalk(patterns, str(compression), folder("index_dir", index_dir))
    return _examples(walk)


def _examples(walk: _systole.RecordWalk) -> Iterator[ReadExample]:
    while (block := walk.next_block()) is not None:
        for features in block:
            example: ReadExample = {}
            for name, kind, values in features:
                if kind == "missing":
                    example.pop(name, None)
                elif kind == "bytes":
                    example[name] = values
                elif kind == "int64":
                    example[name] = _numbers(values, np.int64)
                else:
                    example[name] = _numbers(values, np.float32)
            yield example


def _numbers(values: bytearray, dtype: type[Number]) -> npt.NDArray[Number]:
    # Releases of NumPy differ in what np.frombuffer() does with empty bytes.
    return np.frombuffer(values, dtype) if values else np.empty(0, dtype)


# The name of a feature, its kind, and its values.
_Feature = tuple[bytes, str, Any]


def _features(number: int, example: Example) -> list[_Feature]:
    """The features of example number `number`. Errors name the number and the key."""
    if not isinstance(example, Mapping):
        raise _errors.WrongType(
            f"example {number} is a {type(example).__name__}; want a dict from names to values"
        )
    features: list[_Feature] = []
    names: set[bytes] = set()
    for key, value in example.items():
        _add(features, names, number, key, value)
    return features


def _add(
    features: list[_Feature], names: set[bytes], number: int, key: object, value: object
) -> None:
    if not isinstance(key, str):
        raise _errors.WrongType(f"example {number} has the key {key!r}; want a str")
    if isinstance(value, Mapping):
        for inner, one in value.items():
            if not isinstance(inner, str):
                raise _errors.WrongType(
                    f"example {number}, key {key!r}: has the key {inner!r}; want a str"
                )
            _add(features, names, number, f"{key}/{inner}", one)
        return
    try:
        name = key.encode()
        kind, values = _values(value)
    except _Unfit as unfit:
        raise _errors.WrongType(f"example {number}, key {key!r}: {unfit}") from None
    except UnicodeEncodeError as error:
        raise _errors.InvalidSpec(f"example {number}, key {key!r}: {error}") from None
    if name in names:
        raise _errors.InvalidSpec(
            f"example {number}: there are two features {key!r}, one of them from a dict"
        )
    names.add(name)
    features.append((name, kind, values))


class _Unfit(Exception):
    """A value that no feature can hold. The text says why."""


def _values(value: object) -> tuple[str, Any]:
    """The kind of the feature that holds `value`, and its values as the extension takes them."""
    if isinstance(value, _BYTES):
        return "bytes", bytes(value)
    if isinstance(value, str):
        return "bytes", value.encode()
    if isinstance(value, (list, tuple)):
        return _list_values(value)
    if isinstance(value, (int, float, np.ndarray, np.generic)) or hasattr(value, "__array__"):
        return _array_values(np.asarray(value))
    raise _Unfit(f"a value of type {type(value).__name__} has no feature kind; {_WANT}")


def _list_values(value: Sequence[Any]) -> tuple[str, Any]:
    if not value:
        raise _Unfit(
            "an empty list has no kind; want an array with a dtype, np.array([], np.int64)"
        )
    if any(isinstance(item, (str, *_BYTES)) for item in value):
        return "bytes", [_text(item) for item in value]
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:  # A list of lists of different lengths.
        raise _Unfit(f"the list is not an array of numbers ({error}); {_WANT}") from None
    if array.dtype == np.uint8:  # A list of np.uint8 is a list of numbers, not of bytes.
        array = array.astype(np.int64)
    return _array_values(array)


def _text(item: object) -> bytes:
    if isinstance(item, str):
        return item.encode()
    if isinstance(item, _BYTES):
        return bytes(item)
    raise _Unfit(f"a list of texts has a value of type {type(item).__name__}")


def _array_values(array: npt.NDArray[Any]) -> tuple[str, Any]:
    kind = array.dtype.kind
    if array.dtype == np.uint8 and array.ndim > 0:
        return "bytes", np.ascontiguousarray(array)
    if kind in "iub":
        if array.dtype == np.uint64 and array.size and array.max() > _LARGEST:
            raise _Unfit(f"the number {array.max()} is too large for int64")
        return "int64", np.ascontiguousarray(array, np.int64)
    if kind == "f" or array.dtype.name == "bfloat16":
        with np.errstate(over="ignore"):
            floats = np.ascontiguousarray(array, np.float32)
        if kind == "f" and array.itemsize > 4 and (np.isinf(floats) & ~np.isinf(array)).any():
            raise _Unfit("a number is too large for float32")
        return "float", floats
    if kind in "SU":
        return "bytes", [_text(item) for item in array.ravel().tolist()]
    if kind == "O" and array.ndim > 0:
        items = array.ravel().tolist()
        if items and all(isinstance(item, (str, *_BYTES)) for item in items):
            return "bytes", [_text(item) for item in items]
    if kind == "O" and array.ndim == 0 and isinstance(array.item(), int):
        raise _Unfit(f"the number {array.item()} is too large for int64")
    raise _Unfit(f"an array of {array.dtype} has no feature kind; {_WANT}")
