"""One step of a feed, as arrays."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from systole import _errors, _systole
from systole._array import DTYPES, Array, array_at


@dataclass(frozen=True)
class ArraySpec:
    """The properties that the arrays of one name have in every batch of a feed."""

    name: str
    dtype: np.dtype[Any]
    # The shape of batch[name], over all cores of the feed. None if the parts of the cores do not
    # form one array.
    shape: tuple[int, ...] | None
    # The shape of one core's part.
    per_core_shape: tuple[int, ...]
    # The dimension that counts the examples: 0, or the last. With layout HWCN_TILED it is dimension
    # 3, which counts groups of 128 examples.
    batch_axis: int
    # With layout HWCN_TILED, one core's [height, width, channels, examples]. Otherwise None.
    untiled_shape: tuple[int, ...] | None
    # Where the first core's part begins in the step's memory. The other parts follow without gaps.
    offset: int

    @property
    def per_core_bytes(self) -> int:
        return int(np.prod(self.per_core_shape, dtype=np.int64)) * self.dtype.itemsize


class Layout:
    """The layout that all steps of a feed share."""

    def __init__(
        self, described: dict[str, Any], total_cores: int, sheets: _systole.ContactSheets
    ) -> None:
        self.total_cores = total_cores
        self.sheets = sheets
        self.cores: tuple[int, int] = tuple(described["cores"])
        self.end_step: int | None = described["end_step"]
        self.steps_per_epoch: int = described["steps_per_epoch"]
        self.num_records: int = described["num_records"]
        self.num_cores = self.cores[1] - self.cores[0]
        self.tensors: dict[str, ArraySpec] = {}
        for tensor in described["tensors"]:
            per_core = tuple(tensor["shape"])
            untiled = tuple(tensor["untiled_shape"]) or None
            axis = tensor["batch_axis"] if untiled is None else 3
            joined: tuple[int, ...] | None = None
            if axis == 0:
                joined = (per_core[0] * self.num_cores, *per_core[1:])
            elif self.num_cores == 1:
                joined = per_core
            self.tensors[tensor["name"]] = ArraySpec(
                tensor["name"],
                DTYPES[tensor["dtype"]],
                joined,
                per_core,
                axis,
                untiled,
                tensor["offset"],
            )


class Page(str):
    """A self-contained HTML page. A notebook shows it."""

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self)}" style="width: 100%; height: 640px; border: 0">'
            "</iframe>"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page into a file, for a browser."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self)

    def __repr__(self) -> str:
        return f"<systole.Page of {len(self)} characters; save(path) writes it>"


class Ragged(NamedTuple):
    """Lists of different lengths, one after the other: example i has
    values[row_splits[i] : row_splits[i + 1]]. These are the parts of a tf.RaggedTensor.
    """

    values: np.ndarray[Any, np.dtype[Any]]
    row_splits: np.ndarray[Any, np.dtype[np.int64]]


class AnyBatch(Mapping[str, Array]):
    """One step of a feed or of systole.map: a mapping from names to arrays. The array `valid` is 1
    for real examples, and 0 for padding and for damaged records.

    batch["image"]      the examples of all cores that this process has, in order, as one array
    batch.per_core()    the arrays of each core, one mapping a core; views, no copies
    batch.step          counts global batches from 0 over all epochs
    batch.epoch         the epoch that the step belongs to
    batch.cores         the cores of the batch, [first, last + 1)
    batch.total_cores   the cores of the whole feed, those of other processes included
    """

    def __init__(
        self,
        step: int,
        epoch: int,
        specs: Mapping[str, ArraySpec],
        cores: tuple[int, int],
        total_cores: int,
    ) -> None:
        self.step = step
        self.epoch = epoch
        self.cores = cores
        self.total_cores = total_cores
        self._specs = specs

    @property
    def element_spec(self) -> dict[str, ArraySpec]:
        """The properties of the arrays, by name."""
        return dict(self._specs)

    def _spec_of(self, name: str) -> ArraySpec:
        spec = self._specs.get(name)
        if spec is None:
            raise KeyError(f"{name!r}: the batch has {', '.join(self._specs)}")
        return spec

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __len__(self) -> int:
        return len(self._specs)

    def __contains__(self, name: object) -> bool:
        return name in self._specs

    def per_core(self) -> list[dict[str, Array]]:
        """A mapping from names to arrays for each core, in order."""
        return [
            {name: self.core_array(name, core) for name in self._specs}
            for core in range(*self.cores)
        ]

    def core_array(self, name: str, core: int) -> Array:
        """One core's part of `name`. `core` is absolute: one of range(*batch.cores)."""
        spec = self._spec_of(name)
        if core not in range(*self.cores):
            raise IndexError(f"core {core}: the batch has cores {self.cores}")
        return self._part(name, spec, core - self.cores[0])

    def _part(self, name: str, spec: ArraySpec, index: int) -> Array:
        """The part of the batch's core number `index`, counted from 0."""
        raise NotImplementedError

    def ragged(self, name: str) -> Ragged:
        """A padded output without its padding: all values, and where each example begins."""
        array = self[name]
        lengths = self[f"{name}_length"]
        row_splits = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=row_splits[1:])
        kept = np.arange(array.shape[1]) < np.asarray(lengths)[:, None]
        return Ragged(np.asarray(array)[kept], row_splits)

    def __repr__(self) -> str:
        arrays = ", ".join(
            f"{spec.name} {spec.dtype}{list(spec.shape or spec.per_core_shape)}"
            for spec in self._specs.values()
        )
        return f"<systole.{type(self).__name__} step {self.step}, epoch {self.epoch}: {arrays}>"


class Batch(AnyBatch):
    """One step of a feed, in the feed's memory."""

    def __init__(self, step: int, memory: _systole.Memory, layout: Layout) -> None:
        epoch = step // layout.steps_per_epoch
        super().__init__(step, epoch, layout.tensors, layout.cores, layout.total_cores)
        self._memory = memory
        self._layout = layout
        self._arrays: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        array = self._arrays.get(name)
        if array is None:
            spec = self._spec_of(name)
            if spec.shape is None:
                where = "in its last dimension" if spec.untiled_shape is None else "in tiles"
                raise _errors.InvalidSpec(
                    f"{name!r} has the examples {where}, so the parts of "
                    f"{self._layout.num_cores} cores are not one array: take batch.per_core()"
                )
            array = array_at(self._memory, spec.offset, spec.dtype, spec.shape)
            self._arrays[name] = array
        return array

    def _part(self, name: str, spec: ArraySpec, index: int) -> Array:
        at = spec.offset + index * spec.per_core_bytes
        return array_at(self._memory, at, spec.dtype, spec.per_core_shape)

    def show(self, n: int = 16) -> Page:
        """The first `n` examples as a page: images with their normalisation undone, labels, record
        ids, masked and padded places, the range of every output.
        """
        return Page(self._layout.sheets.page([(self.step, self._memory)], n))
