"""Tests which arguments serve() refuses, with which errors, and what the package does without
Ray."""

from __future__ import annotations

import subprocess
import sys

import pytest
import ray
import systole
import systole.ray
from conftest import python
from ray_cluster import server_processes, start_driver
from systole.ray import _nodes

pytest_plugins = ["ray_fixtures"]


def refused(match, datasets=None, error=systole.InvalidSpec, **options):
    with pytest.raises(error, match=match):
        systole.ray.serve(datasets or {"flowers": "x"}, **{"insecure": True, **options})


def test_nodes_and_cpus_that_the_cluster_lacks_are_refused(nodes):
    refused("no living node has the resource 'tape'", nodes="tape", error=systole.NotFound)
    refused("no living node has this id: .*4 CPUs", nodes=["1234"], error=systole.NotFound)
    refused("only 3 living nodes have CPUs", nodes=4, error=systole.NotFound)
    refused("cpus is 5, but node .* has 4", nodes="feeder", cpus=5)
    refused("cpus is 2, but node .* has 1", cpus=2)  # The head node has 1 CPU.


def test_wrong_arguments_are_refused(nodes):
    refused("want 1 or more", cpus=0)
    refused("want 1 or more", nodes=0)
    refused("empty list", nodes=[])
    refused("a number of nodes", nodes=3.5)
    refused("a whole number", cpus="all")
    refused("want a dict", datasets="shards")
    refused("give cpus", threads=3)
    refused("did you mean 'memory_budget'", memory_buget=3)
    refused("tls_certificate and tls_key, or insecure=True", insecure=False)


def test_bad_datasets_are_refused_in_the_servers_words(nodes, tmp_path, mark):
    shards = {"flowers": f"{tmp_path}/nothing-*.tfrecord"}
    options = {"nodes": "feeder", "cpus": 1, "index_dir": mark, "insecure": True}
    with pytest.raises(systole.Error, match=r"(?s)no server on node .*nothing-\*.tfrecord"):
        systole.ray.serve(shards, **options)
    assert server_processes(mark) == {}


def test_cpus_still_in_use_after_start_timeout_are_refused(nodes, shards):
    @ray.remote(num_cpus=4, resources={"feeder": 1})
    class Holder:
        def holds(self):
            return True

    holders = [Holder.remote(), Holder.remote()]
    ray.get([one.holds.remote() for one in holders])
    options = {"nodes": "feeder", "cpus": 3, "insecure": True, "start_timeout": 2}
    with pytest.raises(systole.Error, match="needs 3 of the node's 4 CPUs, and other"):
        systole.ray.serve({"flowers": shards}, **options)
    for one in holders:
        ray.kill(one)


def node(name, cpus, **resources):
    return _nodes.Node(name, "10.0.0.1", {"CPU": cpus, **resources})


def ids(*arguments):
    return [one.id for one in _nodes.chosen(*arguments)]


def test_node_choice_prefers_nodes_with_servers_then_without_accelerators():
    nodes = [node("a", 8, GPU=4), node("b", 4), node("c", 8, feeder=1), node("d", 0, feeder=1)]
    alive = {one.id: one for one in nodes}
    assert ids(alive, None, (), ()) == ["a", "b", "c"]
    assert ids(alive, "feeder", (), ()) == ["c", "d"]
    assert ids(alive, ["d", "a", "gone"], (), ()) == ["a", "d"]
    # Nodes without accelerators are chosen first, and of these the nodes with more CPUs.
    assert ids(alive, 1, (), ()) == ["c"]
    assert ids(alive, 2, (), ()) == ["b", "c"]
    # A node that already has a server is chosen first, unless the node was given up.
    assert ids(alive, 1, ("a",), ()) == ["a"]
    assert ids(alive, 1, ("c",), ("c",)) == ["b"]
    assert ids(alive, 3, ("c",), ("c",)) == ["a", "b", "c"]


def test_cpus_default_to_half_a_node_or_all_of_a_node_with_the_resource():
    large, small = node("a", 8), node("b", 1)
    assert _nodes.cpus_of(large, None, None) == 4
    assert _nodes.cpus_of(small, None, None) == 1
    assert _nodes.cpus_of(large, None, "feeder") == 8
    assert _nodes.cpus_of(large, 3, None) == 3


def test_serve_without_a_cluster_says_to_call_ray_init(shards):
    code = """
        import sys, systole, systole.ray
        try:
            systole.ray.serve({"flowers": sys.argv[1]}, insecure=True)
        except systole.FailedPrecondition as error:
            print(error)
    """
    assert "call ray.init() first" in python(code, shards).stdout


def test_the_package_does_not_import_ray():
    done = python("import sys, systole; print('ray' in sys.modules)")
    assert done.stdout == "False\n", done.stderr


def test_importing_systole_ray_without_ray_says_what_to_install():
    done = python("import sys; sys.modules['ray'] = None; import systole.ray")
    assert "systole.ray needs Ray: pip install 'ray[default]'" in done.stderr


@pytest.mark.parametrize("order", ["before", "after"])
def test_ray_and_the_package_are_imported_in_either_order(order, shards, write_spec):
    imports = ["import ray", "import systole"]
    if order == "after":
        imports.reverse()
    done = python(
        "\n".join(
            [
                *imports,
                "import sys",
                "with systole.LocalFeed(sys.argv[1], sys.argv[2]) as feed:",
                "    assert next(feed).step == 0",
                "ray.init(address='local', num_cpus=1, object_store_memory=80 << 20)",
                "assert ray.get(ray.put(3)) == 3",
            ]
        ),
        shards,
        write_spec(),
    )
    assert done.returncode == 0, done.stderr


def test_the_module_is_typed_strictly(tmp_path):
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path)]
    command += ["-p", "systole.ray"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_ray_code_of_the_readme_runs(nodes, tmp_path):
    driver = start_driver(
        """
        import pathlib, sys
        from readme_blocks import blocks, place, run
        with place(pathlib.Path(sys.argv[1])) as server:
            run(blocks("ray"), server)
        """,
        str(tmp_path),
        RAY_ADDRESS=nodes.address,
    )
    driver.communicate()
    assert driver.returncode == 0
