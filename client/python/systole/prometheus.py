"""Metrics of feeds for prometheus_client.

systole.prometheus.register(feed, labels={"feed": "train"})
prometheus_client.start_http_server(9471)
"""

from __future__ import annotations

import os
import re
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping

try:
    import prometheus_client
    from prometheus_client.core import Metric
    from prometheus_client.registry import Collector, CollectorRegistry
except ImportError as error:
    raise ImportError(
        "systole.prometheus needs prometheus_client 0.16 or later: pip install prometheus_client; "
        "or give feed.metrics() to the monitor that you use"
    ) from error

from systole import _errors
from systole._base_feed import BaseFeed

_LABEL = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")
# Labels that a feed's metrics have already.
_TAKEN = {"cause", "le", "limit"}


def register(
    feed: BaseFeed,
    registry: CollectorRegistry | None = None,
    labels: Mapping[str, str] | None = None,
) -> None:
    """Adds the metrics of a feed, systole_feed_.., to a registry.

    feed:      a Feed or LocalFeed. Of a FeedDataset pass dataset.feed, and of a device_prefetch
               prefetch.feed
    registry:  default: prometheus_client.REGISTRY
    labels:    labels that all metrics of the feed get. All feeds of a registry must have labels
               with the same names, and different values

    The registry does not keep the feed alive. The metrics of a feed vanish when the feed is closed.
    In a child of fork(), the registry gives no metrics of the parent's feeds.
    """
    if not isinstance(feed, BaseFeed):
        raise _errors.WrongType(
            f"feed is a {type(feed).__name__}; want a systole.Feed or LocalFeed; a FeedDataset and "
            "a device_prefetch have one as .feed"
        )
    checked = _checked(labels or {})
    if registry is None:
        registry = prometheus_client.REGISTRY
    with _registering:
        collector = _collectors.get(registry)
        if collector is None:
            collector = _FeedCollector()
            registry.register(collector)
            _collectors[registry] = collector
        collector.add(feed, checked)


def _checked(labels: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(labels, Mapping):
        raise _errors.WrongType(
            f'labels is {labels!r:.200}; want a dict, such as {{"feed": "eval"}}'
        )
    for name, value in labels.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise _errors.WrongType(f"labels has {name!r}: {value!r:.200}; want texts")
        if not _LABEL.fullmatch(name) or name in _TAKEN:
            raise _errors.InvalidSpec(
                f"labels has {name!r}; want letters, digits and _, no digit or __ at the start, "
                f"and none of {', '.join(sorted(_TAKEN))}, which the metrics have themselves"
            )
    return dict(labels)


class _FeedCollector(Collector):
    """Gives one registry the metrics of all its feeds. A registry takes each metric only once, so
    each metric has the series of all feeds."""

    def __init__(self) -> None:
        # Feeds, the processes that registered them, and their labels. A new tuple replaces the old
        # one, so that a scrape needs no lock. After fork(), a lock could stay locked in the child.
        self._feeds: tuple[tuple[weakref.ref[BaseFeed], int, dict[str, str]], ...] = ()

    def add(self, feed: BaseFeed, labels: dict[str, str]) -> None:
        others = [(other, own) for other, own in self._open() if other is not feed]
        for _, own in others:
            if own.keys() != labels.keys():
                raise _errors.InvalidSpec(
                    f"the labels are {sorted(labels)}, but another feed of this registry has "
                    f"{sorted(own)}: give all feeds the same labels, with different values"
                )
            if own == labels:
                raise _errors.InvalidSpec(
                    f"another open feed of this registry has the labels {labels}: give each feed "
                    'its own, such as labels={"feed": "eval"}'
                )
        self._feeds = tuple(
            (weakref.ref(one), os.getpid(), own) for one, own in [*others, (feed, labels)]
        )

    def _open(self) -> Iterator[tuple[BaseFeed, dict[str, str]]]:
        for reference, process, labels in self._feeds:
            feed = reference()
            if feed is not None and not feed._closed and process == os.getpid():
                yield feed, labels

    def describe(self) -> Iterable[Metric]:
        """Describes no metric in advance: the metrics depend on the feeds that are open."""
        return []

    def collect(self) -> Iterable[Metric]:
        metrics: dict[str, Metric] = {}
        for feed, labels in self._open():
            for family in feed.metrics():
                metric = metrics.get(family.name)
                if metric is None:
                    # prometheus_client adds "_total" to a counter's name itself.
                    name = family.name
                    name = name.removesuffix("_total") if family.kind == "counter" else name
                    metric = metrics[family.name] = Metric(name, family.help, family.kind)
                for sample in family.samples:
                    metric.add_sample(sample.name, {**labels, **sample.labels}, sample.value)
        return metrics.values()


_registering = threading.Lock()
_collectors: weakref.WeakKeyDictionary[CollectorRegistry, _FeedCollector] = (
    weakref.WeakKeyDictionary()
)
