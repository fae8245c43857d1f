"""Feeds for TensorFlow.

for batch in systole.tensorflow.dataset(feed):
    train_step(batch["image"], batch["label"])
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from systole._any_feed import AnyFeed
from systole._array import Array
from systole._batch import AnyBatch
from systole._errors import InvalidSpec


def _spec(name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    return tf.TensorSpec(shape, tf.dtypes.as_dtype(dtype), name)


def dataset(feed: AnyFeed[Any]) -> Any:
    """The feed as a tf.data.Dataset of dicts. An iteration is one epoch of the feed.

    tf.data copies each batch once. In a loop in eager Python, to_tensors() avoids that copy. The
    dataset's cardinality is unknown, because an iteration gives the rest of an epoch.
    """
    joined = {
        name: _spec(name, spec.dtype, spec.shape)
        for name, spec in feed.element_spec.items()
        if spec.shape is not None
    }

    def batches() -> Iterator[dict[str, np.ndarray[Any, Any]]]:
        for batch in feed:
            yield {name: np.asarray(batch[name]) for name in joined}

    return tf.data.Dataset.from_generator(batches, output_signature=joined)


# TensorFlow's kernels end the process if a tensor does not begin at a multiple of this.
_ALIGNMENT = 64


def to_tensor(array: Array) -> Any:
    """The array as an eager tensor, in the feed's own memory, without a copy.

    Two kinds of arrays are copied: those that do not begin at a multiple of 64 bytes, such as a
    small part of a single core, and those that __dlpack__() has to copy, such as a flipped array.
    """
    if array.__array_interface__["data"][0] % _ALIGNMENT != 0:
        return tf.constant(np.asarray(array))
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())


def to_tensors(batch: AnyBatch) -> dict[str, Any]:
    """The batch's arrays as eager tensors, without a copy.

    With the examples in the last dimension, the parts of several cores are not one array. Then use
    to_tensor() on each core's part.
    """
    return {name: to_tensor(batch[name]) for name in batch}


def per_replica(batch: AnyBatch, strategy: Any) -> dict[str, Any]:
    """One core's part for each of the strategy's local replicas, in order, for strategy.run().

    Raises InvalidSpec if the feed does not have as many cores as there are local replicas.
    """
    cores = batch.per_core()
    replicas = strategy.extended.worker_devices
    if len(cores) != len(replicas):
        raise InvalidSpec(
            f"the strategy has {len(replicas)} replicas here, the batch {len(cores)} cores: open "
            "the feed with as many cores as replicas"
        )
    return {
        name: strategy.experimental_distribute_values_from_function(
            lambda context, name=name: to_tensor(
                cores[context.replica_id_in_sync_group % len(cores)][name]
            )
        )
        for name in batch
    }
