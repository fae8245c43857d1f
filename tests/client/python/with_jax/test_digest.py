"""Python gets the same bytes as `systole feed --digest`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import systole
from conftest import Server, image, spec_text
from conftest import systole as run

FEEDS = ["tcp", "unix", "local"]


def open_feed(kind: str, spec: str, server: Server, neighbour: Server, shards: str, **options):
    if kind == "local":
        return systole.LocalFeed({"flowers": shards}, spec, threads=2, **options)
    return systole.Feed(server.address if kind == "tcp" else neighbour.address, spec, **options)


def digests(feed: systole.Feed) -> list[str]:
    """The lines "STEP CORE HEX" of all slices of the feed."""
    lines = []
    while batch := next(iter(feed), None):
        first = batch.cores[0]
        for core, digest in enumerate(feed.digest(batch), first):
            lines.append(f"{batch.step} {core} {digest}")
    return lines


@pytest.fixture(scope="module")
def wanted(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[str]]:
    known: dict[str, list[str]] = {}

    def of(spec: str) -> list[str]:
        if spec not in known:
            text = open(spec).read()
            known[spec] = run(
                "feed", "--server", server.address, "--spec", spec, "--steps", 0, "--digest"
            ).splitlines()
            assert known[spec], text
        return known[spec]

    return of


@pytest.mark.parametrize("kind", FEEDS)
@pytest.mark.parametrize("dtype", ["UINT8", "FLOAT32", "BFLOAT16"])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW", "HWCN"])
def test_dtypes_and_layouts_match_the_command(
    kind, dtype, layout, server, neighbour, shards, write_spec, wanted
):
    # With images of this size the server on the Unix socket shares memory.
    spec = write_spec(spec_text(image("image", dtype, layout, size=200)))
    with open_feed(kind, spec, server, neighbour, shards) as feed:
        assert digests(feed) == wanted(spec)
        if kind == "unix":
            assert feed.stats()["not_shared"] == ""


@pytest.mark.parametrize("kind", FEEDS)
def test_tiled_layouts_match_the_command(kind, server, neighbour, shards, write_spec, wanted):
    spec = write_spec(spec_text(image("image", "BFLOAT16", "HWCN_TILED")))
    with open_feed(kind, spec, server, neighbour, shards) as feed:
        assert digests(feed) == wanted(spec)


@pytest.mark.parametrize("kind", FEEDS)
def test_four_processes_together_equal_one(kind, server, neighbour, shards, write_spec, wanted):
    spec = write_spec()
    lines = []
    for process in range(4):
        with open_feed(
            kind, spec, server, neighbour, shards, process_index=process, process_count=4
        ) as feed:
            assert feed.cores == (process, process + 1)
            lines += digests(feed)
    assert sorted(lines) == sorted(wanted(spec))


@pytest.mark.parametrize("kind", FEEDS)
@pytest.mark.parametrize("step", [0, 1, 5, 6, 7, 12])
def test_resuming_gives_remaining_steps(kind, step, server, neighbour, shards, write_spec, wanted):
    spec = write_spec()
    with open_feed(kind, spec, server, neighbour, shards) as feed:
        state = feed.state_at(step)
    with open_feed(kind, spec, server, neighbour, shards) as feed:
        feed.load_state_dict(state)
        rest = [line for line in wanted(spec) if int(line.split()[0]) >= step]
        assert digests(feed) == rest


@pytest.mark.parametrize("finish", ["auto", "server", "client"])
def test_server_and_client_finish_batches_alike(finish, server, neighbour, write_spec, wanted):
    spec = write_spec(spec_text(image("image", "BFLOAT16", "NCHW", rounded=True)))
    for kind, there in (("tcp", server), ("unix", neighbour)):
        with systole.Feed(there.address, spec, finish=finish, share_memory=False) as feed:
            assert digests(feed) == wanted(spec)
            finished_here = finish == "client" or (finish == "auto" and kind == "tcp")
            assert (feed.stats()["compact_steps"] > 0) == finished_here


def test_an_unknown_value_of_finish_is_refused(server, write_spec):
    with pytest.raises(systole.InvalidSpec, match="finish is 'both', want auto, server or client"):
        systole.Feed(server.address, write_spec(), finish="both")
