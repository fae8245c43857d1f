"""Makes systole/_spec.py, the classes for feed specs, from the messages of feed.proto and their
comments. A new message, field or operation needs no change in this file.

usage: generate_spec.py DESCRIPTORS OUT    (DESCRIPTORS: protoc --include_source_info)
"""

import keyword
import re
import sys
import textwrap

from google.protobuf import descriptor_pb2

FIELD = descriptor_pb2.FieldDescriptorProto
INTEGERS = {FIELD.TYPE_INT32, FIELD.TYPE_INT64, FIELD.TYPE_UINT32, FIELD.TYPE_UINT64}
FLOATS = {FIELD.TYPE_FLOAT, FIELD.TYPE_DOUBLE}
# OPERATION is the message whose oneof lists the operations. OUTPUT has a list of operations.
OPERATION = "Transform"
OUTPUT = "Output"
# In an earlier release this message had only three fields. Its class still takes these three by
# position.
MEMBER = "Member"

HEADER = '''"""Feed specs as typed Python.

generate_spec.py makes this file from feed.proto: edit feed.proto.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict

from systole._message import DType, Message, Operation, ShuffleShorthand

if TYPE_CHECKING:
    from typing_extensions import Unpack
'''


class File:
    """feed.proto: its messages, enums and their comments."""

    def __init__(self, file):
        self.messages = {}  # Short name -> (descriptor, path in the file).
        self.enums = {}
        for i, enum in enumerate(file.enum_type):
            self.enums[enum.name] = (enum, (5, i))
        for i, message in enumerate(file.message_type):
            self._add(message, (4, i))
        self._comments = {
            tuple(place.path): place.leading_comments for place in file.source_code_info.location
        }

    def _add(self, message, path):
        self.messages[message.name] = (message, path)
        for i, enum in enumerate(message.enum_type):
            self.enums[enum.name] = (enum, (*path, 4, i))
        for i, inner in enumerate(message.nested_type):
            self._add(inner, (*path, 3, i))

    def comment(self, path):
        text = self._comments.get(tuple(path), "")
        return re.sub(r"(?m)^ ", "", text).strip().replace("\\", "\\\\")

    def operations(self):
        message, path = self.messages[OPERATION]
        return [
            (field.name, short(field.type_name))
            for field in message.field
            if field.HasField("oneof_index")
        ]

    def shared_fields(self):
        """The fields that every operation has, such as `key`."""
        message, path = self.messages[OPERATION]
        return [
            (field, (*path, 2, i))
            for i, field in enumerate(message.field)
            if not field.HasField("oneof_index")
        ]


def short(type_name):
    return type_name.rsplit(".", 1)[-1]


def in_python(name):
    """The field's name in Python. A keyword gets a '_' at its end: `in` becomes in_."""
    return f"{name}_" if keyword.iskeyword(name) else name


def is_named(file, field):
    """Whether the field is a list of messages that have a field `name`."""
    if field.label != FIELD.LABEL_REPEATED or field.type != FIELD.TYPE_MESSAGE:
        return False
    message, _ = file.messages[short(field.type_name)]
    return "name" in [inner.name for inner in message.field]


def choices(file, field):
    """For a list of messages that have nothing but a oneof, returns class name -> field name for
    each message in the oneof. For other fields, and for operations, returns an empty dict."""
    if field.label != FIELD.LABEL_REPEATED or field.type != FIELD.TYPE_MESSAGE:
        return {}
    message, _ = file.messages[short(field.type_name)]
    if message.name == OPERATION or not all(f.HasField("oneof_index") for f in message.field):
        return {}
    return {short(f.type_name): f.name for f in message.field if f.type == FIELD.TYPE_MESSAGE}


