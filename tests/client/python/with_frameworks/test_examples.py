"""The examples of moving from tf.data, Grain and DataLoader do the same job before and after the
move. The other examples do what their descriptions say."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest
from conftest import ROOT, python, systole
from readme_blocks import blocks, place, run

EXAMPLES = ROOT / "client" / "python" / "examples"


@pytest.fixture(scope="module")
def flowers(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("flowers")
    systole("make-flowers", folder / "images", "--images", 640, "--seed", 1)
    systole("pack", folder / "images", folder / "flowers", "--shards", 4, "--resize-short", 80)
    return folder


@pytest.mark.parametrize("name", ["from_tf_data", "from_grain", "from_dataloader"])
def test_examples_give_alike_batches_before_and_after_the_migration(name, flowers):
    found = runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name=name)["main"](str(flowers))
    before, after = found["before"], found["after"]
    assert before["steps"] == after["steps"] == 10
    assert before["shape"] == after["shape"]
    # The crops differ, but the pictures are the same.
    assert abs(before["mean"] - after["mean"]) < 0.05
    assert before.get("resumed", True) and after.get("resumed", True)


@pytest.fixture(scope="module")
def whole_flowers(tmp_path_factory) -> Path:
    """The data set of flowers, of which flowers-eval.textproto reads the validation part."""
    folder = tmp_path_factory.mktemp("whole-flowers")
    systole("make-flowers", folder / "images", "--images", 3625, "--seed", 1)
    options = ("--shards", 16, "--resize-short", 80, "--validation", 0.2)
    systole("pack", folder / "images", folder / "flowers", *options)
    return folder


def found_by(name, data, *arguments) -> dict[str, object]:
    """What an example's main() returns. Each example runs in a process of its own, because a
    process has only one backend of Keras and one seed of torch."""
    done = python(
        """
        import json, runpy, sys
        program, data, *arguments = sys.argv[1:]
        sys.path.insert(0, program.rpartition("/")[0])
        found = runpy.run_path(program)["main"](data, *map(int, arguments))
        print(json.dumps(found))
        """,
        *(str(EXAMPLES / name), str(data), *map(str, arguments)),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_keras_learns(whole_flowers):
    found = found_by("flowers_keras.py", whole_flowers)
    assert found["accuracy"] >= 0.9 and found["epochs"] == 8


@pytest.mark.parametrize("name", ["flowers_lightning.py", "flowers_transformers.py"])
def test_a_trainer_learns(name, whole_flowers):
    found = found_by(name, whole_flowers)
    assert found["accuracy"] >= 0.9, found
    assert found["step"] == 5 * 45


@pytest.mark.parametrize("name", ["flowers_grain.py", "flowers_orbax.py"])
def test_a_loop_of_your_own_goes_on_with_the_next_batch(name, whole_flowers):
    assert found_by(name, whole_flowers) == {"steps": 60, "resumed": True}


def test_the_readme_is_true(tmp_path):
    with place(tmp_path) as server:
        run(
            blocks("torch", "lightning", "transformers", "tensorflow", "keras", "grain", "orbax"),
            server,
        )
