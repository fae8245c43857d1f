"""Writes odd tf.train.Examples and what TensorFlow's parser makes of each.

usage: make_examples.py FILE    (with TensorFlow; README.md says which version)

Each record of FILE is a tf.train.Example:
  case           what is odd
  record         the serialised Example; the feature wanted of it is "x"
  kind           "float" or "int64": the feature's dtype
  single, batch  what tf.io.parse_single_example and tf.io.parse_example read; missing if they refuse
"""

import sys

import tensorflow as tf


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def part(number, content):
    """A field with a length: bytes, a message or packed values."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def number(field, value):
    return varint(field << 3) + varint(value)


def entry(name, feature):
    return part(1, part(1, name) + part(2, feature))


def example(*entries):
    return part(1, b"".join(entries))


UNKNOWN = {
    "a number": number(9, 5),
    "bytes": part(9, b"more"),
    "four bytes": varint(9 << 3 | 5) + b"more",
    "a group": varint(9 << 3 | 3) + number(1, 5) + varint(9 << 3 | 4),
}

ints = part(3, part(1, b"\x01\x02"))
more_ints = part(3, part(1, b"\x03"))
floats = part(2, part(1, b"\0\0\x80\x3f"))
text = part(1, part(1, b"one"))
good = example(entry(b"x", ints))

# (what is odd, the dtype wanted, the record)
CASES = [
    ("nothing", "int64", good),
    ("the record is empty", "int64", b""),
    ("there are no features", "int64", example()),
    ("the feature is missing", "int64", example(entry(b"y", ints))),
    ("features in two pieces", "int64", example(entry(b"y", text)) + good),
    ("a name twice", "int64", example(entry(b"x", ints), entry(b"x", more_ints))),
    ("a name twice, first of another kind", "int64", example(entry(b"x", text), entry(b"x", ints))),
    ("a name twice, last of another kind", "int64", example(entry(b"x", ints), entry(b"x", text))),
    ("a name twice, last without a list", "int64", example(entry(b"x", ints), entry(b"x", b""))),
    (
        "a name that is not UTF-8 beside it",
        "int64",
        example(entry(b"\xff\xfe", text), entry(b"x", ints)),
    ),
    ("an empty name beside it", "int64", example(entry(b"", text), entry(b"x", ints))),
    ("a feature without a list", "int64", example(entry(b"x", b""))),
    ("a list without values", "int64", example(entry(b"x", part(3, b"")))),
    ("packed values of no bytes", "int64", example(entry(b"x", part(3, part(1, b""))))),
    ("values not packed", "int64", example(entry(b"x", part(3, number(1, 1) + number(1, 2))))),
    (
        "values packed and not packed",
        "int64",
        example(entry(b"x", part(3, part(1, b"\x01") + number(1, 2)))),
    ),
    (
        "values packed twice",
        "int64",
        example(entry(b"x", part(3, part(1, b"\x01") + part(1, b"\x02")))),
    ),
    (
        "floats not packed",
        "float",
        example(entry(b"x", part(2, b"\x0d\0\0\x80\x3f\x0d\0\0\0\x40"))),
    ),
    (
        "floats packed and not packed",
        "float",
        example(entry(b"x", part(2, part(1, b"\0\0\x80\x3f") + b"\x0d\0\0\0\x40"))),
    ),
    ("a list in two pieces", "int64", example(entry(b"x", ints + more_ints))),
    ("lists of two kinds, the wanted one last", "int64", example(entry(b"x", text + ints))),
    ("lists of two kinds, the wanted one first", "int64", example(entry(b"x", ints + text))),
    (
        "the wanted kind before and after another",
        "int64",
        example(entry(b"x", ints + floats + more_ints)),
    ),
    ("the value before its name", "int64", example(part(1, part(2, ints) + part(1, b"x")))),
    ("a value without a name", "int64", example(part(1, part(2, ints)), entry(b"x", more_ints))),
    ("a name without a value", "int64", example(part(1, part(1, b"y")), entry(b"x", ints))),
    ("the wanted name without a value", "int64", example(part(1, part(1, b"x")))),
    ("an entry of no bytes", "int64", example(part(1, b""), entry(b"x", ints))),
    (
        "two names in an entry",
        "int64",
        example(part(1, part(1, b"y") + part(1, b"x") + part(2, ints))),
    ),
    (
        "two values in an entry",
        "int64",
        example(part(1, part(1, b"x") + part(2, ints) + part(2, more_ints))),
    ),
    (
        "a length in more bytes than it needs",
        "int64",
        example(b"\x0a" + b"\x8c\x80\x00" + entry(b"x", part(3, b"\x0a\x82\x00\x01\x02"))[2:]),
    ),
    ("a tag in more bytes than it needs", "int64", b"\x8a\x00" + good[1:]),
    ("a value of ten bytes", "int64", example(entry(b"x", part(3, part(1, varint(2**64 - 1)))))),
    (
        "a value of ten bytes with bits to spare",
        "int64",
        example(entry(b"x", part(3, part(1, b"\xff" * 9 + b"\x7f")))),
    ),
    (
        "a value of eleven bytes",
        "int64",
        example(entry(b"x", part(3, part(1, b"\xff" * 10 + b"\x01")))),
    ),
    (
        "packed values that end within one",
        "int64",
        example(entry(b"x", part(3, part(1, b"\x01\x82")))),
    ),
    (
        "packed floats that end within one",
        "float",
        example(entry(b"x", part(2, part(1, b"\0\0\x80\x3f\0\0")))),
    ),
    ("a record that ends early", "int64", good[:-1]),
    (
        "a feature beside it that is cut",
        "int64",
        example(part(1, part(1, b"y") + part(2, b"\x0a\x7f")), entry(b"x", ints)),
    ),
    (
        "a feature beside it with an odd value",
        "int64",
        example(entry(b"y", part(3, part(1, b"\x82"))), entry(b"x", ints)),
    ),
    ("field number 0", "int64", good + number(0, 1)),
    ("an end of a group that did not begin", "int64", good + varint(9 << 3 | 4)),
]
for what, unknown in UNKNOWN.items():
    CASES += [
        (f"an unknown field, {what}, in the Example", "int64", unknown + good),
        (
            f"an unknown field, {what}, in the Features",
            "int64",
            example(unknown, entry(b"x", ints)),
        ),
        (
            f"an unknown field, {what}, in an entry before the name",
            "int64",
            example(part(1, unknown + part(1, b"x") + part(2, ints))),
        ),
        (
            f"an unknown field, {what}, in an entry after the value",
            "int64",
            example(part(1, part(1, b"x") + part(2, ints) + unknown)),
        ),
        (
            f"an unknown field, {what}, in a Feature before the list",
            "int64",
            example(entry(b"x", unknown + ints)),
        ),
        (
            f"an unknown field, {what}, in a Feature after the list",
            "int64",
            example(entry(b"x", ints + unknown)),
        ),
        (
            f"an unknown field, {what}, in a list before the values",
            "int64",
            example(entry(b"x", part(3, unknown + part(1, b"\x01\x02")))),
        ),
        (
            f"an unknown field, {what}, in a list after the values",
            "int64",
            example(entry(b"x", part(3, part(1, b"\x01\x02") + unknown))),
        ),
    ]

DTYPES = {"float": tf.float32, "int64": tf.int64}


def feature(value, kind):
    if kind == "bytes":
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=value))
    if kind == "float":
        return tf.train.Feature(float_list=tf.train.FloatList(value=value))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=value))


def parsed(record, kind):
    """What each of TensorFlow's two parsers reads as "x": those that refuse the record are left out."""
    spec = {"x": tf.io.VarLenFeature(DTYPES[kind])}
    parsers = {
        "single": lambda: tf.io.parse_single_example(record, spec),
        "batch": lambda: tf.io.parse_example([record], spec),
    }
    read = {}
    for name, parse in parsers.items():
        try:
            read[name] = parse()["x"].values.numpy().tolist()
        except tf.errors.InvalidArgumentError:
            pass
    return read


with tf.io.TFRecordWriter(sys.argv[1]) as writer:
    for what, kind, record in CASES:
        read = parsed(record, kind)
        features = {
            "case": feature([what.encode()], "bytes"),
            "record": feature([record], "bytes"),
            "kind": feature([kind.encode()], "bytes"),
        }
        features.update((name, feature(values, kind)) for name, values in read.items())
        print(f"{what:65} {read.get('single', 'refused')} {read.get('batch', 'refused')}")
        written = tf.train.Example(features=tf.train.Features(feature=features))
        writer.write(written.SerializeToString(deterministic=True))
