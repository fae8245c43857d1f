"""systole.map: a function of the user's own, applied to each batch or example of a feed."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import Any, Literal

from systole import _errors
from systole._any_feed import AnyFeed
from systole._arguments import checks_names, whole_number
from systole._batch import AnyBatch, ArraySpec
from systole._map_process import RemoteFunction
from systole._mapped_batch import Function, MappedBatch, PerExample, Shapes, name_of, no_mapping

_MAX_WORKERS = 256
# What a worker makes of a batch, or the error of this batch. None: the feed has ended.
Result = MappedBatch | BaseException | None


class _Applied:
    """Calls the function for one worker. Checks the arrays that the function gives, and turns the
    function's errors into FunctionError."""

    def __init__(self, function: Function, name: str, shapes: Shapes) -> None:
        self._function = function
        self._name = name
        self._shapes = shapes
        self.seconds = 0.0

    def __call__(self, batch: AnyBatch) -> MappedBatch:
        begin = time.monotonic()
        try:
            given = self._function(batch)
        except Exception as error:
            raise _errors.FunctionError(
                f"{self._name}, the function of systole.map, failed at step {batch.step}: "
                f"{type(error).__name__}: {error}"
            ) from error
        finally:
            self.seconds += time.monotonic() - begin
        if not isinstance(given, Mapping):
            raise no_mapping(self._name, given)
        return self._shapes.batch_of(batch, given)


def _first_then(
    first: AnyBatch | None, take: Callable[[], AnyBatch | None]
) -> Callable[[], AnyBatch | None]:
    """Gives `first`, if there is one, and then what take() gives."""
    waiting = [] if first is None else [first]
    return lambda: waiting.pop() if waiting else take()


