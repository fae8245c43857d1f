"""tf.data service: one dispatcher, one worker, and this process as the trainer, over gRPC.

--ready: the worker sends bf16 tensors that it made once, so only the wire is measured.
--compact: the worker sends pixels rounded to uint8, and this process normalises and casts."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

import children
import measuring
import ready
import tf_data


def _ready(batch):
    """A dataset without end that alternates between two batches in the worker's memory."""
    pairs = [(tf.bitcast(tf.constant(images.reshape(batch, 224, 224, 3)), tf.bfloat16), labels)
             for images, labels in ready.steps(batch)]
    datasets = [tf.data.Dataset.from_tensors(pair).repeat() for pair in pairs]
    return tf.data.Dataset.choose_from_datasets(
        datasets, tf.data.Dataset.range(len(datasets)).repeat())


def main():
    options = measuring.arguments(
        __doc__, ready={"action": "store_true"}, compact={"action": "store_true"})
    dispatcher = children.start("tf_data_service_process.py", "dispatcher")
    children.start("tf_data_service_process.py", "worker", dispatcher)
    if options.ready:
        dataset = _ready(options.batch)
    else:
        dataset = tf_data.batches(options.files, options.batch,
                                  "u8" if options.compact else options.dtype)
    dataset = dataset.apply(tf.data.experimental.service.distribute(
        processing_mode=tf.data.experimental.service.ShardingPolicy.OFF,
        service=f"grpc://localhost:{dispatcher}",
        compression=None))
    if options.compact:
        dataset = dataset.map(
            lambda images, labels: (tf_data.normalise(images, options.dtype), labels),
            num_parallel_calls=tf.data.AUTOTUNE)
    dataset = dataset.prefetch(tf.data.AUTOTUNE)
    measuring.report("tf.data service", tf.__version__,
                     "1 dispatcher, 1 worker, 1 client process; compression none, AUTOTUNE"
                     + (", uint8 on the wire" if options.compact else ""),
                     (images for images, _ in dataset.as_numpy_iterator()), options)


if __name__ == "__main__":
    main()
