"""Tests feed_client.py without a server.

tests/interop/run.sh makes the stubs and runs these tests.
"""

import sys
import unittest

import google_crc32c
from google.protobuf.message import DecodeError

sys.dont_write_bytecode = True

import feed_client  # noqa: E402
from systole.v1 import feed_pb2, service_pb2  # noqa: E402

# The feed of the worked example in proto/README.md: two examples on one core.
VALID = bytes([1, 1])
X = b"".join(value.to_bytes(4, "little", signed=True) for value in (1, -1, 2, -2, 3, -3))
SIZES = [len(VALID), len(X)]


def example_feed() -> service_pb2.ResolveFeedResponse:
    """The answer of ResolveFeed for the worked example."""
    feed = service_pb2.ResolveFeedResponse()
    feed.tensors.add(name="valid", dtype=feed_pb2.UINT8, shape=[2])
    feed.tensors.add(name="x", dtype=feed_pb2.INT32, shape=[2, 3])
    return feed


def seal(chunk: service_pb2.Chunk, data: bytes = b"") -> service_pb2.Chunk:
    """Gives the chunk its data and both checksums."""
    chunk.crc32c = google_crc32c.value(data)
    chunk.header_crc32c = google_crc32c.value(chunk.SerializeToString())
    chunk.data = data
    return chunk


def piece(step: int, tensor: int, offset: int, data: bytes) -> service_pb2.Chunk:
    """A chunk of core 3, with its checksums."""
    return seal(service_pb2.Chunk(step=step, core=3, tensor=tensor, offset=offset), data)


def one_step(step: int) -> list[service_pb2.Chunk]:
    """The chunks of one step; tensor 1 is split into two chunks."""
    return [
        piece(step, 0, 0, VALID),
        piece(step, 1, 0, X[:10]),
        piece(step, 1, 10, X[10:]),
    ]


def read(chunks: list[service_pb2.Chunk], steps: int = 1) -> list[tuple[int, int, list[bytes]]]:
    """Reads steps 7, 8 .. of core 3."""
    wanted = range(7, 7 + steps)
    return list(feed_client.read_slices(iter(chunks), SIZES, wanted, range(3, 4)))


class FeedClientTest(unittest.TestCase):
    """The answers that feed_client.py accepts and refuses."""

    def test_checksum_and_digest_are_those_of_the_readme(self) -> None:
        self.assertEqual(google_crc32c.value(b"123456789"), 0xE3069283)
        self.assertEqual(
            feed_client.digest(example_feed(), [VALID, X]), "8d1e28737756d1df18a782d4ae4c7725"
        )

    def test_assembles_steps_from_chunks(self) -> None:
        self.assertEqual(
            read(one_step(7) + one_step(8), steps=2), [(7, 3, [VALID, X]), (8, 3, [VALID, X])]
        )

    def test_refuses_a_chunk_with_any_bit_flipped(self) -> None:
        good = piece(7, 1, 10, X[10:]).SerializeToString()
        feed_client.check_chunk(service_pb2.Chunk.FromString(good))
        for bit in range(8 * len(good)):
            damaged = bytearray(good)
            damaged[bit // 8] ^= 1 << bit % 8
            with self.subTest(bit=bit), self.assertRaises((feed_client.BadAnswer, DecodeError)):
                feed_client.check_chunk(service_pb2.Chunk.FromString(bytes(damaged)))

    def test_refuses_a_stream_with_a_damaged_chunk(self) -> None:
        for index in range(3):
            chunks = one_step(7)
            chunks[index].data = bytes([chunks[index].data[0] ^ 1]) + chunks[index].data[1:]
            with self.subTest(index=index), self.assertRaisesRegex(
                feed_client.BadAnswer, "step 7: a chunk's data is damaged"
            ):
                read(chunks)

    def test_refuses_a_chunk_without_a_header_checksum(self) -> None:
        chunk = piece(7, 0, 0, VALID)
        chunk.ClearField("header_crc32c")
        with self.assertRaisesRegex(feed_client.BadAnswer, "header is damaged"):
            feed_client.check_chunk(chunk)

    def test_refuses_chunks_out_of_place_or_of_the_wrong_size(self) -> None:
        first, second, third = one_step(7)
        for chunks in (
            [second, first, third],
            [first, third],
            [first, second, second],
            [first, second, piece(7, 1, 10, X[10:] + b"!")],
            [first, second, piece(7, 1, 10, b"")],
            [first, second, third, piece(8, 0, 0, VALID)],
            one_step(8),
        ):
            with self.subTest(chunks=chunks), self.assertRaisesRegex(
                feed_client.BadAnswer, "a chunk (of|after)"
            ):
                read(chunks)

    def test_names_the_step_before_which_a_stream_ends_or_drains(self) -> None:
        with self.assertRaisesRegex(feed_client.BadAnswer, "ends before step 7"):
            read(one_step(7)[:2])
        goes = seal(service_pb2.Chunk(step=8, draining=True))
        with self.assertRaisesRegex(feed_client.BadAnswer, "drains before step 8"):
            read(one_step(7) + [goes], steps=2)

    def test_refuses_invalid_tensor_types_and_shapes(self) -> None:
        for dtype, shape in (
            (feed_pb2.DATA_TYPE_UNSPECIFIED, [2]),
            (feed_pb2.UINT8, []),
            (feed_pb2.UINT8, [2, 0]),
            (feed_pb2.UINT8, [2, -1]),
            (feed_pb2.INT64, [1 << 40]),
        ):
            feed = example_feed()
            feed.tensors.add(name="y", dtype=dtype, shape=shape)
            with self.subTest(dtype=dtype, shape=shape), self.assertRaises(feed_client.BadAnswer):
                feed_client.tensor_sizes(feed)


if __name__ == "__main__":
    unittest.main()
