"""systole.map: runs a user's function on batches or examples."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
import weakref

import mapped_functions
import numpy as np
import pytest
import systole
import systole.jax
from conftest import LONGEST_WAIT, RECORDS, python, spec_text
from systole import _map_process

STEPS = 6  # An epoch has 96 records, and a step 16.


@pytest.fixture(params=["client", "local"])
def feed(request, server, shards, write_spec):
    spec = write_spec(spec_text(more="epochs: 2 tail: PAD"))
    if request.param == "client":
        opened = systole.Feed(server.address, spec)
    else:
        opened = systole.LocalFeed({"flowers": shards}, spec)
    yield opened
    opened.close()


@pytest.fixture
def local(shards, write_spec):
    opened = []

    def open_it(more="epochs: 2 tail: PAD"):
        opened.append(systole.LocalFeed({"flowers": shards}, write_spec(spec_text(more=more))))
        return opened[-1]

    yield open_it
    for one in opened:
        one.close()


WAYS = [{"workers": 1}, {"workers": 3}, {"workers": 3, "ahead": 1}, {"processes": 2}]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_results_come_in_the_order_of_the_batches(feed, local, way):
    plain = list(local().steps())
    with systole.map(feed, mapped_functions.brighter, **way) as mapped:
        assert len(mapped) == STEPS
        epochs = [[*mapped], [*mapped], [*mapped]]
    assert [len(epoch) for epoch in epochs] == [STEPS, STEPS, 0]
    for before, after in zip(plain, epochs[0] + epochs[1], strict=True):
        assert (after.step, after.epoch) == (before.step, before.epoch)
        assert set(after) == {"image", "step", "valid"}
        np.testing.assert_array_equal(after["image"], before["image"].astype(np.float32) * 2)
        np.testing.assert_array_equal(after["valid"], before["valid"])
        assert set(after["step"]) == {before.step}


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_the_state_counts_what_the_trainer_took(feed, local, way):
    with systole.map(feed, mapped_functions.brighter, **way) as mapped:
        for _ in range(4):
            last = next(mapped)
        state = mapped.state_dict()
        assert mapped.step == last.step + 1 == 4
        rest = [batch.step for batch in mapped.steps()]
    assert rest == list(range(4, 2 * STEPS))
    # Any feed of the same data takes the state, whether the feed is mapped or not.
    plain = local()
    plain.load_state_dict(state)
    assert next(plain).step == 4
    with systole.map(local(), mapped_functions.brighter, **way) as mapped:
        mapped.set_state(systole.map(plain, mapped_functions.brighter).get_state())
        assert next(mapped).step == 5


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_skip_to_moves_to_any_step_while_workers_are_ahead(feed, way):
    with systole.map(feed, mapped_functions.brighter, **way) as mapped:
        for step in [7, 0, 11, 3, 3]:
            mapped.skip_to(step)
            assert mapped.peek().step == step
            batch = next(mapped.steps())
            assert batch.step == step
            assert set(batch["step"]) == {step}
            assert mapped.step == step + 1


@pytest.mark.parametrize("way", [{"workers": 2}, {"processes": 2}], ids=str)
def test_a_function_of_examples_is_not_called_for_padding(local, way):
    feed = local("epochs: 1 tail: PAD select { take: 90 }")
    plain = list(local("epochs: 1 tail: PAD select { take: 90 }"))
    with systole.map(feed, mapped_functions.mean_of_example, per_example=True, **way) as mapped:
        batches = list(mapped)
    assert sum(batch["valid"].sum() for batch in batches) == 90 < RECORDS
    for before, after in zip(plain, batches, strict=True):
        for i, valid in enumerate(before["valid"]):
            want = np.asarray(before["image"])[i].mean(dtype=np.float32) if valid else 0
            assert after["mean"][i] == want
            assert after["label"][i] == (before["label"][i] if valid else 0)


@pytest.mark.parametrize("way", [{"workers": 3}, {"processes": 2}], ids=str)
def test_a_function_error_names_its_step_and_is_raised_at_that_step(feed, way):
    with systole.map(feed, mapped_functions.fails_at_step_3, **way) as mapped:
        assert [next(mapped).step for _ in range(3)] == [0, 1, 2]
        for _ in range(2):
            with pytest.raises(
                systole.FunctionError, match="fails_at_step_3.* at step 3: LookupError: no such"
            ) as caught:
                next(mapped)
            assert isinstance(caught.value.__cause__, LookupError)
        assert mapped.step == 3
        mapped.skip_to(4)
        assert [batch.step for batch in mapped] == [4, 5]


def test_an_exception_that_cannot_be_pickled_is_still_reported(local):
    function = mapped_functions.raises_what_cannot_be_sent
    with systole.map(local(), function, processes=1) as mapped:
        with pytest.raises(systole.FunctionError, match="step 0: RuntimeError: Unpicklable: one"):
            next(mapped)


def test_results_made_before_a_skip_to_are_freed(local):
    with systole.map(local(), mapped_functions.brighter, workers=2) as mapped:
        left = []
        for step in [3, 7, 1]:
            mapped.skip_to(step)
            mapped.peek()
            left.append(weakref.ref(mapped._row))
        mapped.skip_to(0)
        deadline = time.monotonic() + LONGEST_WAIT
        while any(row() is not None for row in left):
            assert time.monotonic() < deadline
            gc.collect()
            time.sleep(0.01)


def test_several_threads_may_call_one_process(local):
    function = _map_process.RemoteFunction(mapped_functions.steps_as_arrays, "steps_as_arrays")
    batches = list(local().steps())
    wrong = []

    def call():
        for batch in batches * 5:
            if set(function(batch)["step"]) != {batch.step}:
                wrong.append(batch.step)

    callers = [threading.Thread(target=call) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    function.close()
    assert wrong == []


def test_a_killed_process_raises_an_error_that_names_the_step(local):
    with systole.map(local(), mapped_functions.dies_at_step_2, processes=1) as mapped:
        assert [next(mapped).step for _ in range(2)] == [0, 1]
        with pytest.raises(systole.FunctionError, match="ended by signal 9 at step 2"):
            next(mapped)


@pytest.mark.parametrize("way", [{"workers": 2}, {"processes": 1}], ids=str)
def test_a_result_that_changes_its_shape_is_refused_with_both_shapes(local, way):
    with systole.map(local(), mapped_functions.grows, **way) as mapped:
        # Which batch is ready first depends on the workers, so the message may name any step.
        with pytest.raises(
            systole.InvalidSpec,
            match=r"grows gave 'rows' as float64\[16, \d+\] for step \d+, but as "
            r"float64\[16, \d+\] for an earlier step",
        ):
            for _ in range(2):
                next(mapped)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda batch: batch["label"], "gave a Array; want a dict"),
        (lambda batch: {"a": np.zeros(3)}, r"gave 'a' in the shape \[3\] .*; want \[16\]"),
        (lambda batch: {"a": 1}, r"gave 'a' in the shape \[\] for step 0; want \[16\]"),
        (lambda batch: {"a": [None] * 16}, "gave 'a' as Python objects"),
        (lambda batch: {"a": batch["lable"]}, "KeyError.*lable.*the batch has"),
    ],
)
def test_invalid_results_of_a_function_raise_an_error_with_the_reason(local, function, message):
    with systole.map(local(), function, workers=1) as mapped:
        with pytest.raises(systole.Error, match=message):
            next(mapped)


@pytest.mark.parametrize("way", [{"workers": 2}, {"processes": 1}], ids=str)
def test_a_function_may_work_in_place(local, way):
    plain = list(local())
    with systole.map(local(), mapped_functions.adds_in_place, **way) as mapped:
        for before, after in zip(plain, mapped, strict=True):
            np.testing.assert_array_equal(after["label"], before["label"] + 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "workers is 0"),
        ({"processes": 1000}, "processes is 1000"),
        ({"workers": 1, "processes": 1}, "not both"),
        ({"ahead": 0}, "ahead is 0"),
        ({"worker": 3}, "'workers'"),
    ],
)
def test_invalid_arguments_are_refused(local, options, message):
    with pytest.raises(systole.InvalidSpec, match=message):
        systole.map(local(), mapped_functions.brighter, **options)


def test_a_function_that_processes_cannot_import_is_refused(local):
    with pytest.raises(systole.InvalidSpec, match="define it in a module"):
        systole.map(local(), lambda batch: {}, processes=1)


@pytest.mark.parametrize("guard", ["if True:", 'if __name__ == "__main__":'])
def test_a_script_needs_a_main_guard_for_processes_and_the_error_says_so(
    guard, shards, write_spec, tmp_path
):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, systole\n"
        "def same(batch): return dict(batch)\n"
        f"{guard}\n"
        "    feed = systole.LocalFeed({'flowers': sys.argv[1]}, sys.argv[2])\n"
        "    with systole.map(feed, same, processes=1) as mapped:\n"
        "        print(next(mapped).step)\n"
    )
    done = subprocess.run(
        [sys.executable, script, shards, write_spec(spec_text())], capture_output=True, text=True
    )
    if "__main__" in guard:
        assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    else:
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.endswith(
            "InvalidSpec: the process of same ended with exit code 1 before its first batch: a "
            'script that uses processes= needs `if __name__ == "__main__":` around what it does\n'
        )


def test_maps_can_be_nested_and_begin_where_the_feed_is(local):
    feed = local()
    next(feed)
    assert feed.peek().step == 1
    once = systole.map(feed, lambda batch: {"label": batch["label"] + 1})
    with systole.map(once, lambda batch: {"label": batch["label"] * 10}) as twice:
        labels = [(batch.step, batch["label"]) for batch in twice.steps()]
    plain = list(local().steps())[1:]
    for (step, label), batch in zip(labels, plain, strict=True):
        assert step == batch.step
        np.testing.assert_array_equal(label, (batch["label"] + 1) * 10)


def test_per_core_gives_the_parts_of_mapped_arrays(local):
    feed = local()
    cores = feed.cores[1]
    plain = feed.peek()
    with systole.map(feed, lambda batch: {"label": batch["label"] + 1}) as mapped:
        batch = mapped.peek()
        assert mapped.element_spec["label"].per_core_shape == (16 // cores,)
        for core, part in enumerate(batch.per_core()):
            np.testing.assert_array_equal(part["label"], plain.core_array("label", core) + 1)


def test_jax_takes_a_mapped_feed(local):
    import jax

    mapped = systole.map(local(), lambda batch: {"label": batch["label"] + 1})
    plain = list(local())
    with mapped:
        on_device = list(systole.jax.device_prefetch(mapped, jax.devices()[0]))
    for before, after in zip(plain, on_device, strict=True):
        np.testing.assert_array_equal(np.asarray(after["label"]), before["label"] + 1)


def test_workers_begin_at_most_ahead_steps_before_the_trainer(local):
    lock = threading.Lock()
    begun = []

    def counts(batch):
        with lock:
            begun.append(batch.step)
        return {"label": batch["label"]}

    with systole.map(local(), counts, workers=2, ahead=3) as mapped:
        for step in range(5):
            assert next(mapped).step == step
            with lock:
                assert max(begun) <= step + 3


def threads_of_maps():
    return [thread for thread in threading.enumerate() if thread.name.startswith("systole.map")]


def wait_for_no_threads():
    deadline = time.monotonic() + LONGEST_WAIT
    while threads_of_maps():
        assert time.monotonic() < deadline, threads_of_maps()
        time.sleep(0.01)


def test_threads_end_with_the_feed_closed_or_forgotten(local):
    wait_for_no_threads()
    with systole.map(local(), mapped_functions.brighter, workers=2) as mapped:
        next(mapped)
        assert threads_of_maps()
    assert not threads_of_maps()
    with pytest.raises(systole.FailedPrecondition, match="closed"):
        next(mapped)

    forgotten = systole.map(local(), mapped_functions.brighter, workers=2)
    next(forgotten)
    del forgotten
    gc.collect()
    wait_for_no_threads()


def test_processes_end_with_the_program_that_started_them(shards, write_spec, tmp_path):
    done = python(
        """
        import os, sys
        sys.path.insert(0, sys.argv[3])
        import mapped_functions, systole
        if __name__ == "__main__":
            feed = systole.LocalFeed({"flowers": sys.argv[1]}, sys.argv[2])
            mapped = systole.map(feed, mapped_functions.brighter, processes=2)
            next(mapped)
            print(*(remote._process.pid for remote in mapped._remote), flush=True)
            os.kill(os.getpid(), 9)
        """,
        shards,
        str(write_spec(spec_text())),
        str(mapped_functions.__file__).rsplit("/", 1)[0],
    )
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 2, done.stderr
    deadline = time.monotonic() + LONGEST_WAIT
    while any(is_running(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def test_stats_count_the_seconds_of_the_function(local):
    with systole.map(local(), mapped_functions.brighter) as mapped:
        list(mapped)
        stats = mapped.stats()
    assert stats["function_seconds"] > 0
    assert stats["waited_seconds"] >= 0
    assert "limit" in stats
