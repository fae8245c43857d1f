"""Arrow Flight: a server process sends ready bf16 batches, so that only the wire is measured.

A batch counts when all its record batches are read. By default its images stay in Arrow's memory.
--into-memory copies them into one of two buffers of the caller; a trainer that owns its buffers
must do this copy, too. --unix uses a Unix socket instead of TCP."""

import itertools
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight

import children
import measuring
import ready


def main():
    options = measuring.arguments(
        __doc__,
        into_memory={"action": "store_true"},
        unix={"action": "store_true"},
        rows={"type": int, "required": True, "help": "images a record batch; must divide --batch"})
    with tempfile.TemporaryDirectory() as folder:
        listen = f"grpc+unix://{folder}/socket" if options.unix else "grpc://127.0.0.1:0"
        port = children.start("arrow_flight_process.py", options.batch, options.rows, listen)
        client = flight.connect(listen if options.unix else f"grpc://127.0.0.1:{port}")
        stream = client.do_get(flight.Ticket(b""))
    own = [np.ones((options.batch, ready.IMAGE_BYTES), np.uint8) for _ in range(2)]

    def pieces():
        """The images of one batch, in Arrow's memory."""
        for _ in range(options.batch // options.rows):
            piece = stream.read_chunk().data
            column = np.frombuffer(piece.column(0).buffers()[1], np.uint8)
            yield column.reshape(-1, ready.IMAGE_BYTES)

    def batches():
        for memory in itertools.cycle(own):
            if options.into_memory:
                for number, images in enumerate(pieces()):
                    memory[number * options.rows:][:options.rows] = images
                yield memory
            else:
                yield list(pieces())

    peer = "Arrow Flight, into the caller's memory" if options.into_memory else "Arrow Flight"
    measuring.report(peer, pa.__version__,
                     f"do_get of record batches of {options.rows} images"
                     + (", Unix socket" if options.unix else ""), batches(), options)


if __name__ == "__main__":
    main()
