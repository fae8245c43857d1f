"""Writes colour.tfrecord: what TensorFlow makes of images and labels, for tensorflow_colour_test.

usage: make_colour.py OUT    (with TensorFlow; README.md says which version)

The first record has only `tensorflow_version`. Each of the others is one case:
  case        its name; what stands before the first '/' is the operation
  transforms  the spec's transforms, as textproto
  type        of the input: uint8, float32 or int64
  shape       of the input
  input       little endian
  epoch, record_id
  want_type   of the result: also bfloat16
  want        little endian
"""

import sys

import numpy as np
import tensorflow as tf

RNG = np.random.default_rng(7)
WRITER = None


def bytes_feature(value):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def ints_feature(values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def write(features):
    example = tf.train.Example(features=tf.train.Features(feature=features))
    WRITER.write(example.SerializeToString(deterministic=True))


def add(case, transforms, value, want, epoch=0, record_id=0):
    value = np.asarray(value)
    want = np.asarray(want)
    write(
        {
            "case": bytes_feature(case.encode()),
            "transforms": bytes_feature(
                "".join(f"transforms {{ {t} }} " for t in transforms).encode()
            ),
            "type": bytes_feature(value.dtype.name.encode()),
            "shape": ints_feature(value.shape),
            "input": bytes_feature(value.tobytes()),
            "epoch": ints_feature([epoch]),
            "record_id": ints_feature([record_id]),
            "want_type": bytes_feature(want.dtype.name.encode()),
            "want": bytes_feature(want.tobytes()),
        }
    )


def noise(*shape):
    return RNG.integers(0, 256, shape, dtype=np.uint8)


def floats(low, high, *shape):
    return RNG.uniform(low, high, shape).astype(np.float32)


def ramp(levels):
    """Every mixture of a few levels, so greys, pure colours, black and white as well."""
    return np.stack(np.meshgrid(levels, levels, levels), axis=-1).reshape(len(levels), -1, 3)


def odd_floats():
    """Colours outside of 0 to 1, greys, infinities and NaNs."""
    nan, inf, big = np.nan, np.inf, 3e38
    return np.array(
        [
            [0, 0, 0],
            [1, 1, 1],
            [-0.5, -0.25, -0.75],
            [-1, 0, 1],
            [2, 3, 4],
            [300, 20, 20],
            [1, 1e-7, 0],
            [1, 0, 1e-9],
            [0.3, 0.3, 0.3],
            [0.3, 0.3, 0.1],
            [0.1, 0.3, 0.3],
            [nan, 0.5, 0.2],
            [0.5, nan, 0.2],
            [0.5, 0.2, nan],
            [nan, nan, nan],
            [inf, 0.5, 0.2],
            [0.1, inf, inf],
            [-inf, 0.5, 0.2],
            [big, -big, 0],
            [big, big, big],
        ],
        np.float32,
    ).reshape(4, 5, 3)


IMAGES = {
    "noise": noise(7, 9, 3),
    "ramp": ramp(np.array([0, 1, 32, 127, 128, 200, 255], np.uint8)),
    "constant": np.full((5, 4, 3), 77, np.uint8),
    "one-pixel": noise(1, 1, 3),
    "floats": floats(0, 1, 9, 7, 3),
    "wide-floats": floats(-2, 3, 8, 5, 3),
    "constant-floats": np.full((3, 5, 3), 0.3, np.float32),
}
GREYS = {
    "grey": noise(8, 5, 1),
    "grey-floats": floats(-0.5, 1.5, 6, 7, 1),
}
LARGE = {"large": noise(33, 41, 3), "large-floats": floats(0, 1, 31, 13, 3)}
ODD = {"odd": odd_floats()}


def drawn(operation, field, value):
    return f"{operation} {{ {field}_min: {value!r} {field}_max: {value!r} }}"


def point_operations():
    for name, image in {**IMAGES, **GREYS, **LARGE, **ODD}.items():
        for factor in (1.7,) if name in LARGE else (0.4, 1.0, 1.7, -0.5):
            add(
                f"contrast/{name}/{factor}",
                [drawn("contrast", "factor", factor)],
                image,
                tf.image.adjust_contrast(image, factor),
            )
        for delta in () if name in LARGE else (-0.3, 0.1):
            add(
                f"brightness/{name}/{delta}",
                [drawn("brightness", "delta", delta)],
                image,
                tf.image.adjust_brightness(image, delta),
            )
        add(
            f"per_image_standardization/{name}",
            ["per_image_standardization {}"],
            image,
            tf.image.per_image_standardization(image),
        )
    for name, image in {**IMAGES, **ODD}.items():
        for factor in (0.25, 1.0, 1.6, 9.0):
            add(
                f"saturation/{name}/{factor}",
                [drawn("saturation", "factor", factor)],
                image,
                tf.image.adjust_saturation(image, factor),
            )
        # Over the whole colour circle, in both directions.
        for delta in (-1.0, -0.4, 0.05, 0.5, 0.97):
            add(
                f"hue/{name}/{delta}",
                [drawn("hue", "delta", delta)],
                image,
                tf.image.adjust_hue(image, delta),
            )
        if name == "odd":
            continue
        grey = tf.image.rgb_to_grayscale(image)
        add(f"grayscale/{name}", ["grayscale {}"], image, grey)
        add(
            f"grayscale/{name}/3",
            ["grayscale { channels: 3 }"],
            image,
            tf.image.grayscale_to_rgb(grey),
        )
    all_values = np.arange(256, dtype=np.uint8).reshape(16, 16, 1)
    for gamma, gain in ((0.45, 1.0), (1.0, 1.0), (2.2, 1.0), (0.7, 1.3), (3.0, 0.5)):
        transform = f"gamma {{ gamma_min: {gamma} gamma_max: {gamma} gain: {gain} }}"
        for name, image in {
            "all": all_values,
            "floats": IMAGES["floats"],
            "wide-floats": IMAGES["wide-floats"],
            "odd": ODD["odd"],
        }.items():
            add(
                f"gamma/{name}/{gamma}/{gain}",
                [transform],
                image,
                tf.image.adjust_gamma(image, gamma, gain),
            )


def casts():
    all_values = np.arange(256, dtype=np.uint8)
    edges = np.array(
        [-np.inf, -300, -1, -0.9, 0, 0.4, 0.5, 0.99, 1, 1.5, 2.5, 127.5, 254.4, 254.99, 255]
        + [255.49, 255.5, 256, 300, 1e9, 1e20, np.inf, np.nan],
        np.float32,
    )
    add("cast/widen", ["cast { dtype: FLOAT32 }"], all_values, tf.cast(all_values, tf.float32))
    # TensorFlow leaves open what becomes of values that do not fit.
    fitting = np.array([x for x in edges if -1 < x < 256], np.float32)
    add("cast/cut", ["cast { dtype: UINT8 }"], fitting, tf.cast(fitting, tf.uint8))
    add("cast/saturate", ["cast { dtype: UINT8 }"], edges, tf.saturate_cast(edges, tf.uint8))
    add(
        "cast/scale-up",
        ["cast { dtype: FLOAT32 scale: true }"],
        all_values,
        tf.image.convert_image_dtype(all_values, tf.float32),
    )
    unit = np.concatenate([edges / np.float32(255), floats(-0.2, 1.2, 200)]).astype(np.float32)
    add(
        "cast/scale-down",
        ["cast { dtype: UINT8 scale: true }"],
        unit,
        tf.image.convert_image_dtype(unit, tf.uint8, saturate=True),
    )
    whole = np.array(
        [0, 1, -1, 255, 256, 2**24 + 1, 2**53 + 1, -(2**31) - 1, 2**63 - 1, -(2**63)]
        + [2**24 + 3, 2**40 + 2**16, 2**40 + 2**16 + 1, 16777219 * 2**20],
        np.int64,
    )
    add("cast/int64", ["cast { dtype: FLOAT32 }"], whole, tf.cast(whole, tf.float32))
    add("cast/int64-cut", ["cast { dtype: UINT8 }"], whole, tf.saturate_cast(whole, tf.uint8))
    # bfloat16 is the output's type: ties on either side, subnormal numbers, overflow, NaN.
    bits = np.array(
        [0x3F808000, 0x3F818000, 0x3F817FFF, 0x3F808001, 0xBF808000, 0xBF818000, 0x7F7FFFFF]
        + [0x7F7F8000, 0x7F7F7FFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF]
        + [0x00000001, 0x00008000, 0x00018000, 0x007FFFFF, 0x80008001, 0x00000000],
        np.uint32,
    ).view(np.float32)
    for name, value in (("edges", bits), ("noise", floats(-300, 300, 300)), ("all", all_values)):
        add(f"bfloat16/{name}", [], value, tf.cast(value, tf.bfloat16))
    for low, high in ((-0.5, 0.75), (0.0, 2.0)):
        for name, image in {"wide-floats": IMAGES["wide-floats"], **ODD}.items():
            add(
                f"clip_by_value/{name}/{low}",
                [f"clip_by_value {{ min: {low} max: {high} }}"],
                image,
                tf.clip_by_value(image, low, high),
            )
    add(
        "clip_by_value/uint8",
        ["clip_by_value { min: 3 max: 200 }"],
        IMAGES["noise"],
        tf.clip_by_value(IMAGES["noise"], 3, 200),
    )


def labels():
    one = np.array(4, np.int64)
    many = np.array([[0, 5, 2], [-1, 6, 2**40]], np.int64)
    for name, value in (("one", one), ("many", many)):
        add(f"one_hot/{name}", ["one_hot { depth: 6 }"], value, tf.one_hot(value, 6))
        add(
            f"one_hot/{name}/smooth",
            ["one_hot { depth: 6 on_value: 0.9 off_value: 0.02 }"],
            value,
            tf.one_hot(value, 6, on_value=0.9, off_value=0.02),
        )
    keys = np.array([7, -3, 2**62 + 1, 0], np.int64)
    values = np.array([0, 2**62 + 3, -(2**63), 1], np.int64)
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(keys, values), default_value=-1
    )
    value = np.array([0, 7, 7, -3, 2**62 + 1, 2**62, 1, 8], np.int64)
    lists = " ".join(
        [f"keys: {list(map(int, keys))}", f"values: {list(map(int, values))}", "default_value: -1"]
    )
    add("label_map/table", [f"label_map {{ {lists} }}"], value, table.lookup(tf.constant(value)))


