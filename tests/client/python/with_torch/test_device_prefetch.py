"""systole.torch.device_prefetch. The tests have no GPU: a class stands for CUDA."""

from __future__ import annotations

import contextlib
import runpy
import threading

import pytest
import systole
import systole.torch
import torch
from conftest import LONGEST_WAIT, ROOT, image, spec_text
from conftest import systole as run_systole


@pytest.fixture
def spec(write_spec):
    return write_spec(spec_text(image("image", "FLOAT32", "NCHW")))


def test_batches_equal_the_feeds_and_the_state_counts_only_batches_taken(shards, spec):
    with systole.LocalFeed(shards, spec) as plain:
        wanted = [[batch["id"].tolist() for batch in plain] for _ in range(2)]
    with systole.LocalFeed(shards, spec) as feed:
        prefetch = systole.torch.device_prefetch(feed, "cpu")
        assert len(prefetch) == len(feed)
        assert [[batch["id"].tolist() for batch in prefetch] for _ in range(2)] == wanted
        prefetch.load_state_dict(feed.state_at(0))
        for step in range(3):
            batch = next(prefetch)
            assert (batch.step, batch.epoch) == (step, 0)
            assert batch["id"].device == torch.device("cpu")
        state = prefetch.state_dict()
        assert state["step"] == 3
        assert feed.step > 3
        prefetch.load_state_dict(state)
        assert [batch["id"].tolist() for batch in prefetch] == wanted[0][3:]


def test_prefetching_a_mapped_feed_gives_the_results_of_its_function(shards, spec):
    def changed(batch):
        return {"twice": 2 * batch["id"], "flipped": batch["image"][..., ::-1]}

    with systole.LocalFeed(shards, spec) as feed:
        mapped = systole.map(feed, changed)
        got = list(systole.torch.device_prefetch(mapped, "cpu"))
    with systole.LocalFeed(shards, spec) as feed:
        wanted = [changed(batch) for batch in feed]
    assert len(got) == len(wanted)
    for one, other in zip(got, wanted, strict=True):
        assert one["twice"].tolist() == other["twice"].tolist()
        assert one["flipped"].numpy().tobytes() == other["flipped"].tobytes()


def test_a_generator_and_a_size_of_zero_are_refused(shards, spec):
    with systole.LocalFeed(shards, spec) as feed:
        with pytest.raises(systole.InvalidSpec, match="batches is a generator; want a feed"):
            systole.torch.device_prefetch((batch for batch in feed), "cpu")
        with pytest.raises(systole.InvalidSpec, match="size is 0, want 1 or more"):
            systole.torch.device_prefetch(feed, "cpu", size=0)


def test_the_resnet50_example_reports_a_rate_for_each_source(tmp_path):
    run_systole("make-flowers", tmp_path / "images", "--images", 40)
    run_systole("pack", tmp_path / "images", tmp_path / "photos", "--shards", 2)
    example = ROOT / "client" / "python" / "examples" / "resnet50_torch.py"
    main = runpy.run_path(str(example))["main"]
    rates = main(f"{tmp_path}/photos-*.tfrecord", "cpu", batch=4, steps=1, warm_up=1)
    assert list(rates) == ["on the device", "device_prefetch", "tensor.to()"]
    assert all(rate > 0 for rate in rates.values())


def test_a_batch_rebuilt_from_its_items_has_its_keys_and_no_step(shards, spec):
    with systole.LocalFeed(shards, spec) as feed:
        batch = next(systole.torch.device_prefetch(feed, "cpu"))
        again = type(batch)(batch.items())
        assert again.keys() == batch.keys()
        assert (batch.step, again.step, again.epoch) == (0, -1, -1)


