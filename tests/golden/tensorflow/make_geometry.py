"""Makes geometry.tfrecord: what TensorFlow makes of small images, for each geometric operation.

usage: make_geometry.py OUT    (with TensorFlow and NumPy; tests/golden/tensorflow/README.md)

Each record is a tf.train.Example. The first one names the version of TensorFlow. The others are
cases or lists of boxes. In a case, `output` (a systole.v1.Output in textproto), applied to `stored`
or `floats`, gives `want_uint8` or `want_floats` of `want_shape`.
"""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

RANDOM = np.random.RandomState(20)

# Input [height, width], output [height, width], channels. Outputs are larger, smaller, both or the
# same, and some edges have one pixel.
SIZES = [
    ((3, 5), (8, 7), 3),
    ((9, 13), (5, 4), 3),
    ((9, 4), (4, 11), 1),
    ((1, 6), (3, 4), 1),
    ((6, 1), (2, 5), 3),
    ((4, 5), (1, 1), 3),
    ((4, 3), (4, 3), 1),
    ((29, 23), (7, 9), 1),
    ((3, 3), (11, 17), 1),
    ((1, 499), (1, 37), 1),
]
# Method, and whether it antialiases.
METHODS = [
    ("bilinear", True),
    ("nearest", False),
    ("bicubic", True),
    ("area", False),
    ("lanczos3", True),
    ("lanczos5", True),
    ("gaussian", True),
    ("mitchellcubic", True),
]


def pixels(height, width, channels, dtype=np.uint8):
    """A smooth pattern, with noise of half its range added."""
    y, x, c = np.ogrid[:height, :width, :channels]
    smooth = (y * 11 + x * 7 + c * 40) % 256
    image = (smooth + RANDOM.randint(0, 128, (height, width, channels))) % 256
    if dtype == np.float32:
        return (image - 99.25).astype(np.float32) * np.float32(1.37)
    return image.astype(np.uint8)


def ints(values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[int(v) for v in values]))


def floats(values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=[float(v) for v in values]))


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[data]))


class Golden:
    def __init__(self, path):
        self._writer = tf.io.TFRecordWriter(path)
        self.cases = 0
        self.write(tensorflow=text(tf.__version__))

    def write(self, **features):
        example = tf.train.Example(features=tf.train.Features(feature=features))
        self._writer.write(example.SerializeToString(deterministic=True))

    def case(self, transform, image, want):
        """Writes a case: `transform`, in textproto, turns `image` into `want`."""
        want = np.asarray(want)
        shape = " ".join(f"shape: {size}" for size in image.shape)
        dtype = "UINT8" if want.dtype == np.uint8 else "FLOAT32"
        features = {"want_shape": ints(want.shape)}
        if want.dtype == np.uint8:
            features["want_uint8"] = text(want.tobytes())
        else:
            assert want.dtype == np.float32, want.dtype
            features["want_floats"] = floats(want.ravel())
        decode = ""
        if image.dtype == np.uint8:
            decode = "transforms { decode_raw {} } "
            features["stored"] = text(image.tobytes())
        else:
            features["floats"] = floats(image.ravel())
        features["output"] = text(
            f"name: 'x' feature: 'x' dtype: {dtype} {shape} {decode}transforms {{ {transform} }}"
        )
        self.write(**features)
        self.cases += 1

    def close(self):
        self._writer.close()


def size_text(size):
    return f"height: {size[0]} width: {size[1]}"


def resizes(golden):
    for method, antialiases in METHODS:
        for antialias in (False, True) if antialiases else (False,):
            fields = f"method: {method.upper()}" + (" antialias: true" if antialias else "")
            for source, size, channels in SIZES:
                image = pixels(*source, channels)
                want = tf.image.resize(image, size, method=method, antialias=antialias)
                golden.case(f"resize {{ {size_text(size)} {fields} }}", image, want)
            image = pixels(8, 5, 3, np.float32)
            want = tf.image.resize(image, (5, 9), method=method, antialias=antialias)
            golden.case(f"resize {{ height: 5 width: 9 {fields} }}", image, want)
            for limits in ((4, 6), (10, 9), (5, 40)):
                image = pixels(5, 7, 1)
                want = tf.image.resize(
                    image, limits, method=method, antialias=antialias, preserve_aspect_ratio=True
                )
                golden.case(
                    f"resize {{ {size_text(limits)} {fields} preserve_aspect_ratio: true }}",
                    image,
                    want,
                )


def tf1_resizes(golden):
    v1 = tf.compat.v1.image
    for method, resize in (
        ("BILINEAR", v1.resize_bilinear),
        ("NEAREST", v1.resize_nearest_neighbor),
        ("BICUBIC", v1.resize_bicubic),
    ):
        fields = f"method: {method} sampling: TF1"
        for source, size, channels in SIZES:
            image = pixels(*source, channels)
            want = resize(image[None], size)[0]
            golden.case(f"resize {{ {size_text(size)} {fields} }}", image, want)
        image = pixels(8, 5, 3, np.float32)
        want = resize(image[None], (5, 9))[0]
        golden.case(f"resize {{ height: 5 width: 9 {fields} }}", image, want)
    image = pixels(9, 5, 3)
    want = v1.resize_image_with_pad(image, 8, 7, method=tf.image.ResizeMethod.BICUBIC)
    golden.case("resize_with_pad { height: 8 width: 7 method: BICUBIC sampling: TF1 }", image, want)


