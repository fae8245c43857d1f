"""Serves ready batches by Arrow Flight without end. A record batch holds `ROWS` images.
Arguments: BATCH ROWS LOCATION."""

import itertools
import sys

import pyarrow as pa
import pyarrow.flight as flight

import children
import ready


class _Server(flight.FlightServerBase):
    def __init__(self, batch, rows, location):
        super().__init__(location)
        self._pieces = []
        for images, labels in ready.steps(batch):
            column = pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(ready.IMAGE_BYTES), batch, [None, pa.py_buffer(images)])
            whole = pa.record_batch([column, pa.array(labels)], names=["image", "label"])
            self._pieces += [whole.slice(first, rows) for first in range(0, batch, rows)]

    def do_get(self, context, ticket):
        return flight.RecordBatchStream(pa.RecordBatchReader.from_batches(
            self._pieces[0].schema, itertools.cycle(self._pieces)))


def main():
    server = _Server(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
    children.serve(server.port)


if __name__ == "__main__":
    main()
