"""systole.torch.FeedDataset: epochs, workers, state, shares of ranks."""

from __future__ import annotations

import copy
import os
import pickle
import socket
import subprocess
import sys
import textwrap
import warnings

import pytest
import systole
import systole.torch
import torch
from conftest import LONGEST_WAIT, RECORDS, image, python, spec_text
from torch.utils.data import DataLoader

STEPS = 6  # An epoch has 96 records, and a step 16, on 4 cores.


@pytest.fixture
def make_dataset(server, shards, write_spec):
    """Makes datasets of one feed. Feeds opened in this process are closed after the test."""
    made = []

    def make(kind="client", more="epochs: 3 tail: PAD", split_steps=True, **options):
        options["split_steps"] = split_steps  # This option matters only if there are workers.
        spec = write_spec(spec_text(more=more))
        if kind == "client":
            made.append(systole.torch.FeedDataset(server.address, spec, **options))
        else:
            made.append(
                systole.torch.FeedDataset(
                    None, spec, datasets={"flowers": shards}, threads=2, **options
                )
            )
        return made[-1]

    yield make
    for dataset in made:
        if dataset._feed is not None:
            dataset._feed.close()


both_kinds = pytest.mark.parametrize("kind", ["client", "local"])
# ("client", "fork") is missing. Such workers are tested in a new process (FORKED), because this
# process has used gRPC.
starts = pytest.mark.parametrize(
    ("kind", "context"), [("client", "spawn"), ("local", "fork"), ("local", "spawn")]
)


def as_bytes(batch) -> dict[str, bytes]:
    return {
        name: (tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor)
        .numpy()
        .tobytes()
        for name, tensor in batch.items()
    }


def loader(dataset, workers=0, **options) -> DataLoader:
    return DataLoader(dataset, batch_size=None, num_workers=workers, **options)


def with_workers(dataset, context, workers=2, **options) -> DataLoader:
    return loader(dataset, workers, multiprocessing_context=context, **options)


def ids(batches) -> list[list[int]]:
    return [batch["id"].tolist() for batch in batches]


def joined(parts, workers=2) -> list[list[int]]:
    """Joins the parts, which the workers give in turns, to whole steps."""
    parts = ids(parts)
    assert len(parts) % workers == 0
    return [sum(parts[i : i + workers], []) for i in range(0, len(parts), workers)]


def refused(kind: type[Exception], match: str, batches: DataLoader) -> None:
    """Checks that a loop over `batches` raises `kind` in its workers."""
    iterator = iter(batches)
    with pytest.raises(kind, match=match):
        for _ in iterator:
            pass
    # Without these lines PyTorch would wait five seconds for each worker after an error.
    torch.utils.data._utils.signal_handling._remove_worker_pids(id(iterator))
    iterator._worker_pids_set = False
    for worker in iterator._workers:
        worker.kill()
        worker.join()
    # Without this line the iterator's destructor would tell the workers to end. For this message
    # the destructor takes a lock that the workers share, and a killed worker may still hold the
    # lock.
    iterator._shutdown = True


@pytest.fixture
def epochs(shards, write_spec):
    """The ids of all three epochs, read without PyTorch."""
    with systole.LocalFeed(shards, write_spec(spec_text(more="epochs: 3 tail: PAD"))) as feed:
        return [[batch["id"].tolist() for batch in feed] for _ in range(3)]


@both_kinds
def test_a_loop_is_an_epoch_of_the_feeds_own_bytes(kind, make_dataset, server, write_spec):
    batches = loader(make_dataset(kind))
    assert len(batches) == STEPS
    with systole.Feed(server.address, write_spec(spec_text(more="epochs: 3 tail: PAD"))) as feed:
        for _ in range(3):
            wanted = list(feed)
            got = list(batches)
            assert len(got) == STEPS
            for array, tensors in zip(wanted, got, strict=True):
                assert as_bytes(tensors) == {name: array[name].tobytes() for name in array}
    assert list(batches) == []