class _Row:
    """Workers that take batches in order, and results that come back in the same order.

    A worker holds `_taking` while it takes a batch and gives the batch its number. next() returns
    the results in the order of these numbers.

    SimpleQueue is written in C. A batch costs a few microseconds with SimpleQueue, and some fifty
    microseconds with Condition.
    """

    def __init__(
        self, take: Callable[[], AnyBatch | None], functions: list[_Applied], ahead: int
    ) -> None:
        self._take = take
        self._taking = threading.Lock()
        self._taken = 0  # Batches that workers have taken from the feed; `_taking` guards it.
        # A worker takes one permit before each batch. A None ends a worker.
        self._permits: SimpleQueue[Literal[True] | None] = SimpleQueue()
        self._results: SimpleQueue[tuple[int, Result]] = SimpleQueue()
        # Only next() changes the next three attributes.
        self._given = 0
        self._early: dict[int, Result] = {}  # Results that came before their turn.
        self._owed = 0  # Permits of results that the trainer has taken. next() gives them back.
        # next() gives back this many permits at once, so that a waiting worker wakes up less often.
        self._least_owed = max(1, ahead // 2)
        for _ in range(ahead):
            self._permits.put(True)
        self._threads = [
            threading.Thread(target=self._work, args=(one,), name=f"systole.map {i}", daemon=True)
            for i, one in enumerate(functions)
        ]
        for thread in self._threads:
            thread.start()

    def _work(self, function: _Applied) -> None:
        while True:
            result: Result = None
            with self._taking:
                if self._permits.get() is None:
                    return
                number = self._taken
                self._taken += 1
                try:
                    batch = self._take()
                except BaseException as error:
                    batch = None
                    result = error
                if batch is None:  # The end or an error: no worker may take a further batch.
                    self._end_workers()
            if batch is not None:
                try:
                    result = function(batch)
                except BaseException as error:
                    result = error
            self._results.put((number, result))
            del batch, result  # Both may hold the feed's memory.

    def _end_workers(self) -> None:
        # Workers would take the permits in the queue before the Nones, so remove these first.
        while not self._permits.empty():
            try:
                self._permits.get_nowait()
            except Empty:
                break
        for _ in self._threads:
            self._permits.put(None)

    def next(self) -> MappedBatch | None:
        """The next result, or None at the end of the feed. After an error, every call raises this
        error again."""
        while self._given not in self._early:
            number, result = self._results.get()
            self._early[number] = result
        result = self._early[self._given]
        if isinstance(result, BaseException):
            raise result
        if result is None:
            return None
        del self._early[self._given]
        self._given += 1
        self._owed += 1
        if self._owed >= self._least_owed:
            for _ in range(self._owed):
                self._permits.put(True)
            self._owed = 0
        return result

    def stop(self) -> None:
        """Makes each worker end after its current batch, but does not wait for the workers. If
        another thread waits in next(), its call raises Cancelled.
        """
        self._end_workers()
        self._results.put((self._given, _errors.Cancelled("the feed was closed")))

    def join(self) -> None:
        for thread in self._threads:
            thread.join()


class MappedFeed(AnyFeed[MappedBatch]):
    """A feed whose batches a function has changed. systole.map() makes it.

    The feed below is the feed that map() was given. A MappedFeed has the order of the feed below,
    and states of the same form. Workers take batches from the feed below ahead of the trainer. In a
    MappedFeed's state, such batches do not count as consumed. So save the MappedFeed's state, and
    not that of the feed below. Do not take batches from the feed below any more.
    """

    def __init__(
        self, feed: AnyFeed[Any], function: Function, workers: int, processes: int, ahead: int
    ) -> None:
        super().__init__(feed.step)
        self._below = feed
        self._name = name_of(function)
        self._shapes = Shapes(self._name)
        self._ahead = ahead
        self._waited = 0.0
        # If peek() has taken a batch from the feed below, this batch comes first.
        self._first, feed._peeked = feed._peeked, None
        self._row: _Row | None = None
        self._closed = False
        self._remote = [RemoteFunction(function, self._name) for _ in range(processes)]
        given: list[Function] = list(self._remote) if processes else [function] * workers
        self._applied = [_Applied(one, self._name, self._shapes) for one in given]

    # ---- What each kind of feed implements ----

    def _taker(self) -> Callable[[], MappedBatch | None]:
        if self._closed:
            raise _errors.FailedPrecondition("the feed is closed: open another")
        if self._row is None:
            first, self._first = self._first, None
            self._row = _Row(_first_then(first, self._below._taker()), self._applied, self._ahead)
            # Calls row.stop() once: when _stop_row is called, or else when this feed is freed. So
            # the row's threads end even if nobody calls close().
            self._stop_row = weakref.finalize(self, self._row.stop)
        row = self._row

        def take() -> MappedBatch | None:
            begin = time.monotonic()
            try:
                return row.next()
            finally:
                self._waited += time.monotonic() - begin

        return take

    def _move(self, token: str) -> int:
        if self._row is not None:
            self._stop_row()
        self._row = None
        self._first = None
        self._below._go_to(token)
        return self._below.step

    def __len__(self) -> int:
        """Steps of an epoch."""
        return len(self._below)

    def state_at(self, step: int) -> dict[str, Any]:
        """The state to go on with step `step`. For callers that have taken batches ahead."""
        return self._below.state_at(step)

    def start_prefetch(self) -> None:
        """Begins at once to fetch batches and to apply the function, before the trainer takes a
        batch."""
        self._below.start_prefetch()
        self._taker()

    @property
    def cores(self) -> tuple[int, int]:
        """The cores of this feed, [first, last + 1)."""
        return self._below.cores

    @property
    def num_steps(self) -> int | None:
        """Steps of the whole feed; None if it has no end."""
        return self._below.num_steps

    @property
    def element_spec(self) -> dict[str, ArraySpec]:
        """The arrays of every batch, by name. Waits for the first batch if none has come yet."""
        specs = self._shapes.specs()
        return dict(specs) if specs is not None else self.peek().element_spec

    @property
    def feed(self) -> AnyFeed[Any]:
        """The feed below, for its stats() and metrics(). The feed below is ahead of this feed."""
        return self._below

    def stats(self) -> dict[str, Any]:
        """The counts of the feed below, with two changes. `waited_seconds` is the time that the
        trainer waited for this feed. `function_seconds` is added: the time that all workers
        together spent in the function.
        """
        return {
            **self._below.stats(),
            "waited_seconds": self._waited,
            "function_seconds": sum(one.seconds for one in self._applied),
        }

    def close(self) -> None:
        """Ends this feed and the feed below. A call of the function in a thread is awaited; a call
        in another process is broken off."""
        self._closed = True
        self._peeked = None
        row, self._row = self._row, None
        if row is not None:
            self._stop_row()
        self._below.close()
        for remote in self._remote:
            remote.close()
        if row is not None:
            row.join()

    def __repr__(self) -> str:
        return f"<systole.map of {self._name} over {self._below!r}, at step {self._next_step}>"


@checks_names("map")
def map(
    feed: AnyFeed[Any],
    function: Function,
    *,
    per_example: bool = False,
    workers: int | None = None,
    processes: int | None = None,
    ahead: int | None = None,
) -> MappedFeed:
    """Applies a function of your own to each batch of a feed, in the trainer, in parallel.

    The result is a feed with the same order of batches, whose state `feed` can load, too. The
    function may be called for several batches at the same time. It may change the arrays that it
    gets.

    feed:        a Feed, a LocalFeed, or the result of another map()
    function:    takes a batch (a mapping from names to arrays, with `step` and `epoch`) and gives a
                 dict of arrays. Their first dimension counts the batch's examples. The first batch
                 decides the shapes and dtypes; a later batch with other shapes or dtypes is an
                 error. If the function gives no `valid`, the batch's own `valid` is used
    per_example: the function takes one example, a dict of arrays without the first dimension, and
                 gives a dict. The function is not called for padding, whose arrays become zeros.
                 Exception: in a batch that is all padding it is called for the first example
    workers:     the number of threads that call the function. Threads help if the function releases
                 the GIL, as NumPy does in large arrays. Default: one for each CPU, 8 at most
    processes:   the number of processes that call the function in place of threads. Processes help
                 if the function holds the GIL. They are started by
                 `spawn`, so the function must be defined in a module, and a script needs
                 `if __name__ == "__main__":`. Arrays travel through shared memory
    ahead:       the most batches that workers have taken and the trainer has not taken yet;
                 default: two for each worker, but 8 at least

    Raises FunctionError if the function fails; the message names the step. After that, skip_to()
    can go on with a later step.
    """
    if not isinstance(feed, AnyFeed):
        raise _errors.WrongType(
            f"feed is a {type(feed).__name__}; want a Feed, a LocalFeed or the result of map()"
        )
    if not callable(function):
        raise _errors.WrongType(f"function is {function!r}; want a function of a batch")
    if workers is not None and processes is not None:
        raise _errors.InvalidSpec("give workers (threads) or processes, not both")
    count = processes if processes is not None else workers
    if count is None:
        count = min(len(os.sched_getaffinity(0)), 8)
    word = "workers" if processes is None else "processes"
    count = whole_number(word, count)
    if not 1 <= count <= _MAX_WORKERS:
        raise _errors.InvalidSpec(f"{word} is {count}, want 1 to {_MAX_WORKERS}")
    ahead = max(2 * count, 8) if ahead is None else whole_number("ahead", ahead)
    if ahead < 1:
        raise _errors.InvalidSpec(f"ahead is {ahead}, want 1 or more")
    used = PerExample(function) if per_example else function
    return MappedFeed(feed, used, count, 0 if processes is None else count, ahead)
