"""metrics() gives numbers for monitoring. systole.prometheus passes them to prometheus_client."""

from __future__ import annotations

import gc
import re
import threading
import time
import urllib.request
import weakref

import jax
import prometheus_client
import pytest
import systole
import systole.jax
import systole.prometheus
from conftest import python
from prometheus_client.parser import text_string_to_metric_families


@pytest.fixture(params=["local", "served"])
def open_feed(request, shards, server, write_spec):
    def open_it():
        if request.param == "local":
            return systole.LocalFeed(shards, write_spec())
        return systole.Feed(server.address, write_spec())

    return open_it


@pytest.fixture
def registry():
    return prometheus_client.CollectorRegistry()


def numbers(feed: systole.Feed | systole.LocalFeed) -> dict[str, float]:
    """The values of all samples without labels, by name. The names lack `systole_feed_`."""
    return {
        sample.name.removeprefix("systole_feed_"): sample.value
        for metric in feed.metrics()
        for sample in metric.samples
        if not sample.labels
    }


def scraped(registry: prometheus_client.CollectorRegistry) -> dict[str, float]:
    """The values of a scrape, by name and labels. Parses the scrape as Prometheus does."""
    text = prometheus_client.generate_latest(registry).decode()
    found = {}
    for family in text_string_to_metric_families(text):
        for name, labels, value, *_ in family.samples:
            key = name + "".join(f" {label}={labels[label]}" for label in sorted(labels))
            assert key not in found
            found[key] = value
    assert len(re.findall("^# TYPE ", text, re.M)) == len(
        set(re.findall(r"^# TYPE (\S+)", text, re.M))
    )
    return found


def test_metrics_count_every_batch_and_agree_with_stats(open_feed):
    with open_feed() as feed:
        for taken in range(len(feed)):
            now = numbers(feed)
            assert now["next_step"] == taken
            assert now["examples_taken_total"] == 16 * taken
            assert now["step_wait_seconds_count"] == max(0, taken - 1)
            next(feed)
        now = numbers(feed)
        stats = feed.stats()
        assert now["steps_received_total"] >= len(feed)
        assert now["examples_taken_total"] == stats["examples_taken"]
        assert now["step_wait_seconds_sum"] == pytest.approx(
            sum(stats["trainer_wait_seconds"].values()), abs=1e-6
        )
        assert isinstance(stats["recent_wait_ratio"], float)
        limits = {
            sample.labels["limit"]: sample.value
            for metric in feed.metrics()
            if metric.name == "systole_feed_recent_limit"
            for sample in metric.samples
        }
        assert len(limits) == 7 and sum(limits.values()) == 1
        assert limits[stats["recent_limit"]] == 1
    # The closed feed still gives its numbers.
    assert numbers(feed)["examples_taken_total"] == now["examples_taken_total"]


def test_every_number_of_stats_is_a_metric(open_feed):
    with open_feed() as feed:
        next(feed)
        names = {metric.name for metric in feed.metrics()}
        told = {"not_shared", "masked_records", "limit", "limit_output", "limit_operation"}
        told |= {"limit_share", "waited_seconds", "total_seconds"}
        for name in feed.stats().keys() - told:
            assert names & {f"systole_feed_{name}", f"systole_feed_{name}_total"}, name
        for metric in feed.metrics():
            assert metric.kind in ("counter", "gauge", "histogram")
            assert metric.help.endswith(".")
            assert metric.kind != "counter" or metric.name.endswith("_total")


def test_a_scrape_has_the_feeds_with_their_labels(open_feed, registry):
    with open_feed() as train, open_feed() as evaluation:
        systole.prometheus.register(train, registry, {"feed": "train"})
        systole.prometheus.register(evaluation, registry, {"feed": "eval"})
        next(train), next(train)
        next(evaluation)
        found = scraped(registry)
        assert found["systole_feed_next_step feed=train"] == 2
        assert found["systole_feed_next_step feed=eval"] == 1
        assert found["systole_feed_step_wait_seconds_bucket feed=train le=+Inf"] == 1
        assert found["systole_feed_recent_limit feed=eval limit=unknown"] == 1
        assert len({key.replace("=eval", "=train") for key in found}) * 2 == len(found)
        evaluation.close()
        assert not [key for key in scraped(registry) if "eval" in key]
        assert scraped(registry)["systole_feed_next_step feed=train"] == 2
    assert scraped(registry) == {}


def test_a_registry_does_not_keep_a_feed_alive(open_feed, registry):
    feed = open_feed()
    systole.prometheus.register(feed, registry)
    assert scraped(registry)["systole_feed_next_step"] == 0
    gone = weakref.ref(feed)
    del feed
    gc.collect()
    assert gone() is None
    assert scraped(registry) == {}


