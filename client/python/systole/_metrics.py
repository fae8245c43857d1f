"""The metrics of a feed as plain values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple


class Sample(NamedTuple):
    """One number, with its name and its labels."""

    name: str
    labels: dict[str, str]
    value: float


class Metric(NamedTuple):
    """All samples of one name. `kind` is "gauge", "counter" or "histogram".

    A sample has the metric's name, except in a histogram. The samples of a histogram are NAME_sum,
    NAME_count, and one NAME_bucket for each bound. The bound is the label `le` of NAME_bucket. The
    value of NAME_bucket is the number of observed values that are at most the bound.
    """

    name: str
    kind: str
    help: str
    samples: list[Sample]


def metrics_of(families: Iterable[tuple[str, str, str, Iterable[tuple[Any, ...]]]]) -> list[Metric]:
    """What FeedHandle.metrics() returns, as Metrics."""
    return [
        Metric(name, kind, help, [Sample(*sample) for sample in samples])
        for name, kind, help, samples in families
    ]
