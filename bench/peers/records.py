"""Where the images lie inside the TFRecord shards.

Peers that read records by number use this. It understands only the framing and two features, image
and label. It does not check checksums, which is in the peer's favour.
"""

import struct


def _fields(data, begin, end):
    """Yields (field number, value) of a protobuf message. The value is a number, or the range
    (begin, end) of its bytes."""
    while begin < end:
        key, begin = _varint(data, begin)
        if key & 7 == 0:
            value, begin = _varint(data, begin)
            yield key >> 3, value
        elif key & 7 == 2:
            length, begin = _varint(data, begin)
            yield key >> 3, (begin, begin + length)
            begin += length
        else:
            raise ValueError(f"a tf.train.Example has no field of wire type {key & 7}")


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def _only(data, span, number):
    """The field `number` of the message at `span`."""
    return next(value for field, value in _fields(data, *span) if field == number)


def _features(data, begin, end):
    """Yields (name, span of the Feature). Example.features and Features.feature both have field
    number 1."""
    for _, entry in _fields(data, *_only(data, (begin, end), 1)):
        name = _only(data, entry, 1)
        yield data[name[0]:name[1]].decode(), _only(data, entry, 2)


def images(path):
    """Yields (offset, bytes, label) of each record's image in the shard `path`."""
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        features = dict(_features(data, at + 12, at + 12 + length))
        # Field numbers: Feature.bytes_list = 1, Feature.int64_list = 3, *List.value = 1.
        begin, end = _only(data, _only(data, features["image"], 1), 1)
        label = _only(data, _only(data, features["label"], 3), 1)
        if isinstance(label, tuple):  # Packed.
            label = _varint(data, label[0])[0]
        yield begin, end - begin, label
        at += 12 + length + 4