def annotation(file, field):
    if field.type == FIELD.TYPE_MESSAGE:
        name = short(field.type_name)
        if name == OPERATION:
            name = "Operation"
        shorthand = ["ShuffleShorthand"] if name == "Shuffle" else []
        name = " | ".join([name, *choices(file, field), "Mapping[str, object]", *shorthand])
        if is_named(file, field):
            return f"Mapping[str, {name}] | Sequence[{name}]"
    elif field.type == FIELD.TYPE_ENUM:
        name = short(field.type_name) + "Name"
        if name == "DataTypeName":
            name += " | DType"
    elif field.type in INTEGERS:
        name = "int"
    elif field.type in FLOATS:
        name = "float"
    elif field.type == FIELD.TYPE_BOOL:
        name = "bool"
    elif field.type == FIELD.TYPE_BYTES:
        name = "builtins.bytes"  # A field may be called `bytes`.
    else:
        name = "str"
    if field.label == FIELD.LABEL_REPEATED:
        return f"{name} | Sequence[{name}]" if name in ("int", "float") else f"Sequence[{name}]"
    return name


def wrap(text, indent):
    lines = []
    for line in text.splitlines():
        lines.append((" " * indent + line).rstrip())
    return "\n".join(lines)


def docstring(text, fields, indent):
    parts = [text] if text else []
    if fields:
        parts.append(
            "\n".join(
                f"{name}:\n{textwrap.indent(about or '(see above)', '    ')}"
                for name, about in fields
            )
        )
    body = wrap("\n\n".join(parts), indent)
    return f'{" " * indent}"""{body.strip()}\n{" " * indent}"""\n'


def write_enum(file, name, out):
    enum, path = file.enums[name]
    names = [value.name for value in enum.value if not value.name.endswith("_UNSPECIFIED")]
    literals = ", ".join(f'"{n}"' for n in [*names, *[n.lower() for n in names]])
    about = file.comment(path)
    comment = "".join(f"# {line}".rstrip() + "\n" for line in about.splitlines())
    out.append(f"\n{comment}{name}Name = Literal[{literals}]\n")


def num_positional(message, is_operation):
    """Returns how many of a message's first fields may be given by position:

    output: the feature
    operation: its sizes, which come before its other fields
    Member: three
    another message with at most three fields: all
    another message: none, because the order of more fields would be hard to remember
    """
    if message.name == OUTPUT:
        return 1
    if message.name == MEMBER:
        return 3
    if not is_operation:
        return len(message.field) if len(message.field) < 4 else 0
    others = (
        i
        for i, field in enumerate(message.field)
        if field.type not in INTEGERS or field.label == FIELD.LABEL_REPEATED
    )
    return next(others, len(message.field))


def in_order(message):
    """Returns (place in the message, field) for each field, in the order in which the message's
    class takes the fields. An output's feature comes first, because only the feature may be given
    by position.
    """
    fields = list(enumerate(message.field))
    if message.name == OUTPUT:
        fields.sort(key=lambda place: place[1].name != "feature")
    return fields


