"""Writes a shard in each of TensorFlow's compressions. A test computes the same records.

usage: make_framing.py FOLDER    (with TensorFlow; README.md says which version)
"""

import sys

import tensorflow as tf


def payload(record):
    return bytes(i * (record + 3) // 40 % 17 + 60 for i in range(record * 37 % 4000))


for compression in ("", "GZIP", "ZLIB"):
    path = f"{sys.argv[1]}/framing-{compression.lower() or 'none'}.tfrecord"
    # The uncompressed shard is short, because the compressed shards test the same and more.
    records = 300 if compression else 20
    with tf.io.TFRecordWriter(path, compression) as writer:
        for record in range(records):
            writer.write(payload(record))
    read = list(tf.data.TFRecordDataset(path, compression).as_numpy_iterator())
    assert read == [payload(record) for record in range(records)]
