"""The package beside others with their own gRPC, protobuf or threads, imported in either order."""

from __future__ import annotations

import pytest
from conftest import python

USE = """
with systole.Feed(sys.argv[1], sys.argv[2]) as feed:
    assert next(feed).step == 0
assert "outputs" in str(systole.FeedSpec(outputs={"x": systole.Image("image", resize=(8, 8))}))
try:
    systole.FeedSpec(dataset="d", seed="no number").__str__()
except systole.InvalidSpec:
    pass
"""


def check(first: str, second: str, server, spec: str) -> None:
    code = f"import sys\n{first}\n{second}\n{USE}"
    done = python(code, server.address, spec)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr}"


@pytest.mark.parametrize("package", ["jax", "grpc", "google.protobuf.message"])
@pytest.mark.parametrize("order", ["before", "after"])
def test_systole_works_with_imports_in_either_order(package, order, server, write_spec):
    other = f"import {package}"
    ours = "import systole"
    check(*((other, ours) if order == "before" else (ours, other)), server, write_spec())
