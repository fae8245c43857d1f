"""The base of the classes of feed specs (_spec.py)."""

from __future__ import annotations

import base64
import inspect
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Union

import numpy as np
from systole import _errors, _systole
from systole._arguments import parameters_of, unknown_name


class _JaxDType(Protocol):
    @property
    def dtype(self) -> np.dtype[Any]: ...


class _TorchDType(Protocol):
    @property
    def is_floating_point(self) -> bool: ...


class _TensorFlowDType(Protocol):
    @property
    def as_numpy_dtype(self) -> Any: ...


# A dtype as array libraries have it: np.int32, np.dtype("int32"), jnp.bfloat16, torch.int32.
DType = Union[type[Any], "np.dtype[Any]", _JaxDType, _TorchDType, _TensorFlowDType]


class Message:
    """A part of a spec. `str()` gives a whole spec as textproto, and a part as JSON."""

    # Fields that are enums.
    _enums: frozenset[str] = frozenset()
    # Lists of numbers. One number may be given in place of a list.
    _lists: frozenset[str] = frozenset()
    # Lists of messages with a name. A dict, name -> message, may be given in place of a list.
    _named: frozenset[str] = frozenset()
    # Lists of messages that have a oneof. For each list: name of a class -> member of the oneof.
    # The list may hold an object of such a class directly, in place of a message with this member.
    _choices: Mapping[str, Mapping[str, str]] = {}
    # Fields that are messages or lists of messages -> the name of the messages' class.
    _messages: Mapping[str, str] = {}
    # Fields that are numbers.
    _numbers: frozenset[str] = frozenset()

    def __init__(self, **fields: Any) -> None:
        self._fields = {name: value for name, value in fields.items() if value is not None}

    if not TYPE_CHECKING:  # mypy knows the fields by their names.

        def __new__(cls, *args: Any, **fields: Any) -> Message:
            for name in fields:
                if name not in _fields_of(cls):
                    raise unknown_name(f"{cls.__name__}()", name, _fields_of(cls))
            by_position = _positional_fields_of(cls)
            if len(args) > len(by_position):
                known = ", ".join(by_position) or "none"
                raise _errors.WrongType(
                    f"{cls.__name__}() takes {len(by_position)} positional arguments ({known}), "
                    f"not {len(args)}: write {_fields_of(cls)[len(by_position)]}=.. and so on"
                )
            return super().__new__(cls)

        def __setattr__(self, name: str, value: Any) -> None:
            if name.startswith("_"):
                object.__setattr__(self, name, value)
                return
            if name not in _fields_of(type(self)):
                raise unknown_name(type(self).__name__, name, _fields_of(type(self)))
            fields = self._fields_with(name)
            fields.pop(name, None)
            if value is not None:
                fields[name] = value

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            if name not in _fields_of(type(self)):
                raise unknown_name(type(self).__name__, name, _fields_of(type(self)))
            return self._fields_with(name).get(name)

    def _fields_with(self, name: str) -> dict[str, Any]:
        """The dict that holds the field `name`."""
        return self._fields

    def to_dict(self) -> dict[str, Any]:
        """The message in protobuf's JSON mapping, with the fields' names as in feed.proto."""
        return self._json("")

    def _json(self, where: str) -> dict[str, Any]:
        """to_dict() for a message at the place `where` of a spec. Errors name this place."""
        return self._json_of(where, self._fields)

    def _json_of(self, where: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """_json() with `fields` instead of the message's own fields. This method does not check the
        names in `fields`. protobuf does so later: its JSON mapping accepts two spellings of a name,
        such as num_cores and numCores. In `fields`, a name that is a keyword of Python has a "_" at
        its end.
        """
        return {
            name: self._json_field(_at(where, name), name, value)
            for name, value in ((key.removesuffix("_"), value) for key, value in fields.items())
            if value is not None
        }

    def _json_field(self, where: str, name: str, value: Any) -> Any:
        value = _plain(value)
        if name in self._enums and isinstance(value, str):
            return value.upper()
        if name == "shuffle":
            value = _shuffle(value)
        if name in self._lists and (isinstance(value, str) or not isinstance(value, Iterable)):
            value = [value]
        if name in self._numbers:
            _check_numbers(where, value)
        if name not in self._messages:
            return _json_value(where, value)
        kind = self._messages[name]
        if name in self._named and isinstance(value, Mapping):
            return [
                {**_json_message(f"{where}[{key!r}]", one, kind), "name": key}
                for key, one in value.items()
            ]
        if name in self._choices and not isinstance(value, (str, Mapping)):
            choices = self._choices[name]
            value = [
                {choices[type(one).__name__]: one} if type(one).__name__ in choices else one
                for one in value
            ]
        return _json_messages(where, value, kind)

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
        # Fields that all operations have.
        self._shared_names: set[str] = set()
        self._beside: dict[str, Any] = {}

    def _shared(self, **fields: Any) -> None:
        self._shared_names |= fields.keys()
        self._beside.update({name: value for name, value in fields.items() if value is not None})

    def _fields_with(self, name: str) -> dict[str, Any]:
        return self._beside if name in self._shared_names else self._fields

    def _json(self, where: str) -> dict[str, Any]:
        beside = {
            name: _json_value(_at(where, name), value) for name, value in self._beside.items()
        }
        return {self._kind: super()._json(_at(where, self._kind)), **beside}


def _at(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _fields_of(kind: type[Message]) -> list[str]:
    return parameters_of(kind.__init__)


def _positional_fields_of(kind: type[Message]) -> list[str]:
    """The fields that may be given by position."""
    parameters = inspect.signature(kind.__init__).parameters
    by_position = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return [
        name
        for name, parameter in parameters.items()
        if parameter.kind == by_position and name != "self"
    ]


def _plain(value: Any) -> Any:
    """A NumPy number, or an array without dimensions, as a Python number. Other values are returned
    unchanged."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return value.item()
    return value


# What `shuffle` may be in place of a message: the name of a mode, or whether to shuffle.
ShuffleShorthand = str | bool


def _shuffle(value: Any) -> Any:
    """The fields of `shuffle` for a bool or a mode. Any other value is returned unchanged."""
    if isinstance(value, bool):
        return {"mode": "GLOBAL" if value else "NONE"}
    return {"mode": value.upper()} if isinstance(value, str) else value


def _check_numbers(where: str, value: Any) -> None:
    """Raises WrongType if a text is not a number. The error names the text's place. For a list,
    protobuf's own error would name the last element, even if another element is wrong.
    """
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            raise _errors.WrongType(f"{where} is {value!r}, want a number") from None
    elif isinstance(value, Iterable):
        for i, one in enumerate(value):
            _check_numbers(f"{where}[{i}]", one)


def _how_to_write(kind: str, value: Any) -> str:
    if kind != "Operation":
        return f"systole.{kind}(..), or a dict"
    from systole._spec import OPERATIONS

    if value in OPERATIONS:
        return f"systole.{OPERATIONS[value].__name__}(..)"
    known = ", ".join(operation.__name__ for operation in OPERATIONS.values())
    return f"an operation of systole's, such as RandomFlip(): {known}"


def _json_message(where: str, value: Any, kind: str) -> dict[str, Any]:
    """A message of the class `kind`, or a dict of its fields."""
    from systole import _spec

    if isinstance(value, Message):
        return value._json(where)
    if isinstance(value, Mapping) and kind == "Operation":
        return {key: _json_value(_at(where, key), one) for key, one in value.items()}
    if isinstance(value, Mapping):
        form: Message = getattr(_spec, kind)()
        return form._json_of(where, value)
    if callable(value):
        _json_value(where, value)  # Raises the error for this value.
    raise _errors.WrongType(f"{where} is {value!r}, want {_how_to_write(kind, value)}")


def _json_messages(where: str, value: Any, kind: str) -> Any:
    """One message of the class `kind`, or a list of them."""
    if isinstance(value, Iterable) and not isinstance(value, (str, Mapping)):
        return [_json_message(f"{where}[{i}]", one, kind) for i, one in enumerate(value)]
    return _json_message(where, value, kind)


def _json_value(where: str, value: Any) -> Any:
    """The value at `where` in a spec, in protobuf's JSON mapping."""
    value = _plain(value)
    if isinstance(value, Message):
        return value._json(where)
    if isinstance(value, Mapping):
        return {key: _json_value(_at(where, key), one) for key, one in value.items()}
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, type) and issubclass(value, Message):
        raise _errors.WrongType(
            f"{where} is the class {value.__name__}: write {value.__name__}(..)"
        )
    if (dtype := _dtype_name(value)) is not None:
        return dtype.upper()
    if isinstance(value, Iterable):
        return [_json_value(f"{where}[{i}]", one) for i, one in enumerate(value)]
    if isinstance(value, float):
        return value
    if hasattr(value, "__index__"):
        # An integer of Python or NumPy. In protobuf's JSON, 64-bit integers are strings.
        return str(value)
    if callable(value):
        raise _errors.WrongType(_no_functions(where, value))
    raise _errors.WrongType(f"{where} is a {type(value).__name__}, which a spec cannot hold")


def _dtype_name(value: Any) -> str | None:
    """The name of an array library's dtype; None if the value is no dtype."""
    kind = type(value)
    if (kind.__module__, kind.__name__) == ("torch", "dtype"):
        return str(value).rpartition(".")[2]
    if hasattr(value, "as_numpy_dtype"):
        value = value.as_numpy_dtype
    if not isinstance(value, (type, np.dtype)):
        return None
    dtype = np.dtype(value)
    return None if dtype.hasobject else dtype.name


def _no_functions(where: str, value: Any) -> str:
    from systole._spec import OPERATIONS

    name = getattr(value, "__name__", type(value).__name__)
    known = ", ".join(operation.__name__ for operation in OPERATIONS.values())
    return (
        f"{where} is a function of your own ({name}), which a feed cannot run: every server and "
        f"every later run must make the same bytes. Apply it to the batches that you get, or use "
        f"an operation (`systole ops` lists them): {known}"
    )


def image_operations(
    known: Mapping[str, type[Operation]], given: Mapping[str, Any]
) -> list[Operation]:
    """Image()'s keywords as operations, decode_jpeg first."""
    made: list[Operation] = []
    for name, value in given.items():
        kind = "random_flip" if name == "flip" else name
        if kind not in known:
            raise unknown_name("Image()", name, [*known, "flip"])
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
            # One number is used for all sizes of the operation, such as height and width.
            sizes = max(len(_positional_fields_of(known[kind])), 1)
            made.append(known[kind](*[value] * sizes))
    if not any(operation._kind.startswith("decode_") for operation in made):
        made.insert(0, known["decode_jpeg"]())
    return made


# What a feed takes as its spec: a path (textproto, or JSON if it is named .json), a dict in
# protobuf's JSON mapping, systole.FeedSpec, or protobuf's own message.
SpecLike = Union[str, "os.PathLike[str]", Mapping[str, Any], Message, Any]


def spec_bytes(spec: SpecLike) -> bytes:
    """The spec as a serialized FeedSpec."""
    if isinstance(spec, str) and ("\n" in spec or "{" in spec or ": " in spec):
        raise _errors.InvalidSpec(
            f"the spec is a text, {spec!r:.60}; want the path of a file that holds the spec, a "
            "dict, or systole.FeedSpec(..)"
        )
    if isinstance(spec, (str, os.PathLike)):
        return _systole.spec_from_file(os.fspath(spec))
    if isinstance(spec, Message):
        return _systole.spec_from_json(json.dumps(spec.to_dict()), "spec")
    if isinstance(spec, Mapping):
        return _systole.spec_from_json(json.dumps(_json_message("", spec, "FeedSpec")), "spec")
    if hasattr(spec, "SerializeToString"):
        serialized = spec.SerializeToString()
        assert isinstance(serialized, bytes)
        return serialized
    raise _errors.WrongType(
        f"spec is a {type(spec).__name__}; want a path, a dict, systole.FeedSpec or its message"
    )


def spec_fields(spec: bytes) -> dict[str, Any]:
    """All fields of a serialized spec in protobuf's JSON mapping, including default values."""
    fields = json.loads(_systole.spec_to_json(spec))
    assert isinstance(fields, dict)
    fields["num_cores"] = fields["num_cores"] or 1
    return fields