def seed_of(pair, epoch, record_id):
    seed = tf.random.fold_in(pair, tf.constant(epoch, tf.int64))
    return tf.random.fold_in(seed, tf.constant(record_id, tf.int64))


def stateless():
    image = noise(6, 5, 3)
    as_floats = floats(0, 1, 4, 3, 3)
    operations = {
        "random_flip {}": tf.image.stateless_random_flip_left_right,
        "random_crop { height: 3 width: 2 }": lambda x, seed: tf.image.stateless_random_crop(
            x, [3, 2, 3], seed
        ),
        "brightness { delta_min: -0.3 delta_max: 0.3 }": lambda x, seed: (
            tf.image.stateless_random_brightness(x, 0.3, seed)
        ),
        "contrast { factor_min: 0.2 factor_max: 1.9 }": lambda x, seed: (
            tf.image.stateless_random_contrast(x, 0.2, 1.9, seed)
        ),
        "saturation { factor_min: 0.1 factor_max: 2.3 }": lambda x, seed: (
            tf.image.stateless_random_saturation(x, 0.1, 2.3, seed)
        ),
        "hue { delta_min: -0.45 delta_max: 0.45 }": lambda x, seed: tf.image.stateless_random_hue(
            x, 0.45, seed
        ),
    }
    places = [(0, 0), (0, 1), (1, 0), (3, 1_281_166), (89, 2**40 + 5)]
    for text, function in operations.items():
        for pair in ((1, 2), (-5, 2**62 + 7)):
            for epoch, record_id in places:
                for value in (image, as_floats):
                    add(
                        f"tf_seed/{text.split()[0]}/{value.dtype.name}/{pair}/{epoch}/{record_id}",
                        [f"{text} tf_seed: {list(pair)}"],
                        value,
                        function(
                            value, seed=seed_of(tf.constant(pair, tf.int64), epoch, record_id)
                        ),
                        epoch,
                        record_id,
                    )


def main(argv):
    global WRITER
    with tf.io.TFRecordWriter(argv[1]) as WRITER:
        write({"tensorflow_version": bytes_feature(tf.__version__.encode())})
        point_operations()
        casts()
        labels()
        stateless()


if __name__ == "__main__":
    main(sys.argv)
