"""Imports systole before and after packages that bring their own protobuf, gRPC or JPEG libraries.

TensorFlow makes its protobuf visible to the whole process. systole's specs must not use this
protobuf. If a framework is not installed, systole's module for it says what to install.
"""

from __future__ import annotations

import pytest
from conftest import python

USE = """
with systole.Feed(sys.argv[1], sys.argv[2]) as feed:
    assert next(feed).step == 0
with systole.LocalFeed(sys.argv[3], sys.argv[2], threads=1) as feed:
    assert next(feed).step == 0
assert "outputs" in str(systole.FeedSpec(outputs={"x": systole.Image("image", resize=(8, 8))}))
try:
    str(systole.FeedSpec(dataset="d", seed="no number"))
except systole.InvalidSpec:
    pass
"""
# The other packages, each with code that uses the package's own libraries.
OTHERS = {
    "tensorflow": "assert int(tensorflow.reduce_sum(tensorflow.ones((64, 64)))) == 64 * 64",
    "torch": "assert int((torch.ones(64, 64) @ torch.ones(64, 64)).sum()) == 64**3",
    "grpc": "grpc.insecure_channel('127.0.0.1:1').close()",
    "pyarrow.flight": "pyarrow.flight.FlightClient('grpc://127.0.0.1:1').close()",
    "cv2": """
import numpy
jpeg = cv2.imencode(".jpg", numpy.full((16, 16, 3), 77, numpy.uint8))[1]
assert abs(int(cv2.imdecode(jpeg, 1)[8, 8, 0]) - 77) < 3
""",
    "jax": "assert int(jax.numpy.ones(8).sum()) == 8",
    "grain": "assert list(grain.MapDataset.source([1, 2]).to_iter_dataset()) == [1, 2]",
    "orbax.checkpoint": "orbax.checkpoint.PyTreeCheckpointer().close()",
}


@pytest.mark.parametrize("package", OTHERS)
@pytest.mark.parametrize("order", ["before", "after"])
def test_systole_and_another_package_work_in_either_import_order(
    package, order, server, shards, write_spec
):
    imports = ["import systole", f"import {package}"]
    if order == "before":
        imports.reverse()
    # USE and the other package's code run in turns, twice each. So each also runs after the other.
    code = "\n".join(["import sys", *imports, USE, OTHERS[package], USE, OTHERS[package]])
    done = python(code, server.address, write_spec(), shards)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr}"


def test_systole_works_with_all_other_packages_imported(server, shards, write_spec):
    packages = list(OTHERS)
    imports = [f"import {package}" for package in packages]
    imports.insert(len(packages) // 2, "import systole")
    code = "\n".join(["import sys", *imports, USE, *OTHERS.values(), USE])
    done = python(code, server.address, write_spec(), shards)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr}"


# A module of systole, the packages that the test makes missing, and a part of the error.
MISSING = [
    ("keras", ["keras"], "pip install keras"),
    ("grain", ["grain"], "pip install grain"),
    ("orbax", ["etils"], "pip install orbax-checkpoint"),
    ("lightning", ["lightning", "pytorch_lightning"], "pip install lightning"),
    ("transformers", ["transformers"], "pip install transformers accelerate"),
]


@pytest.mark.parametrize(("module", "packages", "told"), MISSING)
def test_a_missing_framework_error_says_what_to_install(module, packages, told):
    done = python(
        """
        import importlib, sys
        module, told, *packages = sys.argv[1:]
        sys.modules.update(dict.fromkeys(packages))
        try:
            importlib.import_module(f"systole.{module}")
        except ImportError as error:
            assert told in str(error), error
        else:
            raise AssertionError("imported")
        """,
        *(module, told, *packages),
    )
    assert done.returncode == 0, done.stderr
