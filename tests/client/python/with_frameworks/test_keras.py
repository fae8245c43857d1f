"""systole.keras: datasets for fit(), evaluate() and predict(), and runs that are interrupted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LONGEST_WAIT, python

BACKENDS = ["jax", "torch", "tensorflow"]
RUNS = Path(__file__).parents[1] / "keras_runs.py"


@pytest.fixture
def found(shards, tmp_path):
    """Runs one of the functions of keras_runs.py on a backend; returns the function's result."""

    def run(name, backend):
        done = subprocess.run(
            [sys.executable, str(RUNS), name, shards, str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=LONGEST_WAIT,
            env={**os.environ, "KERAS_BACKEND": backend},
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


@pytest.mark.parametrize("backend", BACKENDS)
def test_fit_gets_every_batch_once_and_in_order(backend, found):
    assert found("fit", backend) == {
        "trained": True,
        "validated": True,
        "step": 10,
        "rows": 100,
        "weighted": True,
        "went_on": True,
        "steps_per_epoch=None": True,
        "steps_per_epoch=4": True,
    }


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_killed_fit_goes_on_with_the_next_batch(backend, found):
    good = {"records": True, "weights": True, "removed": True}
    results = found("resume", backend)
    assert len(results) == 6
    assert results == dict.fromkeys(results, good)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_dataset_takes_mapped_feeds_tuples_weights_and_bfloat16(backend, found):
    assert found("names", backend) == {
        "tuple": True,
        "weights": True,
        "batch_size": 20,
        "mapped": True,
        "inputs_only": True,
        "dtype": "bfloat16",
        "epochs": 2,
    }


def test_a_crash_within_a_save_leaves_the_save_before(found):
    results = found("crash", "jax")
    assert results["records"]
    assert "which have had 5 updates: another run has written" in results["foreign"]


def test_fit_goes_on_after_a_callback_has_stopped_it(found):
    assert found("stopped", "jax") == {"records": True}


def test_fit_runs_with_data_parallel_over_eight_devices(found):
    assert found("devices", "jax") == {"losses": 2, "devices": 8}


def test_invalid_arguments_are_refused_with_an_explanation(shards):
    done = python(
        """
        import os, sys
        os.environ["KERAS_BACKEND"] = "jax"
        import systole, systole.keras
        image = systole.Image("image", resize=(8, 8), dtype="uint8", layout="hwcn")
        label = systole.Output(feature="label", dtype="int32")
        outputs = {"image": image, "label": label}
        spec = systole.FeedSpec(dataset="flowers", global_batch=16, num_cores=4, outputs=outputs)
        feed = systole.LocalFeed(sys.argv[1], spec)
        for options, error, words in [
            ({"inputs": "picture"}, systole.InvalidSpec, "no array 'picture': it has image, label"),
            ({"inputs": "image"}, systole.InvalidSpec, "not one array"),
            ({"inputs": "label", "target": "label"}, TypeError, "did you mean 'targets'?"),
            ({"inputs": "label", "steps_per_epoch": 0}, ValueError, "want 1 or more"),
            ({"inputs": "label", "weights": "none"}, ValueError, "no array 'none'"),
        ]:
            try:
                systole.keras.dataset(feed, **options)
            except error as caught:
                assert words in str(caught), caught
            else:
                raise AssertionError(words)
        for call in (lambda: systole.keras.dataset([1], "x"),
                     lambda: systole.keras.BackupAndRestore([1], "folder")):
            try:
                call()
            except TypeError as caught:
                assert "is a list; want" in str(caught), caught
            else:
                raise AssertionError("a list was taken")
        """,
        shards,
    )
    assert done.returncode == 0, done.stderr
