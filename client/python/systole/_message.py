"""What the classes of feed specs (_spec.py) have in common."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Union

from systole import _systole


class Message:
    """A part of a spec. `str()` gives it as textproto or, if it is no whole spec, as JSON."""

    # Fields that are enums, and lists of numbers that may be given as one number.
    _enums: frozenset[str] = frozenset()
    _lists: frozenset[str] = frozenset()

    def __init__(self, **fields: Any) -> None:
        self._fields = {name: value for name, value in fields.items() if value is not None}

    def to_dict(self) -> dict[str, Any]:
        """The message in protobuf's JSON mapping, with the fields' names as in feed.proto."""
        return {name: self._json(name, value) for name, value in self._fields.items()}

    def _json(self, name: str, value: Any) -> Any:
        if name in self._enums and isinstance(value, str):
            return value.upper()
        if name in self._lists and not isinstance(value, Iterable):
            value = [value]
        return _json_value(name, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_dict(), sort_keys=True))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self._fields.items())
        return f"{type(self).__name__}({fields})"

    def __str__(self) -> str:
        if type(self).__name__ == "FeedSpec":
            return _systole.spec_to_text(spec_bytes(self))
        return json.dumps(self.to_dict(), indent=2)


class Operation(Message):
    """One of an output's transforms."""

    _kind = ""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self._beside: dict[str, Any] = {}

    def _shared(self, **fields: Any) -> None:
        self._beside.update({name: value for name, value in fields.items() if value is not None})

    def to_dict(self) -> dict[str, Any]:
        beside = {name: _json_value(name, value) for name, value in self._beside.items()}
        return {self._kind: super().to_dict(), **beside}


def _json_value(name: str, value: Any) -> Any:
    if isinstance(value, Message):
        return value.to_dict()
    if isinstance(value, Mapping):
        # Messages by name.
        named = []
        for key, message in value.items():
            if not isinstance(message, Message):
                raise TypeError(f"{name}[{key!r}] is a {type(message).__name__}, want a message")
            named.append({**message.to_dict(), "name": key})
        return named
    if isinstance(value, (str, bool)):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Iterable):
        return [_json_value(name, one) for one in value]
    if isinstance(value, float):
        return float(value)  # NumPy's too.
    # 64-bit integers are strings in protobuf's JSON; so is whatever NumPy counts with.
    return str(value) if hasattr(value, "__index__") else value


def image_operations(
    known: Mapping[str, Callable[..., Operation]], given: Mapping[str, Any]
) -> list[Operation]:
    """Image()'s keywords as operations, decode_jpeg first."""
    made: list[Operation] = []
    for name, value in given.items():
        kind = "random_flip" if name == "flip" else name
        if kind not in known:
            raise TypeError(f"Image() knows no operation {name!r}; it knows {', '.join(known)}")
        if value is None or value is False:
            continue
        if isinstance(value, Operation):
            made.append(value)
        elif value is True:
            made.append(known[kind]())
        elif isinstance(value, Mapping):
            made.append(known[kind](**value))
        elif isinstance(value, Sequence) and not isinstance(value, str):
            made.append(known[kind](*value))
        else:
            made.append(known[kind](value))
    if not any(operation._kind.startswith("decode_") for operation in made):
        made.insert(0, known["decode_jpeg"]())
    return made


# What a feed takes as its spec: a path (textproto, or JSON if it is named .json), a dict in
# protobuf's JSON mapping, systole.FeedSpec, or protobuf's own message.
SpecLike = Union[str, "os.PathLike[str]", Mapping[str, Any], Message, Any]


def spec_bytes(spec: SpecLike) -> bytes:
    """The spec, serialized."""
    if isinstance(spec, (str, os.PathLike)):
        return _systole.spec_from_file(os.fspath(spec))
    if isinstance(spec, Message):
        return _systole.spec_from_json(json.dumps(spec.to_dict()), "spec")
    if isinstance(spec, Mapping):
        return _systole.spec_from_json(json.dumps(spec), "spec")
    if hasattr(spec, "SerializeToString"):
        serialized = spec.SerializeToString()
        assert isinstance(serialized, bytes)
        return serialized
    raise TypeError(
        f"spec is a {type(spec).__name__}; want a path, a dict, systole.FeedSpec or the message"
    )


def spec_fields(spec: bytes) -> dict[str, Any]:
    """A serialized spec's fields in protobuf's JSON mapping, those at their defaults included."""
    fields = json.loads(_systole.spec_to_json(spec))
    assert isinstance(fields, dict)
    return fields
