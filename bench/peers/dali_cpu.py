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


def _indexes(files, work):
    """Runs DALI's own tool to make the files of (offset, size) lines that DALI's reader needs."""
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


@pipeline_def
def _pipeline(files, indexes):
    records = fn.readers.tfrecord(
        path=files,
        index_path=indexes,
        features={
            "image": tfrecord.FixedLenFeature((), tfrecord.string, ""),
            "label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
        },
        random_shuffle=True,
        initial_fill=1024,
        name="Reader")
    images = fn.decoders.image_random_crop(
        records["image"],
        device="cpu",
        output_type=types.RGB,
        random_area=measuring.AREA,
        random_aspect_ratio=measuring.ASPECT,
        num_attempts=10)
    images = fn.resize(images, size=(measuring.SIZE, measuring.SIZE),
                       interp_type=types.INTERP_LINEAR, antialias=False)
    images = fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="HWC",
        mirror=fn.random.coin_flip(probability=0.5),
        mean=[measuring.MEAN] * 3,
        std=[measuring.STDDEV] * 3)
    return images, records["label"]


def main():
    options = measuring.arguments(__doc__)
    if options.dtype != "f32":
        raise SystemExit("numpy has no bfloat16, and DALI hands its batches over by numpy")
    pipeline = _pipeline(
        options.files,
        _indexes(options.files, options.work),
        batch_size=options.batch,
        num_threads=options.threads,
        device_id=None,
        seed=7)
    pipeline.build()

    def batches():
        while True:
            images, _ = pipeline.run()
            yield np.asarray(images.as_tensor())

    measuring.report("DALI CPU", dali.__version__,
                     f"decoders.image_random_crop; {options.threads} threads, default executor",
                     batches(), options)


if __name__ == "__main__":
    main()
