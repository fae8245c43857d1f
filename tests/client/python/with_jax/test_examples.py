"""The examples do what their descriptions say."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys

from conftest import LONGEST_WAIT, ROOT, systole


def test_flowers_are_learnt_with_jax(tmp_path):
    systole("make-flowers", tmp_path / "images", "--images", 1200)
    systole(
        *("pack", tmp_path / "images", tmp_path / "flowers"),
        *("--shards", 4, "--validation", 0.2, "--resize-short", 64),
    )
    # One device only: XLA ends a program whose host devices wait too long for each other.
    done = subprocess.run(
        [sys.executable, ROOT / "client/python/examples/flowers_jax.py", tmp_path],
        capture_output=True,
        text=True,
        env={**os.environ, "XLA_FLAGS": ""},
    )
    assert done.returncode == 0, done.stderr
    found = re.fullmatch(r"validation accuracy (0\.\d+) over 240 pictures\n", done.stdout)
    assert found is not None, done.stdout
    assert float(found.group(1)) >= 0.90


def test_processes_of_one_job_train_on_one_feed(tmp_path):
    systole("make-flowers", tmp_path / "images", "--images", 300, "--size", 48)
    systole("pack", tmp_path / "images", tmp_path / "flowers", "--shards", 2, "--validation", 0.2)
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        coordinator = f"127.0.0.1:{holder.getsockname()[1]}"
    readme = (ROOT / "client/python/README.md").read_text()
    commands = re.findall(
        r"^python (\S*distributed_jax.py) data 127.0.0.1:8476 (.*?)(?: &)?$", readme, re.M
    )
    processes = [
        subprocess.Popen(
            [sys.executable, ROOT / example, tmp_path, coordinator, *arguments.split()],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "XLA_FLAGS": ""},
        )
        for example, arguments in commands
    ]
    told = []
    for process in processes:
        out, err = process.communicate(timeout=LONGEST_WAIT)
        assert process.returncode == 0, err
        # JAX's transport between CPUs writes to stdout, too.
        told.append([line for line in out.splitlines() if not line.startswith("[Gloo]")])
    assert [lines.pop(0) for lines in told] == [
        "process 0 has cores (0, 4)",
        "process 1 has cores (4, 8)",
    ]
    assert told[0] == told[1]
    losses = [float(line.split()[-1]) for line in told[0][:-1]]
    assert len(losses) == 20  # Each epoch has three steps.
    assert losses[-1] < losses[0]
    assert told[0][-1].startswith("state ")


def test_the_trainer_of_kubernetes_goes_on_where_it_was_ended(tmp_path, start_server):
    systole("make-flowers", tmp_path / "images", "--images", 360, "--size", 48)
    systole("pack", tmp_path / "images", tmp_path / "flowers", "--shards", 2)
    server = start_server(data=str(tmp_path / "flowers-train-*.tfrecord"))
    state = tmp_path / "feed.json"
    # Two epochs of five steps.
    for begin, examples in ((0, 640), (10, 0)):
        done = subprocess.run(
            [sys.executable, ROOT / "deploy/kubernetes/trainer/train.py"],
            capture_output=True,
            text=True,
            env={**os.environ, "SERVERS": server.address, "STATE": str(state)},
        )
        assert done.returncode == 0, done.stderr
        wanted = f"begins at step {begin}\n{examples} examples; <systole.Feed "
        assert done.stdout.startswith(wanted), done.stdout
        assert json.loads(state.read_text())["step"] == 10
