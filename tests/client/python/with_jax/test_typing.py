"""Types: mypy --strict over the package and a user's program; stubs against the extension."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import systole
from systole import _systole

USER = """
import systole

spec = systole.FeedSpec(
    dataset="photos",
    outputs={"image": systole.Image("image", random_resized_crop=(224, 224), dtype="bfloat16")},
)
with systole.LocalFeed({"photos": "photos-*"}, spec, threads=2) as feed:
    for batch in feed:
        image: systole.Array = batch["image"]
        step: int = batch.step
        state: dict[str, object] = feed.state_dict()
"""
WRONG = {
    'systole.Image("image", dtype="bfloat17")': "bfloat17",
    'systole.Image("image", sharpen=True)': "sharpen",
    'systole.FeedSpec(datset="photos")': "datset",
    'systole.Feed("a:1", "spec", prefetch="much")': "prefetch",
}


def mypy(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *arguments], capture_output=True, text=True
    )


def test_the_package_is_typed_strictly(tmp_path):
    package = Path(systole.__file__).parent
    modules = ["systole"]
    for path in package.glob("_[a-z]*.py"):
        modules += ["-m", f"systole.{path.stem}"]
    done = mypy("--cache-dir", str(tmp_path), "-m", *modules, "-m", "systole.jax")
    assert done.returncode == 0, done.stdout


def test_a_users_program_is_typed(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(USER)
    done = mypy("--cache-dir", str(tmp_path / "cache"), str(program))
    assert done.returncode == 0, done.stdout


def test_a_users_mistakes_are_found(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import systole\n" + "\n".join(WRONG) + "\n")
    done = mypy("--cache-dir", str(tmp_path / "cache"), str(program))
    for line, word in enumerate(WRONG.values(), 2):
        found = [text for text in done.stdout.splitlines() if f"program.py:{line}:" in text]
        assert found and any(word in text for text in found), (word, done.stdout)


def test_the_stubs_are_those_of_the_extension():
    stubs = ast.parse(Path(systole.__file__).with_name("_systole.pyi").read_text())
    assert names_in(stubs) == names_of(_systole)
    for node in stubs.body:
        if isinstance(node, ast.ClassDef):
            assert names_in(node) == names_of(getattr(_systole, node.name))


def names_in(node: ast.Module | ast.ClassDef) -> set[str]:
    """The public names that a stub declares."""
    names = set()
    for one in node.body:
        if isinstance(one, (ast.FunctionDef, ast.ClassDef)):
            names.add(one.name)
        elif isinstance(one, ast.AnnAssign):
            names.add(one.target.id)
    return {name for name in names if not name.startswith("_")}


def names_of(thing: object) -> set[str]:
    """The public names that it really has."""
    return {name for name in vars(thing) if not name.startswith("_")}