@starts
def test_workers_share_the_cores(kind, context, make_dataset, epochs):
    got = list(with_workers(make_dataset(kind), context))
    assert all(len(part["id"]) == 8 for part in got)
    assert joined(got) == epochs[0]
    assert sorted(sum(joined(got), [])) == list(range(RECORDS))


@starts
def test_workers_share_the_cores_of_their_process(kind, context, make_dataset, epochs):
    got = list(with_workers(make_dataset(kind, cores=(2, 4)), context))
    assert joined(got) == [step[8:] for step in epochs[0]]


def test_one_worker_has_all_cores(make_dataset, epochs):
    dataset = make_dataset("local", split_steps=False)
    batches = loader(dataset, 1, multiprocessing_context="fork")
    assert ids(batches) == epochs[0]


def test_workers_that_would_give_parts_of_a_batch_are_refused(make_dataset):
    refused(
        systole.InvalidSpec,
        r"2 workers would each give a part of a batch: use num_workers=0.*split_steps=True",
        loader(make_dataset("local", split_steps=False), 2, multiprocessing_context="fork"),
    )


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("options", [{}, {"batch_size": 16}])
def test_a_loader_that_makes_batches_of_batches_is_refused(workers, options, make_dataset):
    dataset = make_dataset("local")
    batches = DataLoader(dataset, num_workers=workers, **options)
    with pytest.raises(systole.InvalidSpec, match="batch_size=None"):
        next(iter(batches))
    if workers == 0:
        assert dataset.state_dict()["step"] == 0  # No step was taken.
    # Other data are collated as usual.
    assert torch.utils.data.default_collate([{"x": 1}, {"x": 2}])["x"].tolist() == [1, 2]


@both_kinds
def test_a_number_of_workers_that_does_not_divide_the_cores_is_refused(kind, make_dataset):
    refused(
        ValueError,
        "3 workers cannot share 4 cores equally",
        with_workers(make_dataset(kind), "spawn", workers=3),
    )


def test_bfloat16_comes_from_workers_as_it_is(make_dataset, server, write_spec):
    got = next(iter(with_workers(make_dataset("local"), "fork", workers=1)))
    with systole.Feed(server.address, write_spec()) as feed:
        assert got["image"].dtype == torch.bfloat16
        assert as_bytes(got)["image"] == next(feed)["image"].tobytes()


FORKED = """
import sys
from torch.utils.data import DataLoader
import systole, systole.torch
where, spec = sys.argv[1:]
dataset = systole.torch.FeedDataset(where, spec, split_steps=True)
loader = DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context="fork")
for epoch in range(3):
    dataset.set_epoch(epoch)
    for part in loader:
        print(epoch, *part["id"].tolist())
assert dataset._feed is None
assert len(dataset) == 6  # Opens a feed in this process.
dataset.set_epoch(0)
try:
    next(iter(loader))
except systole.FailedPrecondition as error:
    print(error, flush=True)
dataset.feed.close()
import os
os._exit(0)  # PyTorch would wait five seconds for each worker after an error.
"""


def test_forked_workers_open_feeds_if_their_parent_has_not(server, write_spec, epochs):
    spec = write_spec(spec_text(more="epochs: 3 tail: PAD"))
    done = python(FORKED, server.address, spec)
    assert done.returncode == 0, done.stderr
    parts = [line for line in done.stdout.splitlines() if line[:1] in "012" and line[1:2] == " "]
    assert len(parts) == 3 * 2 * STEPS
    for epoch in range(3):
        of_epoch = [
            [int(one) for one in line.split()[1:]] for line in parts if int(line[0]) == epoch
        ]
        assert [a + b for a, b in zip(of_epoch[::2], of_epoch[1::2], strict=True)] == epochs[epoch]
    assert "multiprocessing_context='spawn'" in done.stdout


def test_a_local_feed_in_the_parent_does_not_disturb_its_workers(make_dataset, epochs):
    dataset = make_dataset("local")
    assert next(iter(dataset))["id"].tolist() == epochs[0][0]
    assert joined(with_workers(dataset, "fork")) == epochs[0]
    assert ids(dataset) == epochs[0][1:]


