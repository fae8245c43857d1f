"""Checks types. mypy --strict reads the package and a user's program. stubtest compares the stubs
with the extension."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import systole

USER = """
import jax.numpy as jnp
import numpy as np
import systole
import systole.prometheus

spec = systole.FeedSpec(
    dataset="photos",
    select=[systole.Interleave(cycle_length=2), {"skip": 40}],
    shuffle={"mode": "GLOBAL"},
    outputs={
        "image": systole.Image("image", random_resized_crop=(224, 224), dtype="bfloat16"),
        "numpy": systole.Output(feature="label", dtype=np.int32),
        "jax": systole.Output(feature="label", dtype=jnp.int32),
    },
)
with systole.LocalFeed({"photos": "photos-*"}, spec, threads=2) as feed:
    for batch in feed:
        image: systole.Array = batch["image"]
        step: int = batch.step
        state: dict[str, object] = feed.state_dict()
    for batch in feed.steps():
        step = batch.step
    mapped = systole.map(feed, lambda batch: {"image": batch["image"] * 2}, workers=2)
    for changed in mapped:
        image = changed["image"]
    systole.prometheus.register(feed, labels={"feed": "train"})
    numbers: list[float] = [sample.value for one in feed.metrics() for sample in one.samples]
arrays: systole.Arrays = systole.from_arrays({"x": np.zeros((4, 2), np.float32)})
feeds = [
    systole.LocalFeed(arrays, spec),
    systole.LocalFeed({"x": arrays, "y": "y-*", "z": ["z-0", "z-1"]}, spec),
]
with systole.serve({"x": arrays, "y": "y-*"}, columns={"x": ["x"]}) as server:
    feed = systole.LocalFeed(arrays, spec)
written: systole.Written = systole.write("out", ({"x": i} for i in range(3)), shards=2)
count: int = written.records + written.bytes + len(written.shards[0])
for example in systole.read("out-*"):
    value = example["x"]
    text: list[bytes] | None = value if isinstance(value, list) else None
"""
WRONG = {
    'systole.Image("image", dtype="bfloat17")': "bfloat17",
    'systole.Image("image", sharpen=True)': "sharpen",
    'systole.FeedSpec(datset="photos")': "datset",
    "systole.FeedSpec().epoch = 3": "epoch",
    'systole.Feed("a:1", "spec", prefetch="much")': "prefetch",
    'systole.from_arrays({"x": [1, 2]})': "list",
    'systole.write("out", [1])': "int",
    'systole.serve({"a": "a-*"}, columns={"a": 1})': "int",
}


@pytest.fixture(scope="module", autouse=True)
def mypy_cache(tmp_path_factory):
    """All tests here share a cache of mypy, because mypy needs most of its time to read NumPy and
    JAX."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MYPY_CACHE_DIR", str(tmp_path_factory.mktemp("mypy")))
        yield


def mypy(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *arguments], capture_output=True, text=True
    )


def test_the_package_is_typed_strictly():
    package = Path(systole.__file__).parent
    modules = ["systole"]
    for path in package.glob("_[a-z]*.py"):
        modules += ["-m", f"systole.{path.stem}"]
    done = mypy("-m", *modules, "-m", "systole.jax", "-m", "systole.prometheus")
    assert done.returncode == 0, done.stdout


def test_a_users_program_is_typed(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(USER)
    done = mypy(str(program))
    assert done.returncode == 0, done.stdout


def test_a_users_mistakes_are_found(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import systole\n" + "\n".join(WRONG) + "\n")
    done = mypy(str(program))
    for line, word in enumerate(WRONG.values(), 2):
        found = [text for text in done.stdout.splitlines() if f"program.py:{line}:" in text]
        assert found and any(word in text for text in found), (word, done.stdout)


# The ends of messages that stubtest prints for everything that nanobind makes. nanobind's functions
# and classes have types of their own.
NANOBIND = (
    "is not a function",
    "is a disjoint base at runtime, but isn't marked with @disjoint_base in the stub",
    "is inconsistent, metaclass differs",
    '__init__ is inconsistent, stub does not have *args parameter "args"',
    "is inconsistent, stub is a staticmethod but runtime is not",
)


def test_the_stubs_are_those_of_the_extension():
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "--concise", "systole._systole"],
        capture_output=True,
        text=True,
    )
    told = done.stdout.splitlines()
    # This message shows that stubtest has read the extension.
    assert f"systole._systole.spec_to_text {NANOBIND[0]}" in told, done.stdout + done.stderr
    assert [line for line in told if not line.endswith(NANOBIND)] == []
