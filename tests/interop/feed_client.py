"""Reads a feed with generated stubs and prints what `systole feed --digest` prints.

The client was written from proto/systole/v1/*.proto and proto/README.md alone, like a client in
another language. It does not retry: at any error of the server or the connection, it exits with
code 1.

    feed_client.py --server 127.0.0.1:8470 --spec feed.textproto --steps 20
"""

import argparse
import math
import pathlib
import struct
import sys
from collections.abc import Iterator

import google_crc32c
import grpc
import xxhash
from google.protobuf import message, text_format
from systole.v1 import feed_pb2, service_pb2, service_pb2_grpc

ELEMENT_BYTES = {
    feed_pb2.UINT8: 1,
    feed_pb2.INT32: 4,
    feed_pb2.INT64: 8,
    feed_pb2.FLOAT32: 4,
    feed_pb2.BFLOAT16: 2,
    feed_pb2.FLOAT16: 2,
}
MAX_SLICE_BYTES = 1 << 30  # Otherwise a wrong answer could use up all memory.
STEPS_PER_CALL = 1024
CRC_KEY = "systole-crc32c"
CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", 8 << 20),
    ("grpc.http2.max_frame_size", 4 << 20),
]


class BadAnswer(Exception):
    """The server or the connection breaks the protocol."""


def crc_text(msg: message.Message) -> str:
    """The CRC-32C of a message in eight hexadecimal digits, for a call's metadata."""
    return f"{google_crc32c.value(msg.SerializeToString()):08x}"


def check_chunk(chunk: service_pb2.Chunk) -> None:
    """Raises BadAnswer unless both checksums of the chunk match."""
    if google_crc32c.value(chunk.data) != chunk.crc32c:
        raise BadAnswer(f"step {chunk.step}: a chunk's data is damaged")
    header = service_pb2.Chunk()
    header.CopyFrom(chunk)
    header.ClearField("data")
    header.ClearField("header_crc32c")
    crc = google_crc32c.value(header.SerializeToString())
    if not chunk.HasField("header_crc32c") or crc != chunk.header_crc32c:
        raise BadAnswer("a chunk's header is damaged")


def tensor_sizes(feed: service_pb2.ResolveFeedResponse) -> list[int]:
    """The size in bytes of each tensor of a slice. Raises BadAnswer if a size is impossible."""
    sizes = []
    for tensor in feed.tensors:
        if tensor.dtype not in ELEMENT_BYTES or not tensor.shape or min(tensor.shape) < 1:
            raise BadAnswer(f"tensor {tensor.name!r} has an unknown type or an empty shape")
        sizes.append(ELEMENT_BYTES[tensor.dtype] * math.prod(tensor.shape))
    if not 0 < sum(sizes) <= MAX_SLICE_BYTES:
        raise BadAnswer(f"a slice has {sum(sizes)} bytes, want 1 to {MAX_SLICE_BYTES}")
    return sizes


def read_tensor(
    chunks: Iterator[service_pb2.Chunk], step: int, core: int, tensor: int, size: int
) -> bytes:
    """Reads the bytes of one tensor. Raises BadAnswer if a chunk is wrong or missing."""
    data = bytearray()
    while len(data) < size:
        chunk = next(chunks, None)
        if chunk is None:
            raise BadAnswer(f"the stream ends before step {step} is complete")
        check_chunk(chunk)
        if chunk.draining:
            raise BadAnswer(f"the server drains before step {step} is complete")
        seen = (chunk.step, chunk.core, chunk.tensor, chunk.offset)
        wanted = (step, core, tensor, len(data))
        if seen != wanted:
            raise BadAnswer(f"a chunk of (step, core, tensor, offset) {seen} came, want {wanted}")
        if chunk.slot or not 0 < len(chunk.data) <= size - len(data):
            raise BadAnswer(f"a chunk of {len(chunk.data)} bytes, want 1 to {size - len(data)}")
        data += chunk.data
    return bytes(data)


