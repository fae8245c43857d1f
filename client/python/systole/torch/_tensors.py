"""A batch as tensors of PyTorch."""

from __future__ import annotations

from typing import Any

import torch
import torch.utils.data
from systole._batch import AnyBatch
from systole._errors import InvalidSpec


class Tensors(dict[str, torch.Tensor]):
    """A batch's tensors by name. It has a class of its own so that we can refuse a DataLoader that
    would make batches of batches.
    """


def no_batches_of_batches(batch: Any, *, collate_fn_map: Any = None) -> Any:
    raise InvalidSpec(
        "a feed's elements are whole batches already, and this DataLoader would make batches of "
        "them: give it batch_size=None; the spec's global_batch is the number of examples"
    )


# Makes default_collate refuse Tensors. DataLoader uses default_collate unless batch_size is None.
# This helps with loaders that makes_batches() does not recognise.
torch.utils.data._utils.collate.default_collate_fn_map[Tensors] = no_batches_of_batches


def to_tensors(batch: AnyBatch) -> dict[str, torch.Tensor]:
    """The batch's arrays as tensors, in the feed's own memory. An array is copied only if a
    function of systole.map made it in other memory or reversed it.
    """
    return {name: torch.from_dlpack(batch[name]) for name in batch}  # type: ignore[attr-defined]
