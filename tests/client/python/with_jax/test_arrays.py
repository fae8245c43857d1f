"""Arrays: types, places, views, DLPack, and how long memory lives."""

from __future__ import annotations

import gc
import itertools
import random
import threading

import ml_dtypes
import numpy as np
import pytest
import systole
from conftest import image, spec_text
from systole._array import memory_of


@pytest.fixture
def feed(shards, write_spec):
    outputs = (
        image("image", "BFLOAT16", "NHWC")
        + image("half", "FLOAT16", "NHWC")
        + image("bytes", "UINT8", "NCHW")
    )
    with systole.LocalFeed(
        shards, write_spec(spec_text(outputs, more="epochs: 0 tail: PAD")), threads=2
    ) as feed:
        yield feed


def test_a_batch_is_a_mapping_of_arrays_over_all_cores(feed):
    batch = next(feed)
    assert sorted(batch) == ["bytes", "half", "id", "image", "label", "valid"]
    assert batch["image"].shape == (16, 40, 32, 3)
    assert batch["image"].dtype == ml_dtypes.bfloat16
    assert batch["half"].dtype == np.float16
    assert batch["bytes"].shape == (16, 3, 40, 32)
    assert batch["bytes"].dtype == np.uint8
    assert batch["label"].dtype == np.int32
    assert batch["id"].dtype == np.int64
    assert batch["valid"].tolist() == [1] * 16
    assert (batch.step, batch.epoch, batch.cores) == (0, 0, (0, 4))
    with pytest.raises(KeyError, match="has bytes, half, id"):
        batch["nothing"]


def test_arrays_begin_on_64_bytes_and_are_contiguous(feed):
    for _ in range(3):
        batch = next(feed)
        for name in batch:
            assert batch[name].ctypes.data % 64 == 0
            assert batch[name].flags.c_contiguous


def test_cores_have_views_of_the_same_memory(feed):
    batch = next(feed)
    cores = batch.per_core()
    assert len(cores) == 4
    for core, arrays in enumerate(cores):
        for name in batch:
            part = batch[name][core * 4 : core * 4 + 4]
            assert np.shares_memory(part, arrays[name])
            assert arrays[name].tobytes() == part.tobytes()


def test_batch_last_layouts_of_several_cores_have_only_per_core_arrays(shards, write_spec):
    spec = write_spec(spec_text(image("image", "UINT8", "HWCN")))
    with systole.LocalFeed(shards, spec) as feed:
        batch = next(feed)
        assert feed.element_spec["image"].shape is None
        assert batch.per_core()[3]["image"].shape == (40, 32, 3, 4)
        with pytest.raises(ValueError, match="per_core"):
            batch["image"]
    with systole.LocalFeed(shards, spec, cores=(1, 2)) as feed:
        one = next(feed)
        assert one["image"].tobytes() == batch.per_core()[1]["image"].tobytes()


def test_tiles_hold_what_hwcn_holds(shards, write_spec):
    plain = write_spec(spec_text(image("image", "BFLOAT16", "HWCN")), "plain.textproto")
    tiled = write_spec(spec_text(image("image", "BFLOAT16", "HWCN_TILED")), "tiled.textproto")
    with systole.LocalFeed(shards, plain) as feed:
        wanted = next(feed).per_core()
    with systole.LocalFeed(shards, tiled) as feed:
        batch = next(feed)
        spec = batch.element_spec["image"]
        assert spec.shape is None
        assert spec.untiled_shape == (40, 32, 3, 4)
        with pytest.raises(ValueError, match="in tiles.*per_core"):
            batch["image"]
        height, width, channels, examples = spec.untiled_shape
        for core, arrays in enumerate(batch.per_core()):
            tiles = np.asarray(arrays["image"])
            assert tiles.shape == (40, 32, 1, 1, 4, 128, 2)
            whole = tiles.transpose(0, 1, 2, 4, 6, 3, 5).reshape(height, width, 8, 128)
            assert (whole[:, :, :channels, :examples] == np.asarray(wanted[core]["image"])).all()
            assert not whole[:, :, channels:].any()
            assert not whole[:, :, :, examples:].any()
    with systole.LocalFeed(shards, tiled, cores=(1, 2)) as feed:
        assert next(feed)["image"].shape == (40, 32, 1, 1, 4, 128, 2)


def test_a_write_to_a_batch_does_not_change_the_next_batch(feed):
    batch = next(feed)
    batch["label"][...] = -7
    assert (next(feed)["label"] != -7).all()


