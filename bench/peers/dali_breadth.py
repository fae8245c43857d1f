"""DALI on CPU for the pipelines of bench/breadth_rows.cc, by name, set up as in dali_cpu.py.

DALI has no operator with the TPU ResNet's crop rule or the pixel positions of TensorFlow 1, and
none for mixup or CutMix. Its decoder keeps images only in the memory of a GPU. So crop_tpu_resnet,
mix and resize_cached are left out."""

import dali_cpu
import measuring
import nvidia.dali as dali
from nvidia.dali import fn, tfrecord, types
from nvidia.dali.auto_aug import trivial_augment

_SIZE = (measuring.SIZE, measuring.SIZE)
_MEAN = [255 * mean for mean in measuring.CHANNEL_MEAN]
_STDDEV = [255 * stddev for stddev in measuring.CHANNEL_STDDEV]


def _decode(encoded):
    return fn.decoders.image(encoded, device="cpu", output_type=types.RGB)


def _central_part(encoded):
    bound = fn.peek_image_shape(encoded)[:2]
    side = fn.cast(0.875 * dali.math.min(bound[0], bound[1]), dtype=types.INT32)
    return fn.decoders.image_slice(
        encoded,
        device="cpu",
        output_type=types.RGB,
        start=fn.cast((bound - side + 1) // 2, dtype=types.INT32),
        shape=fn.stack(side, side),
        axis_names="HW",
    )


def _resize(images):
    return fn.resize(images, size=_SIZE, interp_type=types.INTERP_LINEAR, antialias=False)


def _resize_antialias(images):
    return fn.resize(images, size=_SIZE, interp_type=types.INTERP_LINEAR)


def _resize_lanczos3(images):
    return fn.resize(images, size=_SIZE, interp_type=types.INTERP_LANCZOS3, antialias=False)


def _resize_to_fit(images):
    return fn.resize(
        images, size=_SIZE, mode="not_larger", interp_type=types.INTERP_LINEAR, antialias=False
    )


def _normalize(images, **more):
    return fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="HWC", mean=_MEAN, std=_STDDEV, **more
    )


def _coin():
    return fn.random.coin_flip(probability=0.5)


def _flip(images):
    return fn.flip(images, horizontal=_coin())


def _flip_and_normalize(images):
    return _normalize(images, mirror=_coin())


def _pad_and_normalize(images):
    # The margin is black, as in Systole. DALI fills it after the normalisation, so black is not 0.
    black = [-mean / stddev for mean, stddev in zip(_MEAN, _STDDEV, strict=True)]
    return _normalize(images, crop=_SIZE, out_of_bounds_policy="pad", fill_values=black)


def _to_unit(images, **more):
    return fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="HWC", std=[255.0] * 3, **more
    )


def _flip_to_unit(images):
    return _to_unit(images, mirror=_coin())


def _standardize(images):
    return fn.normalize(images, dtype=types.FLOAT)


def _colours(images):
    return fn.color_twist(
        images,
        brightness=fn.random.uniform(range=(0.875, 1.125)),
        contrast=fn.random.uniform(range=(0.5, 1.5)),
        saturation=fn.random.uniform(range=(0.5, 1.5)),
        hue=fn.random.uniform(range=(-72.0, 72.0)),  # Degrees: a fifth of the circle.
    )


def _augment(images):
    # Pixels outside of the image are black, as in Systole and torchvision. DALI's default is grey.
    return trivial_augment.trivial_augment_wide(images, fill_value=0)


def _tiny_image(values):
    return fn.reshape(values, shape=[32, 32, 3], layout="HWC")


def _shifted(images):
    return fn.slice(
        images,
        start=fn.random.uniform(values=list(range(-4, 5)), shape=[2], dtype=types.INT32),
        shape=[32, 32],
        axis_names="HW",
        out_of_bounds_policy="pad",
    )


# What is done to the bytes of an image, in order.
IMAGES = {
    "crop": (dali_cpu.random_part, _resize, _flip_and_normalize),
    "crop_antialias": (dali_cpu.random_part, _resize_antialias, _flip_and_normalize),
    "center_crop": (_central_part, _resize, _normalize),
    "center_crop_antialias": (_central_part, _resize_antialias, _normalize),
    "resize": (_decode, _resize, _to_unit),
    "resize_with_pad": (_decode, _resize_to_fit, _pad_and_normalize),
    "resize_lanczos3": (_decode, _resize_lanczos3, _flip_and_normalize),
    "standardize": (dali_cpu.random_part, _resize, _standardize, _flip),
    "colours": (dali_cpu.random_part, _resize, _colours, _flip_to_unit),
    "trivial_augment": (dali_cpu.random_part, _resize, _flip, _augment, _normalize),
    "large": (dali_cpu.random_part, _resize, _flip_and_normalize),
    "png": (_decode, _resize, _flip_and_normalize),
    "raw": (_tiny_image, _shifted, _flip_to_unit),
}


def _padded(values):
    return fn.pad(values, axes=[0], shape=[128])


def _as_it_is(values):
    return values


# The feature, its kind, and what is done to its values.
LISTS = {
    "tokens": ("tokens", tfrecord.VarLenFeature(tfrecord.int64, 0), _padded),
    "tables": ("row", tfrecord.FixedLenFeature([20], tfrecord.float32, 0.0), _as_it_is),
}


def _made_by(steps):
    def make(values):
        for step in steps:
            values = step(values)
        return values

    return make


def _batches(options):
    if options.pipeline in LISTS:
        name, kind, make = LISTS[options.pipeline]
        return dali_cpu.batches(options, make, name, kind)
    return dali_cpu.batches(
        options,
        _made_by(IMAGES[options.pipeline]),
        conditionals=options.pipeline == "trivial_augment",
    )


def main():
    options = measuring.arguments(
        __doc__, pipeline={"choices": sorted([*IMAGES, *LISTS]), "required": True}
    )
    measuring.report(
        "DALI CPU",
        dali.__version__,
        f"CPU operators; {options.threads} threads, default executor",
        _batches(options),
        options,
    )


if __name__ == "__main__":
    main()
