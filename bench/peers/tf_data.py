"""tf.data in one process, as tensorflow.org's "Better performance with the tf.data API" sets it up:
parallel interleave and map with AUTOTUNE, order not deterministic, prefetch last."""

import math
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

import measuring

_FEATURES = {
    "image": tf.io.FixedLenFeature([], tf.string),
    "label": tf.io.FixedLenFeature([], tf.int64),
}
_ATTEMPTS = 10
_DTYPES = {"f32": tf.float32, "bf16": tf.bfloat16}


def window(shape):
    """Draws [y, x, height, width] as torchvision's RandomResizedCrop does.

    tf.image.sample_distorted_bounding_box is not used, because it draws the side, not the area,
    uniformly: its crops are 15 % smaller."""
    bound = tf.cast(shape[:2], tf.float32)
    area = bound[0] * bound[1] * tf.random.uniform([_ATTEMPTS], *measuring.AREA)
    aspect = tf.exp(tf.random.uniform([_ATTEMPTS], *map(math.log, measuring.ASPECT)))
    sizes = tf.round(tf.sqrt(tf.stack([area / aspect, area * aspect], axis=1)))
    # If no attempt fits, the last row is taken: the largest square.
    sizes = tf.concat([sizes, tf.fill([1, 2], tf.reduce_min(bound))], axis=0)
    size = sizes[tf.argmax(tf.reduce_all(sizes <= bound, axis=1))]
    corner = tf.floor(tf.random.uniform([2]) * (bound - size + 1))
    return tf.cast(tf.concat([corner, size], axis=0), tf.int32)


def normalise(image, dtype):
    image = tf.cast(image, tf.float32)
    return tf.cast((image - measuring.MEAN) * (1 / measuring.STDDEV), _DTYPES[dtype])


def _decode(record, dtype):
    features = tf.io.parse_single_example(record, _FEATURES)
    encoded = features["image"]
    part = window(tf.image.extract_jpeg_shape(encoded))
    image = tf.io.decode_and_crop_jpeg(encoded, part, channels=3)
    image = tf.image.resize(image, [measuring.SIZE, measuring.SIZE])
    image = tf.image.random_flip_left_right(image)
    if dtype == "u8":
        return tf.cast(tf.round(image), tf.uint8), features["label"]
    return normalise(image, dtype), features["label"]


def _records(files, repeat):
    records = tf.data.Dataset.from_tensor_slices(files).shuffle(len(files))
    if repeat:
        records = records.repeat()
    return records.interleave(tf.data.TFRecordDataset, num_parallel_calls=tf.data.AUTOTUNE)


def _delivered(dataset):
    options = tf.data.Options()
    options.deterministic = False
    return dataset.prefetch(tf.data.AUTOTUNE).with_options(options)


def image_batches(files, batch, make, cached=False):
    """An endless dataset of batches of the pairs (image, label) that make(record) returns. `cached`:
    the pairs of the first epoch are kept in memory and used in every epoch."""
    if cached:
        examples = (_records(files, repeat=False).map(make, num_parallel_calls=tf.data.AUTOTUNE)
                    .cache().repeat().shuffle(1024))
    else:
        examples = (_records(files, repeat=True).shuffle(1024)
                    .map(make, num_parallel_calls=tf.data.AUTOTUNE))
    return _delivered(examples.batch(batch, drop_remainder=True))


def list_batches(files, batch, make):
    """An endless dataset of what make(records) returns for each batch of records."""
    return _delivered(
        _records(files, repeat=True).shuffle(1024).batch(batch, drop_remainder=True)
        .map(make, num_parallel_calls=tf.data.AUTOTUNE))


def batches(files, batch, dtype):
    """A dataset of (images, labels) without end. `dtype`: f32, bf16, or u8 for pixels that are not
    normalised yet."""
    return image_batches(files, batch, lambda record: _decode(record, dtype))


def main():
    options = measuring.arguments(__doc__)
    dataset = batches(options.files, options.batch, options.dtype)
    settings = "decode_and_crop_jpeg; AUTOTUNE, not deterministic"
    if options.threads:
        pool = tf.data.Options()
        pool.threading.private_threadpool_size = options.threads
        dataset = dataset.with_options(pool)
        settings += f", {options.threads} threads"
    measuring.report("tf.data", tf.__version__, settings,
                     (images for images, _ in dataset.as_numpy_iterator()), options)


if __name__ == "__main__":
    main()