def test_numpy_imports_arrays_by_dlpack_without_a_copy(feed):
    batch = next(feed)
    for name in ("bytes", "label", "id", "valid"):
        taken = np.from_dlpack(batch[name])
        assert np.shares_memory(taken, batch[name])
        assert (taken == batch[name]).all()


def test_jax_imports_arrays_by_dlpack_with_bfloat16_and_float16(feed):
    jax = pytest.importorskip("jax")
    batch = next(feed)
    for name in ("image", "half", "bytes", "label"):
        taken = jax.dlpack.from_dlpack(batch[name])
        assert str(taken.dtype) == str(batch[name].dtype)
        assert np.asarray(taken).tobytes() == batch[name].tobytes()


def test_dlpack_exports_strided_views_and_copies_with_equal_values(feed):
    image = next(feed)["bytes"]
    flipped = image[:, :, ::-1, 2:5]
    assert (np.from_dlpack(flipped) == np.asarray(flipped)).all()
    copy = np.from_dlpack(flipped, copy=True)
    assert not np.shares_memory(copy, image)
    assert (copy == np.asarray(flipped)).all()


def test_computed_arrays_are_copied_for_dlpack(feed):
    jax = pytest.importorskip("jax")
    computed = next(feed)["image"] * 2
    assert memory_of(computed) is None
    taken = jax.dlpack.from_dlpack(computed)
    assert np.asarray(taken).tobytes() == computed.tobytes()
    with pytest.raises(BufferError, match="as a copy"):
        computed.__dlpack__(copy=False)


def test_dlpack_refuses_other_devices_and_unversioned_read_only_export(feed):
    array = next(feed)["label"]
    with pytest.raises(BufferError, match="host memory"):
        array.__dlpack__(dl_device=(2, 0))
    array.flags.writeable = False
    with pytest.raises(BufferError, match="read-only"):
        array.__dlpack__()
    assert not np.from_dlpack(array).flags.writeable


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_a_dropped_dlpack_capsule_gives_its_memory_back(max_version, server, write_spec):
    spec = write_spec(spec_text(more="epochs: 0 tail: PAD"))
    # A feed uses the memory of earlier steps again. Memory that it does not get back stays in use,
    # so every step would be at a new address.
    with systole.Feed(server.address, spec, prefetch_bytes=1) as feed:
        held, addresses = [], set()
        for batch in itertools.islice(feed.steps(), 50):
            held.append(batch["image"].__dlpack__(max_version=max_version))
            addresses.add(batch["image"].ctypes.data)
        assert len(addresses) == 50
        held.clear()
        addresses.clear()
        for batch in itertools.islice(feed.steps(), 50):
            batch["image"].__dlpack__(max_version=max_version)
            addresses.add(batch["image"].ctypes.data)
        assert len(addresses) < 25


def test_a_thousand_batches_stay_right_and_are_dropped_by_many_threads(server, write_spec):
    spec = write_spec(
        spec_text(image("image", "UINT8", "NHWC", size=24), more="epochs: 0 tail: DROP")
    )
    with systole.Feed(server.address, spec, prefetch_bytes=1 << 20) as feed:
        kept = []
        while len(kept) < 1000:
            batch = next(iter(feed))
            kept.append((batch["image"], batch["id"].copy(), hash(batch["image"].tobytes())))
            del batch
    random.Random(1).shuffle(kept)
    wrong: list[int] = []

    def drop(mine):
        while mine:
            image, ids, was = mine.pop()
            if hash(image.tobytes()) != was:
                wrong.append(int(ids[0]))
            del image

    threads = [threading.Thread(target=drop, args=(kept[i::4],)) for i in range(4)]
    kept.clear()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_batches_outlive_their_feed(server, write_spec):
    feed = systole.Feed(server.address, write_spec())
    batch = next(feed)
    label, was = batch["label"], batch["label"].tobytes()
    feed.close()
    del feed, batch
    gc.collect()
    assert label.tobytes() == was


def test_a_batch_is_shown_as_a_page(feed, tmp_path):
    page = feed.show(4)
    assert feed.step == 0
    assert page.count("<img") == 12  # Each example has three images.
    assert feed.explain() in str(page)
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == str(page)
    assert page._repr_html_().startswith("<iframe srcdoc=")
    batch = next(feed)
    feed.close()
    assert batch.show(4) == page  # A batch needs no feed.
    with pytest.raises(systole.InvalidSpec):
        batch.show(0)
