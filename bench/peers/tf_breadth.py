"""tf.data for the pipelines of bench/breadth_rows.cc, by name, set up as in tf_data.py.

TensorFlow has no operation for trivial_augment and mix, so their pipelines are left out."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import measuring
import tensorflow as tf
import tf_data

_SIZE = [measuring.SIZE, measuring.SIZE]
_LABEL = tf.io.FixedLenFeature([], tf.int64)


def _decode(encoded):
    return tf.io.decode_jpeg(encoded, channels=3)


def _decode_png(encoded):
    return tf.io.decode_png(encoded, channels=3)


def _random_part(encoded):
    window = tf_data.window(tf.image.extract_jpeg_shape(encoded))
    return tf.io.decode_and_crop_jpeg(encoded, window, channels=3)


def _tpu_resnet_part(encoded):
    """The training crop of the reference TPU ResNet. If the box is as large as the image, the
    reference crops in another way. This case is left out, because it hardly ever occurs."""
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        tf.image.extract_jpeg_shape(encoded),
        bounding_boxes=tf.constant([0.0, 0.0, 1.0, 1.0], shape=[1, 1, 4]),
        min_object_covered=0.1,
        aspect_ratio_range=measuring.ASPECT,
        area_range=measuring.AREA,
        max_attempts=10,
        use_image_if_no_bounding_boxes=True,
    )
    window = tf.concat([begin[:2], size[:2]], axis=0)
    return tf.io.decode_and_crop_jpeg(encoded, window, channels=3)


def _central_part(encoded):
    bound = tf.image.extract_jpeg_shape(encoded)[:2]
    side = tf.cast(0.875 * tf.cast(tf.reduce_min(bound), tf.float32), tf.int32)
    window = tf.concat([(bound - side + 1) // 2, [side, side]], axis=0)
    return tf.io.decode_and_crop_jpeg(encoded, window, channels=3)


def _resize(image):
    return tf.image.resize(image, _SIZE)


def _resize_antialias(image):
    return tf.image.resize(image, _SIZE, antialias=True)


def _resize_tf1(image):
    return tf.compat.v1.image.resize_bicubic(image[tf.newaxis], _SIZE)[0]


def _resize_with_pad(image):
    return tf.image.resize_with_pad(image, *_SIZE)


def _resize_lanczos3(image):
    return tf.image.resize(image, _SIZE, method="lanczos3")


def _to_unit(image):
    return tf.cast(image, tf.float32) * (1 / 255)


def _normalize(image):
    return (_to_unit(image) - measuring.CHANNEL_MEAN) / measuring.CHANNEL_STDDEV


_flip = tf.image.random_flip_left_right


def _colours(image):
    image = tf.image.random_brightness(image, 0.125)
    image = tf.image.random_contrast(image, 0.5, 1.5)
    image = tf.image.random_saturation(image, 0.5, 1.5)
    return tf.image.random_hue(image, 0.2)


def _tiny_image(encoded):
    return tf.reshape(tf.io.decode_raw(encoded, tf.uint8), [32, 32, 3])


def _shifted(image):
    return tf.image.random_crop(tf.image.pad_to_bounding_box(image, 4, 4, 40, 40), [32, 32, 3])


# What is done to the bytes of an image, in order.
IMAGES = {
    "crop": (_random_part, _resize, _flip, _normalize),
    "crop_antialias": (_random_part, _resize_antialias, _flip, _normalize),
    "crop_tpu_resnet": (_tpu_resnet_part, _resize_tf1, _flip, _normalize),
    "center_crop": (_central_part, _resize, _normalize),
    "center_crop_antialias": (_central_part, _resize_antialias, _normalize),
    "resize": (_decode, _resize, _to_unit),
    "resize_cached": (_decode, _resize, _to_unit),
    "resize_with_pad": (_decode, _resize_with_pad, _normalize),
    "resize_lanczos3": (_decode, _resize_lanczos3, _flip, _normalize),
    "standardize": (_random_part, _resize, tf.image.per_image_standardization, _flip),
    "colours": (_random_part, _resize, _to_unit, _flip, _colours),
    "large": (_random_part, _resize, _flip, _normalize),
    "png": (_decode_png, _resize, _flip, _normalize),
    "raw": (_tiny_image, _flip, _shifted, _to_unit),
}

# Lists are parsed batch by batch, as TensorFlow's guide advises.
LISTS = {
    "tokens": ("tokens", tf.io.RaggedFeature(tf.int64)),
    "tables": ("row", tf.io.FixedLenFeature([20], tf.float32)),
}


def _make_image(steps):
    def make(record):
        features = tf.io.parse_single_example(
            record, {"image": tf.io.FixedLenFeature([], tf.string), "label": _LABEL}
        )
        value = features["image"]
        for step in steps:
            value = step(value)
        return value, features["label"]

    return make


def _make_lists(name, feature):
    def make(records):
        features = tf.io.parse_example(records, {name: feature, "label": _LABEL})
        values = features[name]
        if isinstance(values, tf.RaggedTensor):
            values = values.to_tensor(shape=[None, 128])
        return values, features["label"]

    return make


def _batches(options):
    if options.pipeline in LISTS:
        return tf_data.list_batches(
            options.files, options.batch, _make_lists(*LISTS[options.pipeline])
        )
    return tf_data.image_batches(
        options.files,
        options.batch,
        _make_image(IMAGES[options.pipeline]),
        cached=options.pipeline == "resize_cached",
    )


def main():
    options = measuring.arguments(
        __doc__, pipeline={"choices": sorted([*IMAGES, *LISTS]), "required": True}
    )
    measuring.report(
        "tf.data",
        tf.__version__,
        "AUTOTUNE, not deterministic",
        (values for values, _ in _batches(options).as_numpy_iterator()),
        options,
    )


if __name__ == "__main__":
    main()