# ---- Epochs of workers ----


@starts
def test_new_workers_give_the_epoch_that_is_set(kind, context, make_dataset, epochs):
    dataset = make_dataset(kind)
    batches = with_workers(dataset, context)
    for epoch in (0, 1, 2):
        dataset.set_epoch(epoch)
        assert joined(batches) == epochs[epoch]


@starts
def test_new_workers_do_not_repeat_an_epoch_silently(kind, context, make_dataset, epochs):
    dataset = make_dataset(kind)
    batches = with_workers(dataset, context)
    assert joined(batches) == epochs[0]
    refused(systole.FailedPrecondition, "set_epoch", batches)
    dataset.set_epoch(0)
    assert joined(batches) == epochs[0]


@starts
def test_persistent_workers_continue_with_the_next_epoch(kind, context, make_dataset, epochs):
    dataset = make_dataset(kind)
    batches = with_workers(dataset, context, persistent_workers=True)
    assert [joined(batches) for _ in range(3)] == epochs
    assert joined(batches) == []
    dataset.set_epoch(1)
    assert joined(batches) == epochs[1]
    assert joined(batches) == epochs[2]


def test_set_epoch_does_not_change_workers_that_are_still_starting(make_dataset, epochs):
    dataset = make_dataset("local")
    batches = with_workers(dataset, "fork")
    for _ in range(5):
        dataset.set_epoch(0)
        iterator = iter(batches)
        dataset.set_epoch(1)  # While the workers of epoch 0 begin.
        assert next(iterator)["id"].tolist() == epochs[0][0][:8]
        assert next(iterator)["id"].tolist() == epochs[0][0][8:]
        del iterator
        assert joined(batches) == epochs[1]


def test_persistent_workers_left_in_mid_epoch_need_set_epoch(make_dataset, epochs):
    dataset = make_dataset("local")
    batches = with_workers(dataset, "fork", persistent_workers=True)
    next(iter(batches))
    refused(systole.FailedPrecondition, "set_epoch", batches)
    batches = with_workers(dataset, "fork", persistent_workers=True)
    dataset.set_epoch(0)
    iterator = iter(batches)
    next(iterator), next(iterator)  # Both workers have begun.
    dataset.set_epoch(1)
    assert joined(batches) == epochs[1]


@both_kinds
def test_set_epoch_without_workers_begins_an_epoch_or_continues_it(kind, make_dataset, epochs):
    dataset = make_dataset(kind)
    batches = loader(dataset)
    for epoch in (1, 1, 2, 0):
        dataset.set_epoch(epoch)
        assert ids(batches) == epochs[epoch]
    # After one batch of epoch 1, set_epoch(1) does not go back to the epoch's beginning.
    next(iter(dataset))
    dataset.set_epoch(1)
    assert ids(dataset) == epochs[1][1:]
    with pytest.raises(ValueError, match="epoch is -1"):
        dataset.set_epoch(-1)


# ---- State ----


@both_kinds
def test_the_state_of_a_fresh_dataset_is_step_0_and_loads_again(kind, make_dataset):
    dataset = make_dataset(kind)
    fresh = dataset.state_dict()
    assert (fresh["version"], fresh["step"]) == (1, 0)
    next(iter(dataset))
    assert dataset.state_dict()["step"] == 1
    dataset.load_state_dict(fresh)
    assert dataset.state_dict() == fresh


@both_kinds
@pytest.mark.parametrize("taken", [1, 4, 6, 8])
def test_a_resumed_dataset_gives_the_same_remaining_bytes(kind, taken, make_dataset):
    dataset = make_dataset(kind)
    for _ in range(taken):
        next(iter(dataset), None)
    state = pickle.loads(pickle.dumps(dataset.state_dict()))
    assert state["step"] == taken
    rest = [as_bytes(batch) for batch in loader(dataset)]
    again = make_dataset(kind)
    again.load_state_dict(state)  # `again` has not opened its feed yet.
    assert again.state_dict() == state
    assert [as_bytes(batch) for batch in loader(again)] == rest
    again.load_state_dict(state)  # The feed is open now.
    assert [as_bytes(batch) for batch in loader(again)] == rest


