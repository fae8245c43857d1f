"""Durations in arguments."""

from __future__ import annotations

import re
from datetime import timedelta

from systole import _arguments, _errors

# Seconds, or a text with a unit: "3s", "500ms", "2m".
Duration = float | str | timedelta

_SECONDS = {"": 1.0, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_TEXT = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(ms|s|m|h|)")


def seconds(name: str, value: Duration) -> float:
    """`value` in seconds. InvalidSpec, with the name of the argument, if it is not a duration."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if not isinstance(value, str):
        return _arguments.number(name, value)
    found = _TEXT.fullmatch(value.strip())
    if found is None:
        raise _errors.InvalidSpec(
            f"{name} is {value!r}; want seconds, such as 3 or 0.5, or a text such as '3s', "
            "'500ms', '2m' or '1h'"
        )
    return float(found[1]) * _SECONDS[found[2]]
