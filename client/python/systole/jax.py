"""Feeds for JAX: each batch as global `jax.Array`s over a sharding.

sharding = NamedSharding(mesh, PartitionSpec("data"))
for batch in systole.jax.device_prefetch(feed, sharding):
    state = train_step(state, batch["image"], batch["label"])
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import jax
import numpy as np
from systole import _device_prefetch, _errors
from systole._batch import AnyBatch, ArraySpec
from systole._device_prefetch import Batches


class Device(Protocol):
    """Stands for jax.Device, which mypy does not take as a type."""

    @property
    def platform(self) -> str: ...


# One sharding for all arrays, or a dict from names of arrays to shardings. Arrays that the dict
# does not name are left out of the batch. A device in place of a sharding puts the whole array on
# this device.
Shardings = Device | jax.sharding.Sharding | Mapping[str, Device | jax.sharding.Sharding]


def _sharding(where: str, given: object) -> jax.sharding.Sharding:
    if isinstance(given, jax.Device):
        return jax.sharding.SingleDeviceSharding(given)
    if isinstance(given, jax.sharding.Sharding):
        return given
    raise _errors.WrongType(
        f"{where} is {given!r}; want a sharding, such as NamedSharding(mesh, "
        "PartitionSpec('data')), a device, or a dict of them by the names of arrays"
    )


class DeviceBatch(Mapping[str, jax.Array]):
    """A batch on devices: a mapping from names to global arrays, with its step and epoch. To
    pass it to a function of jax.jit, write dict(batch).
    """

    def __init__(self, step: int, epoch: int, arrays: dict[str, jax.Array]) -> None:
        self.step = step
        self.epoch = epoch
        self._arrays = arrays

    def __getitem__(self, name: str) -> jax.Array:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


def to_devices(batch: AnyBatch, shardings: Shardings) -> DeviceBatch:
    """Puts a batch on devices. Returns before the transfers are done. The batch's memory is kept
    until they are done.

    The sharding's own index map says which examples go to which device. Each device gets a view of
    the batch, so nothing is joined or copied first. Several devices may get the same examples. With
    several processes, each process puts the examples of its feed on its own devices.

    Raises InvalidSpec if a device of this process needs examples that this process's feed does not
    have.
    """
    arrays = {}
    for name, spec in batch.element_spec.items():
        given = shardings.get(name) if isinstance(shardings, Mapping) else shardings
        if given is not None or not isinstance(shardings, Mapping):
            sharding = _sharding(f"the sharding of {name!r}", given)
            arrays[name] = _global_array(batch, spec, sharding)
    return DeviceBatch(batch.step, batch.epoch, arrays)


def _global_array(batch: AnyBatch, spec: ArraySpec, sharding: jax.sharding.Sharding) -> jax.Array:
    axis = spec.batch_axis
    per_core = spec.per_core_shape[axis]
    shape = list(spec.per_core_shape)
    shape[axis] = per_core * batch.total_cores
    places = sharding.addressable_devices_indices_map(tuple(shape))
    parts = []
    for device, index in places.items():
        index = index if index is not None else (slice(None),) * len(shape)
        rows = index[axis].indices(shape[axis])
        part = _examples(batch, spec, rows[0], rows[1], device)
        rest = tuple(slice(None) if i == axis else one for i, one in enumerate(index))
        parts.append(part[rest])
    on_devices = jax.device_put(parts, list(places))
    return jax.make_array_from_single_device_arrays(tuple(shape), sharding, on_devices)


def _examples(
    batch: AnyBatch, spec: ArraySpec, begin: int, end: int, device: Any
) -> np.ndarray[Any, Any]:
    """The examples [begin, end) of the global batch: a view if they lie in one piece of memory,
    otherwise a copy.

    With layout HWCN_TILED, `begin` and `end` count tiles. A core has a whole number of tiles.
    """
    per_core = spec.per_core_shape[spec.batch_axis]
    first, last = (core * per_core for core in batch.cores)
    if begin < first or end > last:
        raise _errors.InvalidSpec(
            f"{device} needs examples {begin}:{end} of {spec.name!r}, but this process' feed has "
            f"{first}:{last} (cores {batch.cores[0]} to {batch.cores[1] - 1}): give the feed the "
            "cores whose examples the sharding puts on this process' devices, or change the mesh"
        )
    if spec.batch_axis == 0:
        return np.asarray(batch[spec.name])[begin - first : end - first]
    parts = []
    for core in range(begin // per_core, math.ceil(end / per_core)):
        at = core * per_core
        wanted = slice(max(begin - at, 0), min(end - at, per_core))
        before = (slice(None),) * spec.batch_axis
        parts.append(np.asarray(batch.core_array(spec.name, core))[(*before, wanted)])
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=spec.batch_axis)


class DevicePrefetch(_device_prefetch.DevicePrefetch[DeviceBatch]):
    def __init__(self, batches: Batches, shardings: Shardings, size: int = 2) -> None:
        super().__init__(batches, size)
        given = shardings if isinstance(shardings, Mapping) else {"shardings": shardings}
        for name, one in given.items():
            _sharding(name, one)
        self._shardings = shardings

    def _begin(self, batch: AnyBatch) -> DeviceBatch:
        return to_devices(batch, self._shardings)

    def _end(self, begun: DeviceBatch) -> DeviceBatch:
        return begun


def device_prefetch(batches: Batches, shardings: Shardings, size: int = 2) -> DevicePrefetch:
    """Double-buffered transfer: batch n + 1 travels while the trainer works on batch n.

    batches:   a feed, or feed.steps(). Each loop over a feed gives one epoch. A loop over
               feed.steps() gives all steps that are left, over all epochs
    """
    return DevicePrefetch(batches, shardings, size)