def resizes_with_pad(golden):
    for source, size in (
        ((4, 9), (8, 8)),
        ((9, 4), (6, 11)),
        ((5, 5), (7, 7)),
        ((7, 13), (5, 5)),
        ((3, 3), (3, 3)),
        ((1, 4), (9, 6)),
        # floor(27 / (27 / 23)) is 22 in f32.
        *(((11, side), (11, 23)) for side in (27, 29, 31)),
    ):
        for method in ("bilinear", "nearest", "area", "lanczos3"):
            image = pixels(*source, 1)
            want = tf.image.resize_with_pad(image, *size, method=method)
            golden.case(
                f"resize_with_pad {{ {size_text(size)} method: {method.upper()} }}", image, want
            )
    image = pixels(17, 12, 3)
    want = tf.image.resize_with_pad(image, 7, 9, antialias=True)
    golden.case("resize_with_pad { height: 7 width: 9 antialias: true }", image, want)


def windows(golden):
    for source in ((5, 8), (8, 5), (6, 6)):
        for size in ((5, 8), (4, 5), (9, 11), (2, 13), (10, 3)):
            image = pixels(*source, 3)
            want = tf.image.resize_with_crop_or_pad(image, *size)
            golden.case(f"crop_or_pad {{ {size_text(size)} }}", image, want)
    for source in ((13, 17), (8, 6), (1, 1), (5, 4), (100, 1)):
        for fraction in (0.5, 0.875, 0.33, 0.1, 1.0, 0.6666, 0.29):
            image = pixels(*source, 1)
            want = tf.image.central_crop(image, fraction)
            golden.case(f"central_crop {{ fraction: {fraction} }}", image, want)
    image = pixels(7, 9, 3)
    for y, x, height, width in ((0, 0, 7, 9), (2, 3, 4, 5), (6, 8, 1, 1)):
        fields = f"{size_text((height, width))} offset_height: {y} offset_width: {x}"
        want = tf.image.crop_to_bounding_box(image, y, x, height, width)
        golden.case(f"crop {{ {fields} }}", image, want)
    for y, x, height, width in ((0, 0, 7, 9), (2, 0, 9, 11), (1, 3, 8, 14)):
        fields = f"{size_text((height, width))} offset_height: {y} offset_width: {x}"
        want = tf.image.pad_to_bounding_box(image, y, x, height, width)
        golden.case(f"pad {{ {fields} }}", image, want)


def turns(golden):
    for image in (pixels(4, 6, 3), pixels(5, 3, 1), pixels(3, 4, 3, np.float32)):
        golden.case("flip_left_right {}", image, tf.image.flip_left_right(image))
        golden.case("flip_up_down {}", image, tf.image.flip_up_down(image))
        golden.case("transpose {}", image, tf.image.transpose(image))
        for k in (1, 2, 3):
            golden.case(f"rot90 {{ k: {k} }}", image, tf.image.rot90(image, k))


def padded_centre(size, height, width):
    """The evaluation crop of the reference TPU ResNet, with its operations and types."""
    crop = tf.cast((size / (size + 32)) * tf.cast(tf.minimum(height, width), tf.float32), tf.int32)
    return int(((height - crop) + 1) // 2), int(((width - crop) + 1) // 2), int(crop)


def tpu_resnet(golden):
    rows = []
    for _ in range(300):
        size, height, width = (int(v) for v in RANDOM.randint([8, 8, 8], [600, 2000, 2000]))
        rows += [size, height, width, *padded_centre(size, height, width)]
    golden.write(padded_centres=ints(rows))
    for height, width in ((40, 33), (31, 57)):
        image = pixels(height, width, 1)
        y, x, crop = padded_centre(24, height, width)
        part = image[y : y + crop, x : x + crop]
        want = tf.compat.v1.image.resize_bicubic(part[None], (24, 24))[0]
        golden.case(
            "center_crop { height: 24 width: 24 rule: TPU_RESNET method: BICUBIC sampling: TF1 }",
            image,
            want,
        )


def boxes(golden):
    # min_object_covered, aspect, area, attempts: the defaults, the TPU ResNet's, and some that
    # often fail.
    for covered, aspect, area, attempts in (
        (0.1, (0.75, 1.33), (0.05, 1.0), 100),
        (0.1, (3.0 / 4, 4.0 / 3), (0.08, 1.0), 10),
        (0.5, (0.75, 1.33), (0.05, 1.0), 3),
        (0.0, (2.0, 3.0), (0.5, 1.0), 4),
        (0.0, (1.0, 1.0), (0.3, 0.3), 10),
        (0.9, (0.5, 2.0), (0.9, 1.0), 5),
    ):
        rows = []
        for _ in range(80):
            height, width = (int(v) for v in RANDOM.randint(1, RANDOM.choice([8, 60, 3000]), 2))
            seed = [int(v) for v in RANDOM.randint(-(2**31), 2**31, 2)]
            begin, size, _ = tf.image.stateless_sample_distorted_bounding_box(
                [height, width, 3],
                tf.constant([[[0.0, 0.0, 1.0, 1.0]]]),
                seed,
                min_object_covered=covered,
                aspect_ratio_range=aspect,
                area_range=area,
                max_attempts=attempts,
            )
            begin, size = begin.numpy(), size.numpy()
            rows += [height, width, *seed, begin[0], begin[1], size[0], size[1]]
        golden.write(
            boxes=ints(rows), ranges=floats([covered, *aspect, *area]), attempts=ints([attempts])
        )


def main(argv):
    golden = Golden(argv[1])
    resizes(golden)
    tf1_resizes(golden)
    resizes_with_pad(golden)
    windows(golden)
    turns(golden)
    tpu_resnet(golden)
    boxes(golden)
    golden.close()
    print(f"{golden.cases} cases, TensorFlow {tf.__version__}")


if __name__ == "__main__":
    main(sys.argv)
