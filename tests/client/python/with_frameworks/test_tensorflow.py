"""systole.tensorflow: datasets, tensors without a copy, parts for replicas."""

from __future__ import annotations

import gc

import numpy as np
import pytest

# isort: off
# Tests of PyTorch run in this process too. PyTorch's Triton and TensorFlow each bring LLVM. If
# Triton is loaded after TensorFlow, LLVM ends the process.
import triton._C.libtriton  # noqa: F401
import tensorflow as tf

# isort: on

import systole
import systole.tensorflow
from conftest import image, spec_text

# MirroredStrategy needs two devices. They must be set before TensorFlow starts.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)

OUTPUTS = (
    image("half", "BFLOAT16", "NHWC")
    + image("whole", "FLOAT32", "NCHW")
    + image("bytes", "UINT8", "NHWC")
)


@pytest.fixture
def open_feed(shards, write_spec):
    feeds = []

    def open_it(outputs=OUTPUTS, **options):
        spec = write_spec(spec_text(outputs))
        feeds.append(systole.LocalFeed(shards, spec, threads=2, **options))
        return feeds[-1]

    yield open_it
    for feed in feeds:
        feed.close()


def address(tensor) -> int:
    """The address of the tensor's values."""
    return np.from_dlpack(tensor).ctypes.data


def test_tensors_are_in_the_feeds_memory(open_feed):
    batch = next(open_feed())
    tensors = systole.tensorflow.to_tensors(batch)
    assert sorted(tensors) == sorted(batch)
    for name, tensor in tensors.items():
        assert tensor.dtype == tf.as_dtype(batch[name].dtype)
        assert tuple(tensor.shape) == batch[name].shape
        assert tensor.numpy().tobytes() == batch[name].tobytes()
        # A value written into the array is in the tensor, because they share memory.
        batch[name].reshape(-1)[:1] = 1
        assert tensor.numpy().tobytes() == batch[name].tobytes()
    for name in ("whole", "label", "id"):
        assert address(tensors[name]) == batch[name].ctypes.data


def test_tensors_outlive_batch_and_feed(open_feed):
    feed = open_feed()
    batch = next(feed)
    wanted = {name: batch[name].tobytes() for name in batch}
    tensors = systole.tensorflow.to_tensors(batch)
    del batch
    for _ in feed:
        pass
    feed.close()
    gc.collect()
    assert {name: tensor.numpy().tobytes() for name, tensor in tensors.items()} == wanted


def test_to_tensor_accepts_unaligned_arrays_of_single_cores(open_feed):
    # The labels of a core take 16 bytes, so the labels of most cores do not begin at a multiple of
    # 64 bytes. TensorFlow would end the process if a tensor began at such a place.
    for part in next(open_feed()).per_core():
        for array in part.values():
            tensor = systole.tensorflow.to_tensor(array)
            total = tf.reduce_sum(tf.cast(tensor, tf.float64))
            assert np.isclose(float(total), array.astype(np.float64).sum())


def test_each_iteration_of_a_dataset_is_one_epoch(open_feed):
    wanted = open_feed()
    dataset = systole.tensorflow.dataset(open_feed())
    assert dataset.element_spec["half"] == tf.TensorSpec((16, 40, 32, 3), tf.bfloat16, "half")
    for _ in range(2):
        got = list(dataset)
        arrays = list(wanted)
        assert len(got) == len(arrays) == 6
        for tensors, batch in zip(got, arrays, strict=True):
            for name in batch:
                assert tensors[name].numpy().tobytes() == batch[name].tobytes()
    assert list(dataset) == []


def test_a_dataset_starts_at_the_current_step_of_its_feed(open_feed):
    feed = open_feed()
    ids = [batch["id"].tolist() for batch in open_feed()]
    dataset = systole.tensorflow.dataset(feed)
    feed.skip_to(4)
    assert [batch["id"].numpy().tolist() for batch in dataset] == ids[4:]
    feed.skip_to(0)
    assert [batch["id"].numpy().tolist() for batch in dataset] == ids


def test_a_dataset_leaves_out_outputs_that_are_not_a_single_array(open_feed):
    feed = open_feed(image("last", "UINT8", "HWCN"))
    assert sorted(systole.tensorflow.dataset(feed).element_spec) == ["id", "label", "valid"]
    one = open_feed(image("last", "UINT8", "HWCN"), cores=(0, 1))
    batch = next(iter(systole.tensorflow.dataset(one)))
    assert batch["last"].shape == (40, 32, 3, 4)


def test_keras_trains_from_a_dataset(open_feed):
    outputs = image("image", "FLOAT32", "NHWC")
    dataset = systole.tensorflow.dataset(open_feed(outputs))
    model = tf.keras.Sequential(
        [tf.keras.layers.Flatten(), tf.keras.layers.Dense(5, activation="softmax")]
    )
    model.compile("sgd", "sparse_categorical_crossentropy")
    pairs = dataset.map(lambda batch: (batch["image"], batch["label"]))
    history = model.fit(pairs, epochs=2, verbose=0)
    assert len(history.history["loss"]) == 2


@pytest.mark.parametrize("devices", [["CPU:0"], ["CPU:0", "CPU:1"]])
def test_each_replica_gets_its_core(devices, open_feed):
    strategy = tf.distribute.MirroredStrategy(devices)
    assert strategy.num_replicas_in_sync == len(devices)
    feed = open_feed(cores=(1, 1 + len(devices)))
    for batch in feed:
        parts = systole.tensorflow.per_replica(batch, strategy)
        for name in batch:
            for i, local in enumerate(strategy.experimental_local_results(parts[name])):
                wanted = batch.core_array(name, 1 + i)
                assert local.numpy().tobytes() == wanted.tobytes()
        sums = strategy.run(tf.reduce_sum, args=(parts["id"],))
        total = strategy.reduce("SUM", sums, axis=None)
        assert int(total) == batch["id"].sum()


def test_one_device_strategy_gets_the_batch_of_its_core(open_feed):
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    batch = next(open_feed(cores=(3, 4)))
    parts = systole.tensorflow.per_replica(batch, strategy)
    assert strategy.run(lambda x: x, args=(parts["id"],)).numpy().tolist() == batch["id"].tolist()


def test_replicas_and_cores_must_be_as_many(open_feed):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with pytest.raises(ValueError, match="2 replicas here, the batch 4 cores"):
        systole.tensorflow.per_replica(next(open_feed()), strategy)