def test_open_feeds_of_a_registry_need_different_labels(shards, write_spec, registry):
    def opened():
        return systole.LocalFeed(shards, write_spec())

    with opened() as one, opened() as other:
        systole.prometheus.register(one, registry, {"feed": "a"})
        with pytest.raises(systole.InvalidSpec, match="another open feed .* give each feed its"):
            systole.prometheus.register(other, registry, {"feed": "a"})
        with pytest.raises(systole.InvalidSpec, match="another feed of this registry has"):
            systole.prometheus.register(other, registry)
        systole.prometheus.register(one, registry, {"feed": "b"})  # This replaces the label "a".
        systole.prometheus.register(other, registry, {"feed": "a"})
        one.close()
        with opened() as third:
            systole.prometheus.register(third, registry, {"feed": "b"})
            assert scraped(registry)["systole_feed_next_step feed=b"] == 0


@pytest.mark.parametrize(
    "labels", [{"le": "1"}, {"limit": "x"}, {"__x": "1"}, {"a b": "1"}, {"1": "2"}, {"": "1"}]
)
def test_invalid_labels_are_refused(shards, write_spec, registry, labels):
    with systole.LocalFeed(shards, write_spec()) as feed:
        with pytest.raises(systole.InvalidSpec, match="labels has"):
            systole.prometheus.register(feed, registry, labels)
        assert scraped(registry) == {}


def test_register_refuses_an_object_that_is_not_a_feed(registry):
    with pytest.raises(systole.Error, match="feed is a list; want a systole.Feed"):
        systole.prometheus.register([], registry)


def test_label_values_are_escaped(shards, write_spec, registry):
    value = 'a"b\\c\nd'
    with systole.LocalFeed(shards, write_spec()) as feed:
        systole.prometheus.register(feed, registry, {"feed": value})
        assert scraped(registry)[f"systole_feed_next_step feed={value}"] == 0


def test_prometheus_may_scrape_while_the_trainer_waits(server, write_spec, registry):
    web, thread = prometheus_client.start_http_server(0, addr="127.0.0.1", registry=registry)
    address = f"http://127.0.0.1:{web.server_port}/metrics"
    scrapes = []
    done = threading.Event()

    def scrape():
        while not done.is_set():
            with urllib.request.urlopen(address) as answer:
                scrapes.append(answer.read().decode())

    scraper = threading.Thread(target=scrape)
    try:
        with systole.Feed(server.address, write_spec()) as feed:
            systole.prometheus.register(feed, registry)
            scraper.start()
            for _ in feed.steps():
                pass
            while not scrapes or "systole_feed_next_step 12.0" not in scrapes[-1]:
                assert scraper.is_alive()
                time.sleep(0.005)
            done.set()
            scraper.join()
    finally:
        done.set()
        web.shutdown()
        web.server_close()
        thread.join()
    for name in ("next_step", "examples_taken_total", "step_wait_seconds_count"):
        seen = [re.findall(rf"^systole_feed_{name} (\S+)", one, re.M) for one in scrapes]
        values = [float(value) for (value,) in seen]
        assert values == sorted(values), name


def test_the_feed_of_a_device_prefetch_can_be_registered(shards, write_spec, registry):
    prefetch = systole.jax.device_prefetch(
        systole.LocalFeed(shards, write_spec()), jax.devices()[0], size=2
    )
    with prefetch.feed as feed:
        next(prefetch)
        # The feed has given three batches: one that the test has taken, and two that are on their
        # way to the device.
        assert numbers(feed)["next_step"] == 3
        systole.prometheus.register(prefetch.feed, registry)
        assert scraped(registry)["systole_feed_next_step"] == 3


def test_without_prometheus_client_the_error_says_what_to_install(shards, write_spec):
    done = python(
        """
        import sys
        sys.modules["prometheus_client"] = None  # As if it was not installed.
        import systole
        with systole.LocalFeed(sys.argv[1], sys.argv[2]) as feed:
            next(feed)
            print({metric.name: metric.samples[0].value for metric in feed.metrics()}[
                "systole_feed_next_step"])
            try:
                import systole.prometheus
            except ImportError as error:
                print(error)
        """,
        shards,
        write_spec(),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "1.0"
    assert "pip install prometheus_client" in done.stdout
    assert "feed.metrics()" in done.stdout


def test_a_child_of_fork_does_not_show_the_parents_feeds(shards, write_spec):
    done = python(
        """
        import os, sys
        import prometheus_client, systole, systole.prometheus
        registry = prometheus_client.CollectorRegistry()
        feed = systole.LocalFeed(sys.argv[1], sys.argv[2])
        systole.prometheus.register(feed, registry, {"feed": "train"})
        assert b"train" in prometheus_client.generate_latest(registry)
        child = os.fork()
        if child == 0:
            assert b"train" not in prometheus_client.generate_latest(registry)
            own = systole.LocalFeed(sys.argv[1], sys.argv[2])
            systole.prometheus.register(own, registry, {"feed": "train"})
            next(own)
            assert b'next_step{feed="train"} 1.0' in prometheus_client.generate_latest(registry)
            own.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert b'next_step{feed="train"} 0.0' in prometheus_client.generate_latest(registry)
        """,
        shards,
        write_spec(),
    )
    assert done.returncode == 0, done.stderr
