"""systole.ray.serve: servers on a cluster. Lost servers are replaced. All end with the job."""

from __future__ import annotations

import os

import pytest
import ray
import systole
import systole.ray
from conftest import spec_text
from ray_cluster import kill, parent_of, server_processes, start_driver, wait_until

pytest_plugins = ["ray_fixtures"]

# 240 steps.
LONG = spec_text(more="epochs: 40 tail: PAD")


@pytest.fixture
def spec(write_spec):
    return write_spec(LONG)


def digests(feed, some=None):
    """The digests of the next steps, or of all that are left."""
    found = []
    while some is None or len(found) < some:
        batch = next(feed.steps(), None)
        if batch is None:
            break
        found.append(feed.digest(batch))
    return found


@pytest.fixture
def wanted(shards, spec):
    with systole.LocalFeed(shards, spec) as feed:
        return digests(feed)


@pytest.fixture
def serve(shards, mark):
    """Starts servers. `mark` in their command lines shows which processes are theirs."""
    started = []

    def start(**options):
        options = {"cpus": 1, "nodes": "feeder", "insecure": True, **options}
        started.append(systole.ray.serve({"flowers": shards}, index_dir=mark, **options))
        return started[-1]

    yield start
    for servers in started:
        servers.close()
    assert server_processes(mark) == {}


def serving(servers):
    """The addresses of the servers by the ids of their nodes."""
    return {one["node"]: one["address"] for one in servers.state() if one["address"]}


def one_way_feed(servers, spec):
    # Only two steps are made ahead, so servers are needed until the feed's end.
    return systole.ray.Feed(servers, spec, prefetch_bytes=1)


def test_a_feed_from_two_nodes_has_the_batches_of_a_local_feed(nodes, serve, spec, wanted):
    with serve() as servers:
        assert sorted(serving(servers)) == sorted(nodes.feeders)
        assert len(set(servers.addresses())) == 2
        with systole.ray.Feed(servers, spec) as feed:
            assert digests(feed) == wanted


def test_a_node_is_killed_under_a_feed_and_another_takes_its_place(nodes, serve, spec, wanted):
    large = [nodes.add(cpus=6) for _ in range(3)]
    servers = serve(nodes=2)
    before = serving(servers)
    assert len(before) == 2 and set(before) < set(large)
    with one_way_feed(servers, spec) as feed:
        found = digests(feed, 20)
        for victim in list(before):
            nodes.kill(victim)
            found += digests(feed, 20)
            wait_until(lambda v=victim: v not in serving(servers) and len(serving(servers)) == 2)
            # The feed takes over the new list of servers.
            wait_until(lambda: sorted(feed._list.addresses) == sorted(servers.addresses()))
        # None of the feed's first servers is left.
        assert not set(before) & set(serving(servers))
        assert found + digests(feed) == wanted


def test_a_killed_server_is_replaced(nodes, serve, mark, spec, wanted):
    servers = serve(nodes=nodes.feeders[:1])
    with one_way_feed(servers, spec) as feed:
        found = digests(feed, 20)
        before = server_processes(mark)
        kill(next(iter(before)))
        found += digests(feed)
        assert found == wanted
    wait_until(lambda: serving(servers))
    (state,) = servers.state()
    assert state["restarts"] == 1 and "has ended" in state["error"]
    assert len(server_processes(mark)) == 1 and not set(before) & set(server_processes(mark))


@pytest.mark.parametrize("who", ["guard", "actor", "controller"])
def test_whatever_process_is_killed_its_servers_end_and_others_start(
    who, nodes, serve, mark, spec, wanted
):
    servers = serve(nodes=nodes.feeders[1:])
    with one_way_feed(servers, spec) as feed:
        found = digests(feed, 20)
        ((server, guard),) = server_processes(mark).items()
        if who == "controller":
            victim = ray.get(servers._controller.process.remote())
        else:
            victim = guard if who == "guard" else parent_of(guard)
        kill(victim)
        wait_until(lambda: server not in server_processes(mark))
        assert found + digests(feed) == wanted
    wait_until(lambda: serving(servers) and len(server_processes(mark)) == 1)


def test_a_node_that_joins_gets_a_server(nodes, serve):
    servers = serve()
    late = nodes.add(feeder=1)
    wait_until(lambda: late in serving(servers))
    assert len(servers.addresses()) == 3


def test_after_too_many_failures_a_node_is_given_up(nodes, serve, mark):
    bad, good = nodes.feeders
    servers = serve(max_restarts=1)
    assert set(serving(servers)) == {bad, good}

    def state():
        return next(one for one in servers.state() if one["node"] == bad)

    first = serving(servers)[bad]
    kill(process_on(first, mark))
    wait_until(lambda: state()["address"] not in ("", first))
    kill(process_on(state()["address"], mark))
    wait_until(lambda: state()["state"] == "given up")
    assert state()["restarts"] == 1
    assert set(serving(servers)) == {good}


def process_on(address, mark):
    """The server that listens on the address."""
    port = int(address.rpartition(":")[2])
    (process,) = [one for one in server_processes(mark) if listening_inodes(one, port)]
    return process


def listening_inodes(process, port):
    lines = open(f"/proc/{process}/net/tcp").read().splitlines()[1:]
    wanted = {
        line.split()[9]
        for line in lines
        if line.split()[3] == "0A" and int(line.split()[1].rpartition(":")[2], 16) == port
    }
    held = set()
    for one in os.listdir(f"/proc/{process}/fd"):
        try:
            held.add(os.readlink(f"/proc/{process}/fd/{one}"))
        except OSError:
            pass
    return [inode for inode in wanted if f"socket:[{inode}]" in held]


DRIVER = """
    import sys, ray, systole.ray
    address, glob, mark = sys.argv[1:]
    ray.init(address=address, log_to_driver=False, logging_level="error")
    options = {"nodes": "feeder", "cpus": 1, "insecure": True, "index_dir": mark}
    servers = systole.ray.serve({"flowers": glob}, **options)
    print(len(servers.addresses()), flush=True)
    how = sys.stdin.readline().strip()
    if how == "shutdown":
        ray.shutdown()
        servers.close()
        assert not ray.is_initialized()
        sys.stdin.readline()
    assert how != "error"
"""


@pytest.mark.parametrize("how", ["end", "error", "shutdown", "kill"])
def test_a_job_that_ends_leaves_no_server(how, nodes, shards, mark):
    driver = start_driver(DRIVER, nodes.address, shards, mark)
    assert driver.stdout.readline() == "2\n"
    assert len(server_processes(mark)) == 2
    if how == "kill":
        driver.kill()
    else:
        driver.stdin.write(f"{how}\n")
        driver.stdin.flush()
    wait_until(lambda: server_processes(mark) == {})
    driver.stdin.close()
    assert driver.wait() == {"end": 0, "error": 1, "shutdown": 0, "kill": -9}[how]


def test_tasks_of_the_job_read_from_the_servers(nodes, serve, spec, wanted):
    servers = serve()

    @ray.remote
    def read(servers, spec):
        with systole.ray.Feed(servers, spec) as feed:
            return [feed.digest(next(feed.steps())) for _ in range(5)]

    assert ray.get(read.remote(servers, spec)) == wanted[:5]
    servers.close()
    with pytest.raises(systole.Unavailable, match="have ended"):
        servers.addresses()