@starts
def test_workers_begin_with_the_state_that_was_loaded(kind, context, make_dataset, epochs):
    first = make_dataset(kind)
    for _ in range(2):
        next(iter(first))
    state = first.state_dict()
    first.feed.close()
    again = make_dataset(kind)
    again.load_state_dict(state)
    batches = with_workers(again, context)
    assert joined(batches) == epochs[0][2:]
    refused(systole.FailedPrecondition, "set_epoch", batches)
    again.set_epoch(1)
    assert joined(batches) == epochs[1]
    again.set_epoch(0)
    assert joined(batches) == epochs[0]


def test_set_epoch_to_the_epoch_of_a_loaded_state_continues_it(make_dataset, epochs):
    state = {**make_dataset().state_dict()}
    first = make_dataset()
    for _ in range(2):
        next(iter(first))
    state = first.state_dict()
    first.feed.close()
    for batches_of in (loader, lambda dataset: with_workers(dataset, "spawn", workers=1)):
        again = make_dataset()
        again.load_state_dict(state)
        again.set_epoch(0)  # A loop over epochs does this after a restart.
        batches = batches_of(again)
        assert ids(batches) == epochs[0][2:]
        again.set_epoch(1)
        assert ids(batches) == epochs[1]


def test_state_dict_is_refused_after_workers_have_read(make_dataset):
    dataset = make_dataset("local")
    list(with_workers(dataset, "fork"))
    with pytest.raises(RuntimeError, match="StatefulDataLoader"):
        dataset.state_dict()


def test_persistent_workers_cannot_be_given_a_state(make_dataset, epochs):
    dataset = make_dataset("local")
    state = dataset.state_dict()
    batches = with_workers(dataset, "fork", persistent_workers=True)
    list(batches)
    dataset.load_state_dict(state)
    refused(systole.FailedPrecondition, "new DataLoader", batches)
    assert joined(with_workers(dataset, "fork")) == epochs[0]


@both_kinds
def test_a_state_of_another_feed_is_refused_at_the_first_read(kind, make_dataset):
    state = make_dataset(kind).state_dict()
    other = make_dataset(kind, more="epochs: 3 tail: DROP")
    other.load_state_dict(state)
    with pytest.raises(systole.FailedPrecondition, match="tail"):
        next(iter(other))
    if kind == "local":
        refused(systole.FailedPrecondition, "tail", with_workers(other, "fork"))


def test_a_copy_reads_by_itself(make_dataset, epochs):
    dataset = make_dataset()
    next(iter(dataset))
    for other in (copy.copy(dataset), pickle.loads(pickle.dumps(dataset))):
        assert next(iter(other))["id"].tolist() == epochs[0][0]
        other.feed.close()
    assert next(iter(dataset))["id"].tolist() == epochs[0][1]


# ---- Arguments ----


def test_either_servers_or_datasets_must_be_given(write_spec):
    for servers, datasets in ((None, None), ("127.0.0.1:1", {"flowers": "x"})):
        with pytest.raises(ValueError, match="servers, or datasets"):
            systole.torch.FeedDataset(servers, write_spec(), datasets=datasets)


def test_invalid_cores_are_refused_when_the_dataset_is_made(make_dataset):
    with pytest.raises(ValueError, match="inside"):
        make_dataset(cores=(0, 5))
    with pytest.raises(ValueError, match="cannot share equally"):
        make_dataset(process_index=0, process_count=3)


