"""What every feed can do: an iterator of batches with a state."""

from __future__ import annotations

import atexit
import json
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from systole import _errors, _systole
from systole._arguments import whole_number
from systole._batch import ArraySpec, Batch, Layout, Page
from systole._metrics import Metric, metrics_of

_STATE_VERSION = 1

# Methods of tf.data's and other datasets, and what to use here.
_NOT_HERE = {
    "take": "itertools.islice(feed.steps(), n) gives n batches",
    "skip": "skip_to(step) goes on with another step; the spec's select=[Select(skip=n)] leaves "
    "out records",
    "map": "use the spec's transforms=, or work on the batches that you get",
    "filter": "use the spec's select= to pick records, or leave out batches that you get",
    "batch": "its elements are batches; the spec's global_batch is their number of examples",
    "repeat": "use the spec's epochs=; feed.steps() goes on over all epochs",
    "shuffle": "use the spec's shuffle=Shuffle('global')",
    "prefetch": "use prefetch_bytes=; for devices, systole.jax.device_prefetch()",
    "shard": "process_index= and process_count= give this process its part",
    "as_numpy_iterator": "its batches are NumPy arrays already",
}
_open_feeds: weakref.WeakSet[BaseFeed] = weakref.WeakSet()


@atexit.register
def _close_feeds() -> None:
    # Runs before modules are torn down, so that a feed's threads end while Python still runs.
    for feed in list(_open_feeds):
        try:
            feed.close()
        except Exception:
            pass  # In a child of fork(): the feed is the parent's.


