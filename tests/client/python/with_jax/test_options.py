"""The keywords of systole.Feed are the rows of the table of feed options."""

from __future__ import annotations

import inspect

import pytest
import systole
from systole import _systole

NOBODY = "127.0.0.1:1"
ROWS = {row["name"]: row for row in _systole.feed_options()}
# The other arguments of Feed. They decide what a feed reads, or exist only in Python.
OTHERS = {
    "servers",
    "spec",
    "cores",
    "process_index",
    "process_count",
    "keep_freed_memory",
}
# Every object can be converted to these types.
TAKES_ALL = {"bool", "str"}


def test_every_feed_option_is_a_keyword_with_its_type_and_default():
    parameters = inspect.signature(systole.Feed).parameters
    assert set(parameters) == OTHERS | set(ROWS)
    for name, row in ROWS.items():
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[name].default == row["default"], name
        assert parameters[name].annotation == row["type"], name


def test_every_feed_option_is_described_in_the_docstring():
    reference = inspect.getdoc(systole.Feed)
    words = " ".join(reference.split()).lower()
    for name, row in ROWS.items():
        assert f"{name}: {row['help']}".lower() in words


@pytest.mark.parametrize("name", [n for n, row in ROWS.items() if row["type"] not in TAKES_ALL])
def test_an_option_of_a_wrong_type_is_refused_by_name(name, write_spec):
    with pytest.raises(TypeError, match=rf"^{name} is .*; want "):
        systole.Feed(NOBODY, write_spec(), **{name: object()})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("hedge_fraction", 1.5, "hedge_fraction is 1.5, want 0 to 1"),
        ("max_step_bytes", 0, "max_step_bytes is 0, want 1 or more"),
        ("retry_for", "0s", "retry_for is 0, want 1ns to 8760h"),
        ("tls_ca", "ca.pem", "tls"),
        ("traceparent", "none", "traceparent is 'none', want a traceparent of W3C"),
    ],
)
def test_an_invalid_option_value_is_refused_by_name(name, value, words, write_spec):
    with pytest.raises(systole.InvalidSpec, match=words):
        systole.Feed(NOBODY, write_spec(), **{name: value})
