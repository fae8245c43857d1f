"""What Feed and LocalFeed have in common."""

from __future__ import annotations

import atexit
import time
import weakref
from collections.abc import Callable
from typing import Any

from systole import _systole
from systole._any_feed import STATE_VERSION, AnyFeed
from systole._batch import ArraySpec, Batch, Layout, Page
from systole._metrics import Metric, metrics_of

_open_feeds: weakref.WeakSet[BaseFeed] = weakref.WeakSet()


@atexit.register
def _close_feeds() -> None:
    # Runs before modules are torn down, so that a feed's threads end while Python still runs.
    for feed in list(_open_feeds):
        try:
            feed.close()
        except Exception:
            pass  # This process is a child of fork(), and the feed belongs to the parent.


class BaseFeed(AnyFeed[Batch]):
    """The base of Feed and LocalFeed."""

    # `open_at(token)` opens the extension's feed at the token's step, or at the first step if the
    # token is None.
    def __init__(
        self,
        spec: bytes,
        num_cores: int,
        said_by: str,
        open_at: Callable[[str | None], _systole.FeedHandle],
    ) -> None:
        super().__init__()
        self._spec = spec
        self._said_by = said_by
        self._open_at = open_at
        self._handle = open_at(None)
        sheets = self._handle.sheets(spec, self._source())
        self._layout = Layout(self._handle.shape(), num_cores, sheets)
        self._closed = False
        self._waited = 0.0
        self._began: float | None = None
        _open_feeds.add(self)

    def _taker(self) -> Callable[[], Batch | None]:
        handle = self._handle

        def take() -> Batch | None:
            begin = time.monotonic()
            if self._began is None:
                self._began = begin
            try:
                step = handle.next()
            finally:
                self._waited += time.monotonic() - begin
            return None if step is None else Batch(step[0], step[1], self._layout)

        return take

    def __len__(self) -> int:
        """Steps of an epoch."""
        return self._layout.steps_per_epoch

    def state_at(self, step: int) -> dict[str, Any]:
        """The state to go on with step `step`. For callers that take batches ahead."""
        return {"version": STATE_VERSION, "step": step, "token": self._handle.token_at(step)}

    def start_prefetch(self) -> None:
        """Begins to fetch now, before anybody takes a batch. Grain calls this after
        set_state()."""
        self._handle.start()

    def _move(self, token: str) -> int:
        handle = self._open_at(token)
        self._handle.close()
        self._handle = handle
        return handle.first_step()

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
        """How the transforms of each output run: fused into one pass, row by row, or each alone.
        One line for each output. All three ways make the same bytes; fused is the fastest.
        """
        return self._handle.explain()

    def stats(self) -> dict[str, Any]:
        """Counts since the feed was opened, or since skip_to() or load_state_dict().

        `waited_seconds` is the time spent waiting for batches. `total_seconds` is all time since
        the first batch was asked for. If the two are nearly equal, the feed limits the training.

        `limit` says what limits the feed: "storage", "decode", "wire", "client", "trainer",
        "nothing", or "unknown" before the second batch. The README says what to do about each of
        these, in "When it is slow". If `limit` is "decode", `limit_output` is the costliest output,
        and `limit_operation` the costliest operation of this output. Each of the two is None if it
        is not known. `limit_share` is the limit's part of the waits. `recent_limit` is the limit of
        the last half minute or so. `trainer_wait_seconds` has the waits by cause.
        """
        total = 0.0 if self._began is None else time.monotonic() - self._began
        return {
            **self._handle.stats(),
            "waited_seconds": self._waited,
            "total_seconds": total,
        }

    def metrics(self) -> list[Metric]:
        """The counts of stats() for a monitor, under Prometheus' names, with a histogram of the
        waits. Any thread may call metrics(). systole.prometheus gives these metrics to
        prometheus_client.
        """
        return metrics_of(self._handle.metrics())

    def masked_records(self) -> list[dict[str, Any]]:
        """The damaged records that the feed met and masked, each once. `record` is the record_id. A
        LocalFeed also gives the shard, the offset and the cause. For a feed from servers,
        `systole status` shows the shard, the offset and the cause.
        """
        return [{"record": record} for record in self._handle.stats()["masked_records"]]

    def show(self, n: int = 16) -> Page:
        """The first `n` examples of the next batch, as a page. show() does not consume the batch. A
        notebook shows the page, and page.save(path) writes the page into a file for a browser.
        """
        return self.peek().show(n)

    def digest(self, batch: Batch) -> list[str]:
        """The digest of each core's part, as `systole feed --digest` prints it for the step."""
        return [self._handle.digest(batch._memory, core) for core in range(*batch.cores)]

    def close(self) -> None:
        """Ends the feed. A thread that waits for a batch gets Cancelled. Batches stay valid."""
        self._closed = True
        self._peeked = None
        self._handle.close()
        _open_feeds.discard(self)

    def _source(self) -> str:
        raise NotImplementedError

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
