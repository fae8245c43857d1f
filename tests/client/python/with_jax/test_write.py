"""systole.write makes the bytes that TensorFlow makes, and systole.read reads them back."""

from __future__ import annotations

import glob
import json
import os
import signal
import struct
import threading
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import systole
from conftest import ROOT, python
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_CRC_TABLE = []
for _byte in range(256):
    _crc = _byte
    for _ in range(8):
        _crc = _crc >> 1 ^ (0x82F63B78 if _crc & 1 else 0)
    _CRC_TABLE.append(_crc)


def masked_crc(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC_TABLE[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def framed(record: bytes) -> bytes:
    """A record as TFRecordWriter writes it."""
    length = struct.pack("<Q", len(record))
    crcs = [struct.pack("<I", masked_crc(part)) for part in (length, record)]
    return length + crcs[0] + record + crcs[1]


def example_class():
    """The class of tf.train.Example, made with Google's protobuf package."""
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="t", syntax="proto3")
    kinds = {"BytesList": 12, "FloatList": 2, "Int64List": 3}
    for name, kind in kinds.items():
        file.message_type.add(name=name).field.add(name="value", number=1, label=3, type=kind)
    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, (name, field) in enumerate(
        zip(kinds, ("bytes_list", "float_list", "int64_list"), strict=True), 1
    ):
        feature.field.add(
            name=field, number=number, label=1, type=11, type_name=f".t.{name}", oneof_index=0
        )
    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=1, type=9)
    entry.field.add(name="value", number=2, label=1, type=11, type_name=".t.Feature")
    features.field.add(
        name="feature", number=1, label=3, type=11, type_name=".t.Features.FeatureEntry"
    )
    file.message_type.add(name="Example").field.add(
        name="features", number=1, label=1, type=11, type_name=".t.Features"
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Example"))


Example = example_class()


def records_in(path: str) -> list[bytes]:
    data = Path(path).read_bytes()
    records = []
    while data:
        (length,) = struct.unpack_from("<Q", data)
        records.append(data[12 : 12 + length])
        assert framed(records[-1]) == data[: 16 + length]
        data = data[16 + length :]
    return records


def test_the_test_helper_frames_records_as_tensorflow_does():
    # tests/golden/tensorflow/make_framing.py wrote these payloads.
    payloads = [
        bytes(i * (record + 3) // 40 % 17 + 60 for i in range(record * 37 % 4000))
        for record in range(20)
    ]
    golden = ROOT / "tests/golden/tensorflow/framing-none.tfrecord"
    assert b"".join(map(framed, payloads)) == golden.read_bytes()


def one_record(folder: Path, example) -> bytes:
    return records_in(systole.write(folder / "one", [example]).shards[0])[0]


def test_a_record_is_the_one_written_by_hand(tmp_path):
    record = one_record(tmp_path, {"n": [1, 300], "b": b"xy", "f": np.float32(1)})
    entries = [
        "0a 0b 0a0162 12 06 0a 04 0a027879",  # b: one value of bytes
        "0a 0d 0a0166 12 08 12 06 0a04 0000803f",  # f: packed
        "0a 0c 0a016e 12 07 1a 05 0a03 01ac02",  # n: packed
    ]
    assert record == bytes.fromhex("0a 2a" + "".join(entries))


def test_records_are_those_of_protobuf_in_its_deterministic_order(tmp_path):
    rng = np.random.default_rng(3)
    for size in (0, 1, 20, 3_000):
        example = {
            "z/int": rng.integers(-(2**63), 2**63, size, dtype=np.int64),
            "image": rng.integers(0, 256, (2, size), dtype=np.uint8),
            "a float": rng.normal(size=(size, 3)).astype(np.float32),
            "é": ["text", b"\xff\0", ""],
        }
        want = Example()
        want.features.feature["z/int"].int64_list.value.extend(example["z/int"])
        want.features.feature["image"].bytes_list.value.append(example["image"].tobytes())
        want.features.feature["a float"].float_list.value.extend(example["a float"].ravel())
        want.features.feature["é"].bytes_list.value.extend([b"text", b"\xff\0", b""])
        for name, one in (("z/int", "int64_list"), ("a float", "float_list")):
            getattr(want.features.feature[name], one).SetInParent()
        assert one_record(tmp_path, example) == want.SerializeToString(deterministic=True)


BACK = [
    (7, np.array([7])),
    (True, np.array([1])),
    (-1.5, np.array([-1.5], np.float32)),
    (0.1, np.array([0.1], np.float32)),
    ("é", ["é".encode()]),
    (b"\0\xff", [b"\0\xff"]),
    (bytearray(b"ab"), [b"ab"]),
    (memoryview(b"ab"), [b"ab"]),
    (np.uint8(3), np.array([3])),
    (np.bool_(True), np.array([1])),
    (np.float64(2), np.array([2], np.float32)),
    (np.float16(2.5), np.array([2.5], np.float32)),
    (np.str_("a"), [b"a"]),
    ([1, 2, 3], np.array([1, 2, 3])),
    ((1, 2.5), np.array([1, 2.5], np.float32)),
    ([True, False], np.array([1, 0])),
    ([np.uint8(1), np.uint8(2)], np.array([1, 2])),
    ([[1, 2], [3, 4]], np.array([1, 2, 3, 4])),
    (["a", b"b"], [b"a", b"b"]),
    (np.arange(4, dtype=np.int16).reshape(2, 2), np.array([0, 1, 2, 3])),
    (np.arange(4, dtype=">i4"), np.array([0, 1, 2, 3])),
    (np.arange(6).reshape(2, 3).T, np.array([0, 3, 1, 4, 2, 5])),
    (np.array([2**63 - 1], np.uint64), np.array([2**63 - 1])),
    (np.array([True, False]), np.array([1, 0])),
    (np.array([1, 2], np.float64), np.array([1, 2], np.float32)),
    (np.array([1, 2], ml_dtypes.bfloat16), np.array([1, 2], np.float32)),
    (np.array([np.inf, np.nan]), np.array([np.inf, np.nan], np.float32)),
    (np.array([1, 2, 255], np.uint8), [b"\x01\x02\xff"]),
    (np.arange(6, dtype=np.uint8).reshape(2, 3).T, [b"\0\3\1\4\2\5"]),
    (np.array([b"ab", b"c"]), [b"ab", b"c"]),
    (np.array(["ab", "é"]), [b"ab", "é".encode()]),
    (np.array([b"a\0", "b"], object), [b"a\0", b"b"]),
    (np.array([], np.int64), np.array([], np.int64)),
    (np.array([], np.float32), np.array([], np.float32)),
    (np.array([], np.uint8), [b""]),
]


@pytest.mark.parametrize("number", range(len(BACK)))
def test_read_returns_the_values_given_to_write(tmp_path, number):
    value, want = BACK[number]
    path = systole.write(tmp_path / "a", [{"x": value, "y": 1}]).shards[0]
    (got,) = systole.read(path)
    assert list(got) == ["x", "y"]
    if isinstance(want, list):
        assert got["x"] == want
    else:
        assert got["x"].dtype == want.dtype
        np.testing.assert_array_equal(got["x"], want)
        got["x"][:] = 0  # The array that read() returned is writable.


def test_nested_dicts_become_features_with_joined_names(tmp_path):
    path = systole.write(tmp_path / "a", [{"a": {"b": 1, "c": {"d": "x"}}, "e": 2}]).shards[0]
    (got,) = systole.read(path)
    assert {name: list(value) for name, value in got.items()} == {
        "a/b": [1],
        "a/c/d": [b"x"],
        "e": [2],
    }


class Wrapped:
    """An array of a library that systole.write does not know."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype)


def test_arrays_of_jax_and_of_others_with_numpys_protocol_are_accepted(tmp_path):
    import jax.numpy as jnp

    example = {
        "jax": jnp.arange(3, dtype=jnp.int32),
        "jax half": jnp.array([1.5, -2], jnp.bfloat16),
        "jax bytes": jnp.array([1, 2, 255], jnp.uint8),
        "other": Wrapped([4, 5]),
        "other floats": Wrapped([[0.5, 1], [2, 3]]),
    }
    (got,) = systole.read(systole.write(tmp_path / "a", [example]).shards[0])
    assert got.pop("jax bytes") == [b"\x01\x02\xff"]
    wanted = {
        "jax": np.array([0, 1, 2]),
        "jax half": np.array([1.5, -2], np.float32),
        "other": np.array([4, 5]),
        "other floats": np.array([0.5, 1, 2, 3], np.float32),
    }
    assert sorted(got) == sorted(wanted)
    for name, values in wanted.items():
        assert got[name].dtype == values.dtype
        np.testing.assert_array_equal(got[name], values)


WRONG = [
    ({"x": None}, r"example 1, key 'x': a value of type NoneType has no feature kind"),
    ({"x": object()}, r"example 1, key 'x': a value of type object"),
    ({"x": []}, r"example 1, key 'x': an empty list has no kind"),
    ({"x": [[1], [2, 3]]}, r"example 1, key 'x': the list is not an array of numbers"),
    ({"x": ["a", 1]}, r"example 1, key 'x': a list of texts has a value of type int"),
    ({"x": [None]}, r"example 1, key 'x': an array of object"),
    ({"x": 2**63}, r"example 1, key 'x': the number 9223372036854775808 is too large for int64"),
    ({"x": -(2**70)}, r"example 1, key 'x': the number -\d+ is too large for int64"),
    ({"x": 1e300}, r"example 1, key 'x': a number is too large for float32"),
    ({"x": 1j}, r"example 1, key 'x': a value of type complex"),
    ({"x": np.array([1j])}, r"example 1, key 'x': an array of complex128"),
    ({"x": np.datetime64("2020-01-01")}, r"example 1, key 'x': an array of datetime64"),
    ({"x": {"y": {1}}}, r"example 1, key 'x/y': a value of type set"),
    ({"x": "\ud800"}, r"example 1, key 'x': .*surrogates"),
    ({"\ud800": 1}, r"example 1, key '\\ud800': .*surrogates"),
    ({"x": {"y": 1}, "x/y": 2}, r"example 1: there are two features 'x/y'"),
    ({1: 2}, r"example 1 has the key 1; want a str"),
    ({"x": {1: 2}}, r"example 1, key 'x': has the key 1; want a str"),
    ([1], r"example 1 is a list; want a dict"),
]


@pytest.mark.parametrize("example, message", WRONG)
def test_an_invalid_example_is_refused_with_its_number_and_key(tmp_path, example, message):
    with pytest.raises(systole.InvalidSpec, match=message):
        systole.write(tmp_path / "a", [{"x": 1}, example])
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib", "zstd"])
def test_shards_hold_the_examples_in_turn(tmp_path, compression):
    examples = [{"id": i, "text": f"{i}" * (i % 50)} for i in range(1000)]
    written = systole.write(
        tmp_path / "sub" / "train", iter(examples), shards=3, compression=compression
    )
    assert written.records == 1000
    assert written.shards == sorted(glob.glob(str(tmp_path / "sub" / "train-*-of-00003.tfrecord")))
    assert written.bytes == sum(os.path.getsize(path) for path in written.shards)
    manifest = Path(written.manifest).read_text()
    assert manifest.count("records: 333") == 2 and manifest.count("records: 334") == 1
    ids = [[int(one["id"][0]) for one in systole.read(path)] for path in written.shards]
    assert ids == [list(range(shard, 1000, 3)) for shard in range(3)]
    everything = list(systole.read(tmp_path / "sub" / "train-*.tfrecord"))
    assert [int(one["id"][0]) for one in everything] == sum(ids, [])
    assert everything[1]["text"] == [b"333"]


def test_the_bytes_do_not_depend_on_threads(tmp_path):
    made = []
    for threads in (1, 2, 16):
        folder = tmp_path / str(threads)
        examples = ({"x": np.full(i % 300, i)} for i in range(3000))
        systole.write(folder / "a", examples, shards=4, compression="zstd", threads=threads)
        made.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert len(made[0]) == 5
    assert made[0] == made[1] == made[2]


def test_the_command_line_reads_the_shards(tmp_path):
    from conftest import systole as run

    written = systole.write(tmp_path / "a", ({"x": i} for i in range(10)), shards=2)
    assert json.loads(run("verify", *written.shards, "--json"))["records"] == 10


def test_an_exception_of_the_generator_leaves_no_shard(tmp_path):
    systole.write(tmp_path / "a", ({"x": i} for i in range(4)), shards=2)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def failing():
        for i in range(100_000):
            yield {"x": i}
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        systole.write(tmp_path / "a", failing(), shards=2)
    # The earlier set of shards is unchanged.
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    with pytest.raises(OSError, match="no more"):
        systole.write(tmp_path / "b" / "c", failing(), shards=2)
    assert os.listdir(tmp_path / "b") == []


def test_ctrl_c_leaves_no_shard(tmp_path):
    def endless():
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        while True:
            yield {"x": b"x" * 100_000}

    with pytest.raises(KeyboardInterrupt):
        systole.write(tmp_path / "a", endless(), shards=2, compression="zstd", threads=1)
    assert os.listdir(tmp_path) == []


def test_shards_are_replaced_unless_their_number_changes(tmp_path):
    systole.write(tmp_path / "a", ({"x": i} for i in range(4)), shards=2)
    systole.write(tmp_path / "a", ({"x": i} for i in range(6)), shards=2)
    assert len(list(systole.read(tmp_path / "a-*"))) == 6
    with pytest.raises(systole.Error, match="is left from another run"):
        systole.write(tmp_path / "a", ({"x": i} for i in range(6)), shards=3)
    assert len(list(systole.read(tmp_path / "a-*"))) == 6


def test_wrong_arguments_say_what_is_wanted(tmp_path):
    one = [{"x": 1}]
    for options, message in (
        ({"shards": 0}, "shards is 0, want 1 to 99999"),
        ({"shards": 2}, "1 examples for 2 shards"),
        ({"shards": "many"}, "shards is 'many'"),
        ({"threads": 0}, "threads is 0"),
        ({"compression": "detect"}, "compression is 'detect', want one of: none, gzip, zlib, zstd"),
        ({"num_shards": 2}, "write.. has no 'num_shards'"),
    ):
        with pytest.raises(systole.InvalidSpec, match=message):
            systole.write(tmp_path / "a", one, **options)
    for prefix in ("", f"{tmp_path}/"):
        with pytest.raises(systole.InvalidSpec, match="want a name after it"):
            systole.write(prefix, one)
    with pytest.raises(systole.InvalidSpec, match="0 examples for 1 shards"):
        systole.write(tmp_path / "a", [])
    with pytest.raises(systole.FailedPrecondition):
        systole.write("https://a.example/x", one)
    assert os.listdir(tmp_path) == []


def test_memory_stays_bounded_if_the_generator_outruns_the_writers(tmp_path):
    most = 0

    def examples():
        nonlocal most
        value = os.urandom(1 << 20)
        for i in range(160):
            yield {"x": value, "i": i}
            if i % 20 == 0:
                with open("/proc/self/statm") as file:
                    most = max(most, int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE"))

    with open("/proc/self/statm") as file:
        before = int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    systole.write(tmp_path / "a", examples(), compression="gzip", threads=1)
    assert most - before < 120 << 20


def test_an_example_too_large_for_feeds_is_refused(tmp_path):
    large = np.zeros(256 << 20, np.uint8)
    with pytest.raises(systole.InvalidSpec, match="example 1 has 2684354.. bytes; want at most"):
        systole.write(tmp_path / "a", [{"x": 1}, {"x": large}])
    assert os.listdir(tmp_path) == []


def test_read_is_lazy(tmp_path):
    written = systole.write(tmp_path / "a", ({"x": i} for i in range(4)), shards=2)
    examples = systole.read(written.shards)
    assert int(next(examples)["x"][0]) == 0
    Path(written.shards[1]).write_bytes(b"no shard at all, but text")
    assert int(next(examples)["x"][0]) == 2
    with pytest.raises(systole.Error, match="a-00001-of-00002.tfrecord"):
        next(examples)


def test_read_gives_the_records_before_a_damaged_one(tmp_path):
    path = systole.write(tmp_path / "a", ({"x": i} for i in range(5))).shards[0]
    data = bytearray(Path(path).read_bytes())
    size = len(data) // 5
    data[3 * size + 14] ^= 1
    Path(path).write_bytes(data)
    examples = systole.read(path)
    assert [int(next(examples)["x"][0]) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(systole.DataLoss, match="a-00000-of-00001.tfrecord.*record 3"):
        next(examples)


def test_read_refuses_missing_shards_and_invalid_arguments(tmp_path):
    with pytest.raises(systole.NotFound, match="none-"):
        systole.read(tmp_path / "none-*.tfrecord")
    with pytest.raises(systole.InvalidSpec, match="shards is 3"):
        systole.read(3)
    with pytest.raises(systole.InvalidSpec, match="compression is 'lz4'"):
        systole.read(tmp_path, compression="lz4")


def test_read_takes_records_of_other_writers(tmp_path):
    def part(number, content):
        return bytes([number << 3 | 2, len(content)]) + content

    def entry(name, feature):
        return part(1, part(1, name) + part(2, feature))

    ints = part(3, part(1, b"\x05"))
    record = part(1, entry(b"x", ints) + entry(b"\xff", ints) + entry(b"gone", ints) +
                  entry(b"gone", b"") + entry(b"none", b""))  # fmt: skip
    path = tmp_path / "a.tfrecord"
    path.write_bytes(framed(record) + framed(b""))
    got = list(systole.read(path))
    assert {name: list(value) for name, value in got[0].items()} == {"x": [5], "\udcff": [5]}
    assert got[1] == {}


def test_a_forked_child_does_not_disturb_its_parents_write(tmp_path):
    code = """
        import os, sys, systole
        parent = os.getpid()

        def examples():
            yield {"x": 1}
            if (child := os.fork()) == 0:
                raise SystemExit  # Ends write() in the child.
            assert os.waitpid(child, 0)[1] == 0
            yield {"x": 2}

        try:
            written = systole.write(sys.argv[1], examples())
        finally:
            if os.getpid() != parent:
                os._exit(0)
        print([int(one["x"][0]) for one in systole.read(written.shards)])
    """
    done = python(code, str(tmp_path / "a"))
    assert done.stdout == "[1, 2]\n", done.stderr
