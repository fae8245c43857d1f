"""Reads what benchmarks append to $SYSTOLE_BENCH_RESULTS (rounds.h). Each line is a JSON object: a
row of the table, a point of a curve, or a figure that cannot be measured on this machine."""

import json
import math

_TEXT, _NUMBER = str, (int, float)

ROW = {
    "figure": _TEXT, "ceiling": _TEXT, "unit": _TEXT, "figure_value": _NUMBER,
    "ceiling_value": _NUMBER, "ratio": _NUMBER, "ratio_min": _NUMBER, "ratio_max": _NUMBER,
    "rounds": int,
}
ROW_OPTIONAL = {
    "wanted": _NUMBER, "bound": _TEXT, "valid_up_to": _NUMBER, "cpu_seconds_per_unit": _NUMBER,
    "peak_bytes": _NUMBER,
}
POINT = {
    "curve": _TEXT, "series": _TEXT, "x_label": _TEXT, "x": _NUMBER, "y_label": _TEXT, "y": _NUMBER,
}
NOT_MEASURED = {"not_measured": _TEXT, "reason": _TEXT}


class MalformedResults(Exception):
    """The message names file, line and what is wrong."""


def _check_fields(line, required, optional):
    missing = [key for key in required if key not in line]
    if missing:
        raise ValueError("lacks " + ", ".join(missing))
    for key, value in line.items():
        kind = required.get(key) or optional.get(key)
        if kind is None:
            raise ValueError(f"has the unknown field {key}")
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ValueError(f"{key} is {value!r}, want {'text' if kind is _TEXT else 'a number'}")
        if kind is not _TEXT and not math.isfinite(value):
            raise ValueError(f"{key} is {value!r}, want a finite number")


def _check(line):
    if not isinstance(line, dict):
        raise ValueError("is not a JSON object")
    if "curve" in line:
        _check_fields(line, POINT, {})
        return
    if "not_measured" in line:
        _check_fields(line, NOT_MEASURED, {})
        return
    _check_fields(line, ROW, ROW_OPTIONAL)
    if ("wanted" in line) != ("bound" in line):
        raise ValueError("has only one of wanted and bound; want both or neither")
    if line.get("bound", "at least") not in ("at least", "at most"):
        raise ValueError(f"bound is {line['bound']!r}, want 'at least' or 'at most'")


def read(path):
    """Returns the rows, the points and the figures that were not measured, each in the file's
    order. Raises MalformedResults."""
    rows, points, not_measured = [], [], []
    with open(path, encoding="utf-8") as file:
        for number, text in enumerate(file, start=1):
            try:
                line = json.loads(text)
                _check(line)
            except ValueError as error:  # JSONDecodeError is a ValueError.
                raise MalformedResults(f"{path}, line {number}: {error}") from error
            if "curve" in line:
                points.append(line)
            elif "not_measured" in line:
                not_measured.append(line)
            else:
                rows.append(line)
    return rows, points, not_measured


def verdict(row):
    """'hit', 'MISS', 'BAD CEILING', or '' if the row has no `wanted`."""
    if row["ratio"] > row.get("valid_up_to", math.inf):
        return "BAD CEILING"
    if "wanted" not in row:
        return ""
    at_least = row["bound"] == "at least"
    hit = row["ratio"] >= row["wanted"] if at_least else row["ratio"] <= row["wanted"]
    return "hit" if hit else "MISS"


def aligned(header, lines):
    """A Markdown table. Its columns are also aligned in the Markdown text. Numbers are aligned
    right."""
    def is_number(cell):
        return cell[:1].isdigit() or cell[:1] in "-" or cell == ""
    columns = list(zip(header, *lines))
    widths = [max(map(len, column)) for column in columns]
    right = [len(column) > 1 and all(map(is_number, column[1:])) for column in columns]

    def render(cells):
        padded = (cell.rjust(width) if to_right else cell.ljust(width)
                  for cell, width, to_right in zip(cells, widths, right))
        return "| " + " | ".join(padded) + " |"
    rule = ("-" * (width - 1) + (":" if to_right else "-")
            for width, to_right in zip(widths, right))
    return "\n".join([render(header), "| " + " | ".join(rule) + " |", *map(render, lines)])


def number(value):
    """Three significant digits or more: 0.0123, 1.23, 12.3, 1,234."""
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"