def read_slices(
    chunks: Iterator[service_pb2.Chunk], sizes: list[int], steps: range, cores: range
) -> Iterator[tuple[int, int, list[bytes]]]:
    """Yields (step, core, tensors) for each slice of a stream. Raises BadAnswer if more follows."""
    for step in steps:
        for core in cores:
            tensors = [read_tensor(chunks, step, core, i, size) for i, size in enumerate(sizes)]
            yield step, core, tensors
    if next(chunks, None) is not None:
        raise BadAnswer(f"a chunk after the last step, which is {steps[-1]}")


def digest(feed: service_pb2.ResolveFeedResponse, tensors: list[bytes]) -> str:
    """The digest of a slice: proto/README.md, "Digests"."""
    hasher = xxhash.xxh3_128()
    for tensor, data in zip(feed.tensors, tensors, strict=True):
        name = tensor.name.encode()
        numbers = [tensor.dtype, len(tensor.shape), *tensor.shape]
        hasher.update(struct.pack("<Q", len(name)) + name)
        hasher.update(struct.pack(f"<{len(numbers)}Q", *numbers))
        hasher.update(data)
    return hasher.hexdigest()


def resolve(
    stub: service_pb2_grpc.SystoleStub, spec: feed_pb2.FeedSpec
) -> service_pb2.ResolveFeedResponse:
    """Asks the server for the tensors, steps and identity of the spec's feed."""
    request = service_pb2.ResolveFeedRequest(spec=spec)
    metadata = ((CRC_KEY, crc_text(request)),)
    answer, call = stub.ResolveFeed.with_call(request, metadata=metadata, timeout=300)
    if dict(call.initial_metadata()).get(CRC_KEY) != crc_text(answer):
        raise BadAnswer("the answer to ResolveFeed is damaged")
    return answer


def print_digests(
    stub: service_pb2_grpc.SystoleStub, spec: feed_pb2.FeedSpec, steps: range, cores: range
) -> None:
    """Prints `step core digest` for each slice of these steps. Stops where the feed ends."""
    feed = resolve(stub, spec)
    sizes = tensor_sizes(feed)
    end = min(steps.stop, feed.total_steps or steps.stop)
    for first in range(steps.start, end, STEPS_PER_CALL):
        asked = range(first, min(first + STEPS_PER_CALL, end))
        request = service_pb2.StreamStepsRequest(
            spec=spec,
            first_step=first,
            count=len(asked),
            core_begin=cores.start,
            core_end=cores.stop,
            expected=feed.identity,
        )
        chunks = iter(stub.StreamSteps(request, metadata=((CRC_KEY, crc_text(request)),)))
        for step, core, tensors in read_slices(chunks, sizes, asked, cores):
            print(step, core, digest(feed, tensors))


def core_range(text: str) -> range:
    """The cores A to B - 1, from the text `A:B`."""
    begin, end = map(int, text.split(":"))
    return range(begin, end)


def main() -> int:
    """Runs the command line and returns the exit code."""
    parser = argparse.ArgumentParser(description="Prints the digests of a feed's slices.")
    parser.add_argument("--server", required=True, help="HOST:PORT or unix:PATH")
    parser.add_argument("--spec", required=True, type=pathlib.Path, help="feed spec, textproto")
    parser.add_argument("--steps", required=True, type=int, help="number of steps")
    parser.add_argument("--first-step", default=0, type=int, help="the first step (default: 0)")
    parser.add_argument("--cores", type=core_range, metavar="A:B", help="default: all cores")
    args = parser.parse_args()
    try:
        spec = text_format.Parse(args.spec.read_text("utf-8"), feed_pb2.FeedSpec())
    except (OSError, text_format.ParseError) as error:
        parser.error(f"--spec {args.spec}: {error}")
    try:
        steps = range(args.first_step, args.first_step + args.steps)
        with grpc.insecure_channel(args.server, options=CHANNEL_OPTIONS) as channel:
            stub = service_pb2_grpc.SystoleStub(channel)
            print_digests(stub, spec, steps, args.cores or range(spec.num_cores))
    except grpc.RpcError as error:
        # The text comes from a server. Its escaped form cannot control the terminal.
        words = (error.details() or "").encode("unicode_escape").decode()
        print(f"{args.server}: {error.code().name}: {words}", file=sys.stderr)
        return 1
    except BadAnswer as error:
        print(f"{args.server}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
