"""The arrays of a batch: NumPy arrays that other array libraries can take without a copy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from systole import _systole

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
# DLPack's codes: https://dmlc.github.io/dlpack/latest/c_api.html
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
_CODE_BFLOAT16 = 4
_CPU = (1, 0)

DTYPES = {
    "uint8": np.dtype(np.uint8),
    "int32": np.dtype(np.int32),
    "int64": np.dtype(np.int64),
    "float32": np.dtype(np.float32),
    "bfloat16": _BFLOAT16,
    "float16": np.dtype(np.float16),
}


class Array(np.ndarray[Any, Any]):
    """A NumPy array in a feed's memory. torch.from_dlpack, jax.dlpack.from_dlpack and
    tf.experimental.dlpack take it without a copy, also in bfloat16, which NumPy cannot export.
    The memory goes back to the feed when no array or tensor uses it any more.
    """

    def __dlpack_device__(self) -> Any:
        return _CPU

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if dl_device is not None and tuple(dl_device) != _CPU:
            raise BufferError(f"the array is in host memory, not on device {tuple(dl_device)}")
        memory = memory_of(self)
        array: np.ndarray[Any, Any] = self
        size = array.dtype.itemsize
        # PyTorch takes no array that goes backwards through memory, such as a flipped one.
        if memory is None or copy or any(step < 0 or step % size != 0 for step in array.strides):
            if copy is False:
                raise BufferError(
                    "this array can only be passed on as a copy: it is not in a feed's memory, or "
                    "does not go forwards through it by whole elements; leave out copy=False"
                )
            memory, array = _copied(self)
        if array.dtype == _BFLOAT16:
            code = _CODE_BFLOAT16
        elif array.dtype.isnative and array.dtype.kind in _CODES:
            code = _CODES[array.dtype.kind]
        else:
            raise BufferError(f"DLPack has no code for dtype {array.dtype}")
        versioned = max_version is not None and max_version[0] >= 1
        read_only = not array.flags.writeable
        if read_only and not versioned:
            raise BufferError("a read-only array needs a consumer that knows DLPack 1.0")
        return memory.to_dlpack(
            array.__array_interface__["data"][0],
            list(array.shape),
            [stride // size for stride in array.strides],
            code,
            size * 8,
            versioned,
            read_only,
        )


def memory_of(array: np.ndarray[Any, Any]) -> _systole.Memory | None:
    """The feed's memory that the array is a view of; None if the array has its own memory."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return base if isinstance(base, _systole.Memory) else None


def _copied(array: np.ndarray[Any, Any]) -> tuple[_systole.Memory, np.ndarray[Any, Any]]:
    memory = _systole.Memory.allocate(max(array.nbytes, 1))
    copy = array_at(memory, 0, array.dtype, array.shape)
    copy[...] = array
    return memory, copy


def array_at(
    memory: _systole.Memory, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> Array:
    """The array at `offset` bytes of the memory."""
    buffer: Any = memory  # Has the buffer protocol. Only Python 3.12 has a type for that.
    return Array(shape, dtype, buffer, offset)