def write_message(file, name, out):
    message, path = file.messages[name]
    is_operation = name in dict((b, a) for a, b in file.operations())
    fields = [(field, (*path, 2, i)) for i, field in in_order(message)]
    shared = file.shared_fields() if is_operation else []
    base = "Operation" if is_operation else "Message"
    out.append(f"\n\nclass {name}({base}):\n")
    about = [(in_python(field.name), file.comment(p)) for field, p in [*fields, *shared]]
    out.append(docstring(file.comment(path), about, 4))
    if is_operation:
        kind = next(a for a, b in file.operations() if b == name)
        out.append(f'\n    _kind = "{kind}"\n')
    enums = [f.name for f, _ in fields if f.type == FIELD.TYPE_ENUM]
    lists = [f.name for f, _ in fields if annotation(file, f).startswith(("int |", "float |"))]
    messages = {
        f.name: "Operation" if short(f.type_name) == OPERATION else short(f.type_name)
        for f, _ in fields
        if f.type == FIELD.TYPE_MESSAGE
    }
    numbers = [f.name for f, _ in fields if f.type in INTEGERS | FLOATS]
    if messages:
        out.append(f"\n    _messages = {messages}\n")
    if numbers:
        out.append(f"\n    _numbers = frozenset({numbers})\n")
    if enums:
        out.append(f"\n    _enums = frozenset({enums})\n")
    if lists:
        out.append(f"\n    _lists = frozenset({lists})\n")
    if named := [f.name for f, _ in fields if is_named(file, f)]:
        out.append(f"\n    _named = frozenset({named})\n")
    if chosen := {f.name: choices(file, f) for f, _ in fields if choices(file, f)}:
        out.append(f"\n    _choices = {chosen}\n")
    out.append("\n")
    for field, _ in [*fields, *shared]:
        out.append(f"    {in_python(field.name)}: {annotation(file, field)} | None\n")
    signature = ["self"]
    by_position = num_positional(message, is_operation)
    for i, (field, _) in enumerate([*fields, *shared]):
        if i == by_position:
            signature.append("*")
        signature.append(f"{in_python(field.name)}: {annotation(file, field)} | None = None")
    out.append(
        "\n    def __init__(\n        " + ",\n        ".join(signature) + ",\n    ) -> None:\n"
    )
    names = [in_python(field.name) for field, _ in fields]
    given = ", ".join(f"{n}={n}" for n in names)
    out.append(f"        super().__init__({given})\n")
    for field, _ in shared:
        out.append(f"        self._shared({field.name}={field.name})\n")


def write_image(file, out):
    out.append("\n\nclass ImageOperations(TypedDict, total=False):\n")
    out.append('    """The operations of Image(), by name."""\n\n')
    for kind, name in file.operations():
        message, _ = file.messages[name]
        sizes = "int | Sequence[int] | " if num_positional(message, is_operation=True) else ""
        out.append(f"    {kind}: bool | Mapping[str, object] | {sizes}{name}\n")
    out.append("    flip: bool\n")
    message, path = file.messages[OUTPUT]
    names = {field.name: field for field in message.field}
    out.append(
        f'''

def Image(
    feature: str,
    *,
    dtype: {annotation(file, names["dtype"])} | None = None,
    layout: {annotation(file, names["layout"])} | None = None,
    cache: {annotation(file, names["cache"])} | None = None,
    transforms: Sequence[Operation] = (),
    **operations: Unpack[ImageOperations],
) -> Output:
    """An output that is decoded from a JPEG in `feature`.

    If no decode is written, decode_jpeg is applied first. The operations are applied in the order
    in which they are written, and then `transforms`. The value of an operation is True (its
    defaults), a tuple of its sizes, one number (a square), a dict of its fields, or an instance of
    its class:

        Image("image/encoded", random_resized_crop=(224, 224), flip=True,
              normalize={{"scale": 1 / 255, "mean": [0.485], "stddev": [0.229]}}, dtype="bfloat16")

    `flip` is another name for random_flip.
    """
    return Output(
        feature=feature,
        transforms=[*image_operations(OPERATIONS, operations), *transforms],
        dtype=dtype,
        layout=layout,
        cache=cache,
    )
'''
    )


def main(argv):
    descriptors = descriptor_pb2.FileDescriptorSet.FromString(open(argv[1], "rb").read())
    file = File(descriptors.file[-1])
    out = [HEADER.replace("ShuffleShorthand\n", "ShuffleShorthand, image_operations\n", 1)]
    for name in file.enums:
        write_enum(file, name, out)
    for name in file.messages:
        if name != OPERATION:
            write_message(file, name, out)
    rows = "".join(f'    "{kind}": {name},\n' for kind, name in file.operations())
    out.append(f"\n\nOPERATIONS: dict[str, type[Operation]] = {{\n{rows}}}\n")
    write_image(file, out)
    names = [*(n for n in file.messages if n != OPERATION), "Image", "Operation"]
    out.append("\n\n__all__ = [\n" + "".join(f'    "{n}",\n' for n in sorted(names)) + "]\n")
    with open(argv[2], "w", encoding="utf-8") as to:
        to.write("".join(out))


if __name__ == "__main__":
    main(sys.argv)
