"""NVIDIA DALI with the CPU backend, set up as in its ResNet-50 examples: TFRecord reader, fused
decode of a random crop, resize, crop_mirror_normalize."""

import os
import subprocess
import sys

import numpy as np
import nvidia.dali as dali
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali import tfrecord

import measuring

# A feature of bytes: an encoded image, or raw values.
BYTES = tfrecord.FixedLenFeature((), tfrecord.string, "")


def _indexes(files, work):
    """Runs DALI's own tool to make the index files that DALI's reader needs. Each line of such a
    file is the offset and the size of a record."""
    paths = []
    os.makedirs(work, exist_ok=True)
    for file in files:
        path = os.path.join(work, os.path.basename(file) + ".dali")
        if not os.path.exists(path):
            tool = os.path.join(os.path.dirname(sys.executable), "tfrecord2idx")
            subprocess.run([sys.executable, tool, file, path], check=True,
                           stdout=subprocess.DEVNULL)
        paths.append(path)
    return paths


def _graph(files, indexes, name, kind, make):
    records = fn.readers.tfrecord(
        path=files,
        index_path=indexes,
        features={
            name: kind,
            "label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
        },
        random_shuffle=True,
        initial_fill=1024,
        name="Reader")
    return make(records[name]), records["label"]


def batches(options, make, name="image", kind=BYTES, conditionals=False):
    """Yields the batches as arrays, without end. make(values) applies the operators to the
    values of the feature `name`, whose type is `kind`. `conditionals` must be true if `make`
    chooses among operators for each example."""
    pipeline = pipeline_def(_graph, enable_conditionals=conditionals)(
        options.files, _indexes(options.files, options.work), name, kind, make,
        batch_size=options.batch,
        num_threads=options.threads,
        device_id=None,
        seed=7)
    pipeline.build()
    while True:
        values, _ = pipeline.run()
        yield np.asarray(values.as_tensor())


def random_part(encoded):
    """Decodes the part of an image that the common crop rule draws."""
    return fn.decoders.image_random_crop(
        encoded,
        device="cpu",
        output_type=types.RGB,
        random_area=measuring.AREA,
        random_aspect_ratio=measuring.ASPECT,
        num_attempts=10)


def _image(encoded):
    images = fn.resize(random_part(encoded), size=(measuring.SIZE, measuring.SIZE),
                       interp_type=types.INTERP_LINEAR, antialias=False)
    return fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="HWC",
        mirror=fn.random.coin_flip(probability=0.5),
        mean=[measuring.MEAN] * 3,
        std=[measuring.STDDEV] * 3)


def main():
    options = measuring.arguments(__doc__)
    if options.dtype != "f32":
        raise SystemExit("numpy has no bfloat16, and DALI hands its batches over by numpy")
    measuring.report("DALI CPU", dali.__version__,
                     f"decoders.image_random_crop; {options.threads} threads, default executor",
                     batches(options, _image), options)


if __name__ == "__main__":
    main()