@both_kinds
@pytest.mark.parametrize("pin", [False, True])
def test_pin_memory_does_not_change_the_record_order(kind, pin, make_dataset, epochs):
    with warnings.catch_warnings():
        # Without an accelerator PyTorch warns and pins nothing.
        warnings.simplefilter("ignore", UserWarning)
        assert ids(loader(make_dataset(kind), pin_memory=pin)) == epochs[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        dataset = make_dataset("local")
        assert joined(with_workers(dataset, "fork", pin_memory=pin)) == epochs[0]


def test_rank_and_world_size_choose_the_cores(make_dataset, epochs, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    dataset = make_dataset()
    assert ids(loader(dataset)) == [step[8:] for step in epochs[0]]
    assert "(RANK)" in repr(dataset.feed)
    dataset.feed.close()
    assert joined(with_workers(make_dataset("local"), "fork")) == [step[8:] for step in epochs[0]]


RANK = """
import sys
import torch.distributed as distributed
from torch.utils.data import DataLoader
import systole.torch
rank, port, where, spec, workers = int(sys.argv[1]), *sys.argv[2:5], int(sys.argv[5])
distributed.init_process_group(
    "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2
)
dataset = systole.torch.FeedDataset(where, spec, split_steps=workers > 1)
loader = DataLoader(dataset, batch_size=None, num_workers=workers)
for i, batch in enumerate(loader):
    print(i, rank, *batch["id"].tolist())
    total = batch["id"].sum()
    distributed.all_reduce(total)  # Each rank has its part of the same step.
    print("sum", i, int(total))
if workers == 0:
    print("state", dataset.state_dict())
distributed.destroy_process_group()
"""


@pytest.mark.parametrize("workers", [0, 1])
def test_ranks_of_torch_distributed_have_their_shares(workers, server, write_spec, epochs):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    spec = write_spec(spec_text(more="epochs: 3 tail: PAD"))
    # Without these variables, the dataset gets the rank and the world size from torch.distributed.
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    ranks = [
        subprocess.Popen(
            [
                *(sys.executable, "-c", textwrap.dedent(RANK), str(rank), str(port)),
                *(server.address, spec, str(workers)),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for rank in range(2)
    ]
    parts, sums, states = {}, [], set()
    for process in ranks:
        out, err = process.communicate(timeout=LONGEST_WAIT)
        assert process.returncode == 0, err
        for line in out.splitlines():
            first, *rest = line.split()
            if first == "sum":
                sums.append((int(rest[0]), int(rest[1])))
            elif first == "state":
                states.add(line)
            else:
                parts[int(first), int(rest[0])] = [int(one) for one in rest[1:]]
    assert [parts[step, 0] + parts[step, 1] for step in range(STEPS)] == epochs[0]
    assert sorted(sums) == sorted(2 * [(i, sum(step)) for i, step in enumerate(epochs[0])])
    assert len(states) == (1 if workers == 0 else 0)


# ---- Training ----


def test_a_network_is_trained_and_goes_on_bit_for_bit(shards, write_spec):
    outputs = image("image", "FLOAT32", "NCHW")
    spec = write_spec(spec_text(outputs, more="epochs: 0 tail: DROP"))

    def trainer():
        torch.manual_seed(0)
        dataset = systole.torch.FeedDataset(None, spec, datasets=shards, threads=2)
        network = torch.nn.Sequential(
            torch.nn.Conv2d(3, 4, 3, stride=2),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(4 * 19 * 15, 5),
        )
        return dataset, network, torch.optim.SGD(network.parameters(), lr=0.01)

    def train(dataset, network, optimizer, steps):
        losses = []
        for batch in DataLoader(dataset, batch_size=None):
            loss = torch.nn.functional.cross_entropy(network(batch["image"]), batch["label"].long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if len(losses) == steps:
                break
        return losses

    dataset, network, optimizer = trainer()
    train(dataset, network, optimizer, 2)
    saved = copy.deepcopy(
        {
            "feed": dataset.state_dict(),
            "network": network.state_dict(),
            "optimizer": optimizer.state_dict(),
        }
    )
    wanted = train(dataset, network, optimizer, 3)
    dataset.feed.close()
    dataset, network, optimizer = trainer()
    dataset.load_state_dict(saved["feed"])
    network.load_state_dict(saved["network"])
    optimizer.load_state_dict(saved["optimizer"])
    assert train(dataset, network, optimizer, 3) == wanted
    dataset.feed.close()
