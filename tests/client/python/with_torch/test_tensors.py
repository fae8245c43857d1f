"""systole.torch.to_tensors: tensors in the feed's own memory."""

from __future__ import annotations

import gc

import ml_dtypes
import numpy as np
import pytest
import systole
import systole.torch
import torch
import torch.utils.data
from conftest import image, python, spec_text

OUTPUTS = (
    image("half", "BFLOAT16", "NHWC")
    + image("ieee", "FLOAT16", "NHWC")
    + image("whole", "FLOAT32", "NCHW")
    + image("bytes", "UINT8", "NCHW")
)
DTYPES = {
    "half": (torch.bfloat16, ml_dtypes.bfloat16),
    "ieee": (torch.float16, np.float16),
    "whole": (torch.float32, np.float32),
    "bytes": (torch.uint8, np.uint8),
    "label": (torch.int32, np.int32),
    "id": (torch.int64, np.int64),
    "valid": (torch.uint8, np.uint8),
}


@pytest.fixture
def feed(shards, write_spec):
    with systole.LocalFeed(shards, write_spec(spec_text(OUTPUTS)), threads=2) as feed:
        yield feed


def as_bytes(tensor: torch.Tensor) -> bytes:
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.view(torch.int16)
    return tensor.contiguous().numpy().tobytes()


def test_a_spec_takes_torchs_dtypes():
    for name in ("uint8", "int32", "int64", "float32", "bfloat16"):
        output = systole.Output(feature="x", dtype=getattr(torch, name))
        assert output.to_dict()["dtype"] == name.upper()


def test_every_dtype_is_taken_without_a_copy(feed):
    batch = next(feed)
    tensors = systole.torch.to_tensors(batch)
    assert sorted(tensors) == sorted(DTYPES)
    for name, (dtype, numpy_dtype) in DTYPES.items():
        assert tensors[name].dtype == dtype
        assert batch[name].dtype == numpy_dtype
        assert tuple(tensors[name].shape) == batch[name].shape
        assert tensors[name].data_ptr() == batch[name].ctypes.data
        assert as_bytes(tensors[name]) == batch[name].tobytes()


def test_values_are_those_of_numpy(feed):
    batch = next(feed)
    tensors = systole.torch.to_tensors(batch)
    assert torch.equal(
        tensors["half"].float(), torch.from_numpy(np.asarray(batch["half"]).astype(np.float32))
    )
    assert tensors["id"].tolist() == batch["id"].tolist()


def test_channels_first_is_contiguous_without_a_copy(feed):
    batch = next(feed)
    tensors = systole.torch.to_tensors(batch)
    assert tuple(tensors["whole"].shape) == (16, 3, 40, 32)
    assert tensors["whole"].is_contiguous()
    # "half" has its channels last in memory. PyTorch's kernels support this layout.
    seen_first = tensors["half"].permute(0, 3, 1, 2)
    assert seen_first.is_contiguous(memory_format=torch.channels_last)
    assert seen_first.data_ptr() == batch["half"].ctypes.data


def test_arrays_of_per_core_parts_become_tensors_without_a_copy(feed):
    batch = next(feed)
    for part in batch.per_core():
        for array in part.values():
            tensor = torch.from_dlpack(array)
            assert tensor.data_ptr() == array.ctypes.data
            assert as_bytes(tensor) == array.tobytes()


def test_a_tensor_outlives_its_batch_and_feed(shards, write_spec):
    feed = systole.LocalFeed(shards, write_spec(spec_text(OUTPUTS)), threads=2)
    batch = next(feed)
    wanted = {name: batch[name].tobytes() for name in batch}
    tensors = systole.torch.to_tensors(batch)
    del batch
    for _ in feed:
        pass  # Other batches reuse free memory.
    feed.close()
    del feed
    gc.collect()
    assert {name: as_bytes(tensor) for name, tensor in tensors.items()} == wanted


def test_what_is_written_into_a_tensor_is_in_the_array(feed):
    batch = next(feed)
    systole.torch.to_tensors(batch)["label"].fill_(-3)
    assert (batch["label"] == -3).all()


def test_hwcn_outputs_become_tensors_only_for_one_core_at_a_time(shards, write_spec):
    spec = write_spec(spec_text(image("image", "BFLOAT16", "HWCN")))
    with systole.LocalFeed(shards, spec, threads=2) as feed:
        batch = next(feed)
        with pytest.raises(ValueError, match="per_core"):
            systole.torch.to_tensors(batch)
        part = batch.core_array("image", 2)
        assert torch.from_dlpack(part).data_ptr() == part.ctypes.data
    with systole.LocalFeed(shards, spec, threads=2, cores=(2, 3)) as feed:
        image_of_core = systole.torch.to_tensors(next(feed))["image"]
        assert as_bytes(image_of_core) == part.tobytes()


@pytest.mark.parametrize("first, second", [("torch", "systole"), ("systole", "torch")])
def test_torch_and_systole_can_be_imported_in_either_order(first, second, server, write_spec):
    code = f"""
import sys
import {first}
import {second}
import systole.torch
with systole.Feed(sys.argv[1], sys.argv[2]) as feed:
    batch = next(feed)
    assert systole.torch.to_tensors(batch)["id"].tolist() == batch["id"].tolist()
    assert (torch.ones(64, 64) @ torch.ones(64, 64)).sum() == 64**3
"""
    done = python(code, server.address, write_spec())
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr}"


def test_the_feed_metrics_of_a_dataset_count_the_batches_taken(shards, write_spec):
    dataset = systole.torch.FeedDataset(None, write_spec(), datasets=shards, threads=2)
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=0)
    taken = sum(1 for _ in loader)
    numbers = {metric.name: metric.samples[0].value for metric in dataset.feed.metrics()}
    assert numbers["systole_feed_next_step"] == taken
    assert numbers["systole_feed_examples_taken_total"] == 16 * taken
    dataset.feed.close()
