"""Runs a function in another process. Arrays travel through memory that both processes share.

The memory is a file without a name (memfd_create). The kernel frees the file when no process uses
it any more, even if a process is killed. A pipe carries the calls: the names, shapes and dtypes of
the arrays, but not their bytes.
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Mapping
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from systole import _errors

# The place of each array in shared memory: name, dtype, shape, first byte.
Layout = list[tuple[str, np.dtype[Any], tuple[int, ...], int]]
_ALIGNMENT = 64
_END_SECONDS = 5.0


class FarBatch(dict[str, np.ndarray[Any, Any]]):
    """What the function gets in the other process as a batch."""

    def __init__(self, step: int, epoch: int, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
        super().__init__(arrays)
        self.step = step
        self.epoch = epoch


def _layout_of(arrays: Mapping[str, np.ndarray[Any, Any]]) -> tuple[Layout, int]:
    layout: Layout = []
    size = 0
    for name, array in arrays.items():
        layout.append((name, array.dtype, array.shape, size))
        size += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    return layout, size


class _SharedMemory:
    """Memory for the batches that go to the process, or for the results that come back. The parent
    makes the memory and sends the memory's file to the process. If a batch or a result does not
    fit, the parent makes larger memory and sends the new file."""

    def __init__(self) -> None:
        self._map: mmap.mmap | None = None
        self.size = 0

    def make(self, size: int) -> int:
        """Makes the memory, and returns its file, which the caller closes."""
        file = os.memfd_create("systole.map", os.MFD_CLOEXEC)
        try:
            os.posix_fallocate(file, 0, size)
            self.take(file, size)
        except OSError as error:
            os.close(file)
            raise _errors.ResourceExhausted(
                f"there is no memory for the {size} bytes of a batch that systole.map sends to a "
                f"process ({error.strerror}): use fewer processes, or workers"
            ) from error
        return file

    def take(self, file: int, size: int) -> None:
        self._map = mmap.mmap(file, size)
        self.size = size

    def array(
        self, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int
    ) -> np.ndarray[Any, Any]:
        assert self._map is not None
        return np.ndarray(shape, dtype, self._map, offset)

    def write(self, layout: Layout, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
        for name, dtype, shape, offset in layout:
            self.array(dtype, shape, offset)[...] = arrays[name]


class RemoteFunction:
    """A process of its own for the function. A call sends a batch to this process and returns what
    the function made of the batch.

    Thread-safe: a lock lets one call run at a time. After skip_to(), a new worker may call while an
    old worker still waits for the result of its call.

    Raises InvalidSpec if the function cannot be sent to a process, or if the process ends before it
    has finished its first batch.
    """

    def __init__(self, function: Any, name: str) -> None:
        try:
            pickle.dumps(function)
        except Exception as error:
            raise _errors.InvalidSpec(
                f"{name} cannot be sent to a process ({error}): define it in a module, not inside "
                "another function, or use workers= in place of processes="
            ) from None
        self._name = name
        self._to_child = _SharedMemory()
        self._from_child = _SharedMemory()
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=_run, args=(theirs, function), name=f"systole.map {name}", daemon=True
        )
        self._process.start()
        theirs.close()
        self._begun = False
        self._lock = threading.Lock()

    def __call__(self, batch: Any) -> dict[str, np.ndarray[Any, Any]]:
        with self._lock:
            return self._call(batch)

    def _call(self, batch: Any) -> dict[str, np.ndarray[Any, Any]]:
        arrays = {name: np.asarray(batch[name]) for name in batch}
        layout, size = _layout_of(arrays)
        try:
            if size > self._to_child.size:
                self._make(self._to_child, "take_input", size)
            self._to_child.write(layout, arrays)
            self._connection.send(("call", batch.step, batch.epoch, layout))
            kind, *rest = self._connection.recv()
            while kind == "needs":
                self._make(self._from_child, "take_output", rest[0])
                kind, *rest = self._connection.recv()
        except (EOFError, OSError):
            raise self._ended(batch.step) from None
        self._begun = True
        if kind == "failed":
            error, shown = rest
            raise error from _InProcess(shown)
        return {
            name: self._from_child.array(dtype, shape, offset).copy()
            for name, dtype, shape, offset in rest[0]
        }

    def _make(self, memory: _SharedMemory, order: str, size: int) -> None:
        # Batches of padded lists differ in size, so a quarter is added for larger batches.
        size += size // 4
        file = memory.make(size)
        try:
            self._connection.send((order, size))
            reduction.send_handle(self._connection, file, self._process.pid)
        finally:
            os.close(file)

    def _ended(self, step: int) -> _errors.Error:
        self._process.join(_END_SECONDS)
        code = self._process.exitcode
        how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
        if self._begun:
            return _errors.Internal(
                f"the process of {self._name} ended {how} at step {step}: stderr may say why; "
                "perhaps memory ran out"
            )
        return _errors.InvalidSpec(
            f"the process of {self._name} ended {how} before its first batch: a script that uses "
            'processes= needs `if __name__ == "__main__":` around what it does'
        )

    def close(self) -> None:
        """Ends the process, also in the middle of a call."""
        self._process.terminate()
        self._process.join()
        self._connection.close()


class _InProcess(Exception):
    """The traceback of the other process, as text."""

    def __str__(self) -> str:
        return f"in the process of systole.map:\n{self.args[0]}"


def _run(connection: Connection, function: Any) -> None:
    """The main function of the process. Returns when the parent has closed the connection or has
    ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent.
    to_child = _SharedMemory()
    from_child = _SharedMemory()
    try:
        while True:
            kind, *rest = connection.recv()
            if kind == "call":
                step, epoch, layout = rest
                _answer(connection, function, step, epoch, layout, to_child, from_child)
            else:
                _take(connection, to_child if kind == "take_input" else from_child, rest[0])
    except (EOFError, OSError):
        return


def _take(connection: Connection, memory: _SharedMemory, size: int) -> None:
    file = reduction.recv_handle(connection)
    memory.take(file, size)
    os.close(file)


def _answer(
    connection: Connection,
    function: Any,
    step: int,
    epoch: int,
    layout: Layout,
    to_child: _SharedMemory,
    from_child: _SharedMemory,
) -> None:
    arrays = {name: to_child.array(dtype, shape, offset) for name, dtype, shape, offset in layout}
    try:
        given = function(FarBatch(step, epoch, arrays))
        if not isinstance(given, Mapping):
            raise TypeError(f"gave a {type(given).__name__}; want a dict of arrays by their names")
        made = {name: np.asarray(value) for name, value in given.items()}
        if objects := [name for name, array in made.items() if array.dtype.hasobject]:
            raise TypeError(f"gave {objects[0]!r} as Python objects; want arrays of numbers")
    except Exception as error:
        shown = traceback.format_exc()
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            error = RuntimeError(f"{type(error).__name__}: {error}")
        connection.send(("failed", error, shown))
        return
    made_layout, size = _layout_of(made)
    if size > from_child.size:
        connection.send(("needs", size))
        _, new_size = connection.recv()
        _take(connection, from_child, new_size)
    from_child.write(made_layout, made)
    connection.send(("done", made_layout))