class BaseFeed(Iterator[Batch]):
    """The base of Feed and LocalFeed: an iterator of batches with a state.

    `for batch in feed` gives one epoch, or what is left of it. The next loop goes on with the next
    epoch. After the feed's last epoch a loop is empty. len(feed) is the number of steps of an
    epoch. `for batch in feed.steps()` gives all that is left, over all epochs. `next(feed)` raises
    StopIteration at the end of the epoch. `next(feed.steps())` raises it only at the end of the
    feed.
    """

    # `open_at(token, first_step)` opens the extension's feed.
    def __init__(
        self,
        spec: bytes,
        num_cores: int,
        said_by: str,
        open_at: Callable[[str | None, int], _systole.FeedHandle],
    ) -> None:
        self._spec = spec
        self._said_by = said_by
        self._open_at = open_at
        self._handle = open_at(None, 0)
        sheets = self._handle.sheets(spec, self._source())
        self._layout = Layout(self._handle.shape(), num_cores, sheets)
        self._next_step = 0
        self._epoch_end: int | None = None
        self._peeked: Batch | None = None
        self._closed = False
        self._waited = 0.0
        self._began: float | None = None
        _open_feeds.add(self)

    # ---- Batches ----

    def __iter__(self) -> BaseFeed:
        """This feed, for the rest of its current epoch."""
        epoch = self._next_step // self._layout.steps_per_epoch
        self._epoch_end = (epoch + 1) * self._layout.steps_per_epoch
        return self

    def __next__(self) -> Batch:
        """The next batch. StopIteration at the end of the epoch. Ctrl-C ends the wait.

        Raises DataLoss, FailedPrecondition, Unavailable and other kinds of systole.Error.
        """
        if self._epoch_end is None:
            iter(self)
        assert self._epoch_end is not None
        if self._next_step >= self._epoch_end:
            raise StopIteration
        batch = self._peeked or self._take()
        self._peeked = None
        if batch is None:
            raise StopIteration
        self._next_step = batch.step + 1
        return batch

    def steps(self) -> Steps:
        """The rest of the feed, over all epochs. For a training that counts steps."""
        return Steps(self)

    def _take(self) -> Batch | None:
        begin = time.monotonic()
        if self._began is None:
            self._began = begin
        try:
            step = self._handle.next()
        finally:
            self._waited += time.monotonic() - begin
        return None if step is None else Batch(step[0], step[1], self._layout)

    def peek(self) -> Batch:
        """The next batch, even of the next epoch. It still counts as not consumed."""
        if self._peeked is None:
            self._peeked = self._take()
        if self._peeked is None:
            raise StopIteration("the feed has ended: there is no next batch")
        return self._peeked

    def __len__(self) -> int:
        """Steps of an epoch."""
        return self._layout.steps_per_epoch

    # ---- Position ----

    @property
    def step(self) -> int:
        """The number of the batch that comes next, counted over all epochs."""
        return self._next_step

    @property
    def epoch(self) -> int:
        """The epoch of the batch that comes next."""
        return self._next_step // self._layout.steps_per_epoch

    def skip_to(self, step: int) -> None:
        """Goes to step number `step`, forwards or back. Costs as much as opening the feed."""
        step = whole_number("step", step)
        if step < 0:
            raise _errors.InvalidSpec(f"step is {step}, want 0 or more")
        self._go_to(self._handle.token_at(step), step)

    def state_dict(self) -> dict[str, Any]:
        """The state after the last batch that was taken. It is the same on every host of a job. A
        job with another number of hosts can load it, in a Feed and in a LocalFeed. This works
        before the first batch, too. Part of PyTorch's protocol Stateful.
        """
        return self.state_at(self._next_step)

    def state_at(self, step: int) -> dict[str, Any]:
        """The state to go on with step `step`. For callers that have taken batches ahead."""
        return {"version": _STATE_VERSION, "step": step, "token": self._handle.token_at(step)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Goes on where state_dict() was taken.

        Raises FailedPrecondition if the data, their order or the content version differ. The
        message says which of them.
        """
        if (
            not isinstance(state_dict, Mapping)
            or state_dict.get("version") != _STATE_VERSION
            or not {"token", "step"} <= state_dict.keys()
        ):
            raise _errors.WrongType(
                f"this is not a state of a feed, or one of a newer release: want a result of "
                f"state_dict(), with version {_STATE_VERSION}, a step and a token, got "
                f"{state_dict!r:.200}"
            )
        self._go_to(str(state_dict["token"]), whole_number("step", state_dict["step"]))

    def get_state(self) -> bytes:
        """state_dict() as JSON. Grain's and Orbax's protocol."""
        return json.dumps(self.state_dict()).encode()

    def set_state(self, state: bytes) -> None:
        """load_state_dict() of JSON."""
        try:
            state_dict = json.loads(state)
        except (TypeError, ValueError):
            raise _errors.WrongType(
                f"this is not a state of a feed: want a result of get_state(), got {state!r:.200}"
            ) from None
        self.load_state_dict(state_dict)

    def start_prefetch(self) -> None:
        """Begins to fetch now, not only with the first batch. Grain calls this after
        set_state()."""
        self._handle.start()

    def _go_to(self, token: str, step: int) -> None:
        handle = self._open_at(token, step)
        self._handle.close()
        self._handle = handle
        self._next_step = step
        self._epoch_end = None
        self._peeked = None

    # ---- Properties ----

    @property
    def element_spec(self) -> dict[str, ArraySpec]:
        """The arrays of every batch, by name."""
        return dict(self._layout.tensors)

    @property
    def cores(self) -> tuple[int, int]:
        """The cores of this feed, [first, last + 1)."""
        return self._layout.cores

    @property
    def num_steps(self) -> int | None:
        """Steps of the whole feed; None if it has no end."""
        return self._layout.end_step

    @property
    def spec(self) -> str:
        """The spec, as textproto."""
        return _systole.spec_to_text(self._spec)

    def explain(self) -> str:
        """How the transforms of each output run: fused into one pass, row by row, or alone. A line
        for each output. Every way makes the same bytes; fused is the fastest.
        """
        return self._handle.explain()

    def stats(self) -> dict[str, Any]:
        """Counts since the feed was opened, or since skip_to() or load_state_dict().

        `waited_seconds` is the time spent waiting for batches, `total_seconds` all time since the
        first batch was asked for. If the two are nearly equal, the feed limits the training.

        `limit` says what limits the feed: "storage", "decode", "wire", "client", "trainer",
        "nothing", or "unknown" before the second batch. With "decode", `limit_output` is the
        costliest output and `limit_operation` its costliest operation, each None if it is not
        known. `limit_share` is the limit's part of the waits. `recent_limit` is the limit of the
        last half minute or so. `trainer_wait_seconds` has the waits by cause. The README says what
        to do about each, in "When it is slow".
        """
        total = 0.0 if self._began is None else time.monotonic() - self._began
        return {
            **self._handle.stats(),
            "waited_seconds": self._waited,
            "total_seconds": total,
        }

    def metrics(self) -> list[Metric]:
        """The counts of stats() for a monitor, under Prometheus' names, with a histogram of the
        waits. Any thread may call it. systole.prometheus gives them to prometheus_client.
        """
        return metrics_of(self._handle.metrics())

    def masked_records(self) -> list[dict[str, Any]]:
        """The damaged records that were met and masked, each once. `record` is the record_id. A
        LocalFeed also gives the shard, the offset and the cause; for servers, `systole status`
        shows them.
        """
        return [{"record": record} for record in self._handle.stats()["masked_records"]]

    def show(self, n: int = 16) -> Page:
        """The first `n` examples of the next batch, as a page. A notebook shows it, and
        page.save(path) writes it for a browser. The batch counts as not consumed.
        """
        return self.peek().show(n)

    def digest(self, batch: Batch) -> list[str]:
        """The digest of each core's part, as `systole feed --digest` prints it for the step."""
        return [self._handle.digest(batch._memory, core) for core in range(*batch.cores)]

    def close(self) -> None:
        """Ends the feed. A wait on another thread raises Cancelled. Batches stay valid."""
        self._closed = True
        self._peeked = None
        self._handle.close()
        _open_feeds.discard(self)

    def __enter__(self) -> BaseFeed:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _source(self) -> str:
        raise NotImplementedError

    if not TYPE_CHECKING:  # mypy finds such mistakes by itself.

        def __getattr__(self, name: str) -> Any:
            if name in _NOT_HERE:
                raise _errors.WrongName(f"a feed has no {name}(): {_NOT_HERE[name]}")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

        def __getitem__(self, index: object) -> Any:
            raise _errors.WrongType(
                "a feed has no elements by number: loop over it, go to a step by skip_to(step), "
                "and give a DataLoader systole.torch.FeedDataset(..)"
            )

    def __repr__(self) -> str:
        layout = self._layout
        arrays = ", ".join(
            f"{spec.name} {spec.dtype}{list(spec.shape or spec.per_core_shape)}"
            for spec in layout.tensors.values()
        )
        steps = "no end" if layout.end_step is None else f"{layout.end_step} steps"
        first, end = layout.cores
        where = "closed" if self._closed else f"at step {self._next_step}"
        slow = ""
        if self._began is not None and not self._closed:
            share = self._waited / max(time.monotonic() - self._began, 1e-9)
            slow = f", {share:.0%} of the time spent waiting for it"
        stats = {} if self._closed else self.stats()
        if slow and stats["limit_share"] > 0:
            named = [stats[name] for name in ("limit_output", "limit_operation") if stats[name]]
            which = f" ({', '.join(named)})" if named else ""
            slow += f", {stats['limit_share']:.0%} of that for {stats['limit']}{which}"
        elif slow and stats["limit"] == "trainer":
            slow += ", the trainer is the limit"
        masked = stats.get("masked_examples", 0)
        if masked > 0:
            slow += f"; {masked} masked for damaged records"
        return (
            f"<systole.{type(self).__name__} {self._source()}: {arrays}; "
            f"{layout.steps_per_epoch} steps an epoch, {steps}; cores {first} to {end - 1} "
            f"({self._said_by}); {where}{slow}>"
        )


class Steps(Iterator[Batch]):
    """The rest of a feed, epoch after epoch. Ends with the feed, which may have no end.

    It has no position of its own. Its next batch follows the last batch that was taken, from here
    or from the feed.
    """

    def __init__(self, feed: BaseFeed) -> None:
        self.feed = feed

    def __next__(self) -> Batch:
        batch = next(self.feed, None)
        if batch is None:  # The end of an epoch, or of the feed.
            batch = next(iter(self.feed))
        return batch
