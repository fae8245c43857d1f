"""Tests the engine: the threads and the memory that the LocalFeeds of a process share. Each test
runs in a new process."""

from __future__ import annotations

import pytest
from conftest import LONGEST_WAIT, python

# The code that all tests begin with.
HEAD = f"""
import os, sys, time, traceback, systole
LONGEST_WAIT = {LONGEST_WAIT}
shards, spec = sys.argv[1:]

def open_feed(**options):
    return systole.LocalFeed(shards, spec, **options)

def threads():
    return len(os.listdir("/proc/self/task"))

def has_threads(number):
    # After a thread was joined, the kernel still lists it for a moment.
    deadline = time.monotonic() + LONGEST_WAIT
    while threads() != number and time.monotonic() < deadline:
        time.sleep(0.001)
    return threads() == number

def digests(feed, steps=6):
    return [feed.digest(next(feed)) for _ in range(steps)]

def refused(call, *words, error=systole.FailedPrecondition):
    try:
        call()
    except error as said:
        assert all(word in str(said) for word in words), said
    else:
        raise AssertionError("the call was not refused")

def in_a_child(work):
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            # os._exit() prints nothing.
            traceback.print_exc()
            os._exit(1)
    return child

def ended_well(child):
    return os.waitpid(child, 0)[1] == 0
"""


@pytest.fixture
def run(shards, write_spec):
    def run_code(code: str) -> None:
        done = python(f"{HEAD}\n{code}", shards, write_spec())
        assert done.returncode == 0, done.stderr

    return run_code


def test_thirty_feeds_share_the_threads_of_one_and_give_right_batches(run):
    run("""
before = threads()
with open_feed(threads=2) as feed:
    wanted = digests(feed)
    of_one = threads() - before
# An engine has 7 * threads threads, and one more.
assert of_one == 7 * 2 + 1 and has_threads(before)
feeds = [open_feed() if i else open_feed(threads=2) for i in range(30)]
got = [[feed.digest(next(feed)) for feed in feeds] for step in range(6)]
assert has_threads(before + of_one)
assert all(list(column) == wanted for column in zip(*got))
assert all(feed.stats()["steps_received"] == 6 for feed in feeds)
for feed in feeds[::2] + feeds[1::2]:
    assert has_threads(before + of_one)
    feed.close()
assert has_threads(before)
""")


def test_another_number_of_threads_is_refused_while_feeds_are_open(run):
    run("""
first = open_feed(threads=2)
open_feed(threads=2).close()
open_feed().close()
refused(lambda: open_feed(threads=3), "threads is 3", "share 2 threads", "the first open", "leave")
refused(lambda: systole.configure(threads=3), "share 2 threads", "before the next is opened")
refused(lambda: systole.configure(memory_budget=1 << 20), "1073741824 bytes", "close all")
systole.configure(threads=2, memory_budget=1 << 30)  # Nothing changes.
systole.configure()
first.close()
open_feed(threads=3).close()
""")


def test_configure_says_what_later_feeds_share(run):
    run("""
invalid = systole.InvalidSpec
refused(lambda: systole.configure(threads=0), "threads is 0", error=invalid)
refused(lambda: systole.configure(memory_budget=-1), "memory_budget is -1", error=invalid)
before = threads()
systole.configure(threads=1, memory_budget=1 << 28)
refused(lambda: open_feed(threads=2), "share 1 thread", "systole.configure() has set")
with open_feed() as feed:
    next(feed)
    assert has_threads(before + 7 * 1 + 1)
    refused(lambda: systole.configure(memory_budget=1 << 29), f"{1 << 28} bytes")
    refused(lambda: open_feed(threads=2), "close all LocalFeeds", "configure(threads=2)")
systole.configure(memory_budget=100)
refused(open_feed, "memory_budget is 100", error=systole.ResourceExhausted)
systole.configure()
open_feed(threads=2).close()
""")


def test_a_feed_that_nobody_reads_does_not_stop_another(run):
    run("""
with open_feed() as feed:
    wanted = digests(feed)
systole.configure(threads=2, memory_budget=400_000)  # Room for three steps.
stalled = [open_feed() for _ in range(8)]
for feed in stalled:
    next(feed)
with open_feed() as feed:
    assert digests(feed) == wanted
assert [stalled[0].digest(next(stalled[0]))] == wanted[1:2]
""")


def test_feeds_opened_by_threads_at_once_share_an_engine_and_are_right(run):
    run("""
import threading
before = threads()
with open_feed(threads=2) as feed:
    wanted = digests(feed)
got, feeds = [], []
def work():
    for _ in range(5):
        with open_feed(threads=2) as feed:
            got.append(digests(feed))
    feed = open_feed(threads=2)
    feeds.append(feed)
    got.append(digests(feed))
workers = [threading.Thread(target=work) for _ in range(4)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
assert got == [wanted] * 24
assert len(feeds) == 4 and has_threads(before + 7 * 2 + 1)
""")


def test_a_disk_cache_is_free_once_its_feed_is_closed_though_others_are_open(run):
    run("""
import tempfile
other = open_feed()
next(other)
with tempfile.TemporaryDirectory() as folder:
    for _ in range(20):
        feed = open_feed(cache_disk=folder)
        feed.start_prefetch()
        feed.close()
        del feed
""")


def test_a_child_of_fork_has_an_engine_of_its_own(run):
    run("""
systole.configure(threads=2)
feed = open_feed()
wanted = digests(feed, 3)
def work():
    refused(lambda: next(feed), "forked", error=RuntimeError)
    before = threads()
    with open_feed() as own:
        assert digests(own, 3) == wanted
        assert has_threads(before + 7 * 2 + 1)  # The parent's configure() holds in the child, too.
    assert has_threads(before)
assert ended_well(in_a_child(work))
next(feed)
feed.close()
with open_feed() as feed:
    assert digests(feed, 3) == wanted
""")


def test_a_fork_while_feeds_are_read_and_batches_are_held_hangs_nobody(run):
    run("""
import threading
feeds = [open_feed(threads=2) for _ in range(4)]
over = threading.Event()
def read(feed):
    while not over.is_set():
        for batch in feed:
            pass
        feed.skip_to(0)
readers = [threading.Thread(target=read, args=(feed,)) for feed in feeds]
held = [next(feed) for feed in feeds]
for reader in readers:
    reader.start()
for _ in range(100):
    assert ended_well(in_a_child(held.clear))
over.set()
for reader in readers:
    reader.join()
""")