class Gpu:
    """Stands for CUDA with four GPUs. The GPU reads pinned memory as late as possible: when a
    thread waits for the copy. The trainer's work on the GPU is done once `idle` is set.
    """

    def __init__(self, monkeypatch):
        self.asked = threading.Event()  # Set when a thread waits for the trainer's work.
        self.idle = threading.Event()
        self.copies = 0  # Arrays that were copied into pinned memory and sent.
        gpu = self
        device = torch.device("cuda", 3)
        pinned = []

        class Stream:
            def __init__(self, on):
                assert on == device
                self.queue = []

            def wait_event(self, event):
                event.synchronize()

        trainer = Stream(device)
        used = []

        class Event:
            def __init__(self, blocking):
                assert blocking
                self.queue = []
                self.of_trainer = False

            def record(self, stream):
                self.queue, stream.queue = stream.queue, []
                self.of_trainer = stream is trainer

            def synchronize(self):
                if self.of_trainer and not gpu.idle.is_set():
                    gpu.asked.set()
                    assert gpu.idle.wait(LONGEST_WAIT)
                for work in self.queue:
                    work()
                self.queue = []

        @contextlib.contextmanager
        def stream(one):
            used.append(one)
            yield
            used.pop()

        def to(tensor, on, non_blocking):
            assert on == device and non_blocking
            assert any(tensor is one for one in pinned)
            arrived = torch.zeros(tensor.shape, dtype=tensor.dtype)
            used[-1].queue.append(lambda: arrived.copy_(tensor))
            gpu.copies += 1
            return arrived

        def empty(shape, dtype, pin_memory):
            assert pin_memory
            pinned.append(torch.zeros(shape, dtype=dtype))
            return pinned[-1]

        monkeypatch.setattr(torch.cuda, "Event", Event)
        monkeypatch.setattr(torch.cuda, "Stream", Stream)
        monkeypatch.setattr(torch.cuda, "stream", stream)
        monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
        monkeypatch.setattr(torch.cuda, "current_stream", lambda on: trainer)
        monkeypatch.setattr(torch.cuda, "set_device", lambda on: Stream(on))
        monkeypatch.setattr(torch.Tensor, "to", to)
        monkeypatch.setattr(torch.Tensor, "record_stream", lambda tensor, one: None)
        monkeypatch.setattr(torch, "empty", empty)


@pytest.fixture
def gpu(monkeypatch):
    return Gpu(monkeypatch)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_pinned_memory_is_used_again_only_when_the_gpu_has_read_it(gpu, shards, spec, size):
    gpu.idle.set()

    def of_two_layouts(batch):
        across = batch["image"].transpose(0, 1, 3, 2)
        return {"image": across if batch["id"][0] % 2 else across.copy()}

    with systole.LocalFeed(shards, spec) as plain:
        wanted = [of_two_layouts(batch)["image"].tobytes() for batch in plain.steps()]
    with systole.LocalFeed(shards, spec) as feed:
        mapped = systole.map(feed, of_two_layouts)
        prefetch = systole.torch.device_prefetch(mapped.steps(), "cuda", size)
        for step in (0, 1):
            assert next(prefetch)["image"].numpy().tobytes() == wanted[step]
        # The batches that were under way are made again.
        prefetch.load_state_dict(prefetch.state_dict())
        got = [(batch.step, batch["image"].numpy().tobytes()) for batch in prefetch]
    assert got == list(enumerate(wanted))[2:]


@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_trainer_is_at_most_size_steps_ahead_of_the_gpu(gpu, shards, spec, size):
    with systole.serve({"flowers": shards}) as server, systole.Feed(server, spec) as feed:
        prefetch = systole.torch.device_prefetch(feed.steps(), "cuda", size)
        arrays = len([next(prefetch) for _ in range(size + 1)][0])
        # The next batch must wait until the trainer's work on the first batch is done.
        assert gpu.asked.wait(LONGEST_WAIT)
        assert gpu.copies == (size + 1) * arrays
        gpu.idle.set()
        assert next(prefetch).step == size + 1


def test_a_batch_whose_transfer_failed_is_given_next(gpu, shards, spec, monkeypatch):
    gpu.idle.set()
    right = torch.Tensor.to
    fails = iter([False, False, True])

    def to(tensor, on, non_blocking):
        if next(fails, False):
            raise MemoryError("no memory on the GPU")
        return right(tensor, on, non_blocking)

    monkeypatch.setattr(torch.Tensor, "to", to)
    with systole.LocalFeed(shards, spec) as feed:
        prefetch = systole.torch.device_prefetch(feed.steps(), "cuda")
        with pytest.raises(MemoryError, match="no memory on the GPU"):
            next(prefetch)
        assert [next(prefetch).step for _ in range(4)] == [0, 1, 2, 3]
