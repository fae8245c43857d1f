"""systole.ray.dataset: a feed for the workers of Ray Train, in both APIs of Ray Train."""

from __future__ import annotations

import json
import pickle
from collections import defaultdict

import pytest
import systole
import systole.ray
from conftest import spec_text
from ray_cluster import start_driver

pytest_plugins = ["ray_fixtures"]

STEPS = 12  # In two epochs.

TRAIN = """
    import json, os, pathlib, sys, tempfile
    import ray, ray.train, systole.ray
    from ray.train import Checkpoint, FailureConfig, RunConfig, ScalingConfig
    if os.environ["RAY_TRAIN_V2_ENABLED"] == "1":
        from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
    else:
        from ray.train.data_parallel_trainer import DataParallelTrainer

    address, spec, glob, source, folder = sys.argv[1:]
    versions = {"RAY_TRAIN_V2_ENABLED": os.environ["RAY_TRAIN_V2_ENABLED"]}
    ray.init(address=address, log_to_driver=False, runtime_env={"env_vars": versions})

    def train_loop(config):
        feed = config["feed"]
        rank = ray.train.get_context().get_world_rank()
        checkpoint = ray.train.get_checkpoint()
        if checkpoint is not None:
            with checkpoint.as_directory() as saved:
                feed.load_state_dict(json.loads(pathlib.Path(saved, "state").read_text()))
        for batch in feed.steps():
            with open(f"{folder}/rank-{rank}", "a") as file:
                line = [batch.step, batch.cores, batch["id"].tolist(), feed.feed.digest(batch)]
                file.write(json.dumps(line) + "\\n")  # Not print(): releases of Ray may replace it.
            if batch.step == 3:
                with tempfile.TemporaryDirectory() as saved:
                    pathlib.Path(saved, "state").write_text(json.dumps(feed.state_dict()))
                    new = Checkpoint.from_directory(saved) if rank == 0 else None
                    ray.train.report({"step": batch.step}, checkpoint=new)
            if batch.step == 5 and checkpoint is None:
                raise RuntimeError("a worker is lost")
        feed.close()

    if source == "servers":
        options = {"nodes": "feeder", "cpus": 1, "insecure": True}
        servers = systole.ray.serve({"flowers": glob}, **options)
        feed = systole.ray.dataset(spec, servers, prefetch_bytes=1)
    else:
        feed = systole.ray.dataset(spec, datasets=glob, threads=1)
    DataParallelTrainer(
        train_loop,
        train_loop_config={"feed": feed},
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(
            storage_path=f"{folder}/runs", failure_config=FailureConfig(max_failures=1)
        ),
    ).fit()
"""


@pytest.mark.parametrize(("api", "source"), [("1", "servers"), ("0", "servers"), ("1", "datasets")])
def test_workers_share_each_batch_and_go_on_after_a_failure(
    api, source, nodes, tmp_path, shards, write_spec
):
    spec = write_spec()
    folder = tmp_path / "train"
    folder.mkdir()
    driver = start_driver(
        TRAIN, nodes.address, spec, shards, source, str(folder), RAY_TRAIN_V2_ENABLED=api
    )
    driver.communicate()
    assert driver.returncode == 0
    found = defaultdict(dict)
    for rank in (0, 1):
        lines = [json.loads(line) for line in (folder / f"rank-{rank}").read_text().splitlines()]
        steps = [line[0] for line in lines]
        # How many steps the worker took before the failure. Ray may end a worker before it has
        # taken step 4 or 5.
        begun = steps.index(4, steps.index(4) + 1) if steps.count(4) > 1 else 4
        assert steps[:begun] == list(range(begun)) and 4 <= begun <= 6
        assert steps[begun:] == list(range(4, STEPS))
        for step, cores, ids, digests in lines:
            assert cores == [2 * rank, 2 * rank + 2]
            # If a worker gets a step twice, it gets the same examples.
            assert found[step].setdefault(rank, (ids, digests)) == (ids, digests)
    with systole.LocalFeed(shards, spec) as feed:
        for batch in feed.steps():
            (first, upper), (second, lower) = found[batch.step][0], found[batch.step][1]
            assert first + second == batch["id"].tolist()
            assert upper + lower == feed.digest(batch)
            assert not set(first) & set(second)


def test_a_dataset_is_pickled_with_its_spec_and_state(shards, write_spec, tmp_path):
    spec = write_spec()
    given = systole.ray.dataset(spec, datasets=shards, process_index=0, process_count=1)
    wanted = [batch["id"].tolist() for batch in given]
    assert len(wanted) == len(given) == 6
    (tmp_path / "spec.textproto").unlink()  # A worker's node does not have this file.
    state = given.state_dict()
    copy = pickle.loads(pickle.dumps(given))
    assert [batch["id"].tolist() for batch in copy] == wanted
    other = pickle.loads(pickle.dumps(given))
    other.load_state_dict(state)
    third = pickle.loads(pickle.dumps(other))
    rest = [batch["id"].tolist() for batch in other.steps()]
    assert len(rest) == 6 and rest != wanted
    assert [batch["id"].tolist() for batch in third.steps()] == rest
    for one in (given, copy, other, third):
        one.close()


@pytest.mark.parametrize("api", ["0", "1"])
def test_a_dataset_read_outside_of_ray_train_raises_an_error(api, shards, write_spec):
    driver = start_driver(
        """
        import sys, systole, systole.ray
        feed = systole.ray.dataset(sys.argv[1], datasets=sys.argv[2])
        try:
            next(iter(feed))
        except systole.FailedPrecondition as error:
            print(error)
        """,
        write_spec(),
        shards,
        RAY_TRAIN_V2_ENABLED=api,
    )
    said, _ = driver.communicate()
    assert "not a worker of Ray Train" in said and "process_index" in said


def test_a_number_of_workers_that_does_not_divide_the_cores_is_refused(shards, write_spec):
    given = systole.ray.dataset(write_spec(), datasets=shards, process_index=0, process_count=3)
    with pytest.raises(systole.InvalidSpec, match="num_cores is 4, which 3 processes"):
        given.feed


def test_missing_or_unsuitable_servers_are_refused(shards, write_spec):
    spec = write_spec(spec_text())
    with pytest.raises(systole.InvalidSpec, match="give servers, or datasets"):
        systole.ray.dataset(spec)
    with pytest.raises(systole.InvalidSpec, match="this machine alone"):
        systole.ray.dataset(spec, systole.serve({"flowers": shards}))
    with pytest.raises(systole.InvalidSpec, match="systole.ray.serve"):
        systole.ray.Feed("127.0.0.1:1", spec)
