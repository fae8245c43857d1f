#!/usr/bin/env python3
"""Compares the figures of two revisions whose benchmarks ran in turns.

  bench/compare.py A.jsonl NAME_A B.jsonl NAME_B

Both files hold the results of the same number of runs, in order; the ratio B / A is formed run by
run. bench/ab.sh calls this script. It ends with 1 if the two files have no figure in common.
"""

import argparse
import statistics
import sys

import results


def by_figure(rows):
    """The rows of each (figure, ceiling), in the order of the runs."""
    found = {}
    for row in rows:
        found.setdefault((row["figure"], row["ceiling"]), []).append(row)
    return found


def compare(key, rows_a, rows_b):
    """Returns a line of the table. Raises ValueError if A and B differ in the number of runs or in
    the unit."""
    if len(rows_a) != len(rows_b):
        raise ValueError(f"{key[0]!r} has {len(rows_a)} runs of A and {len(rows_b)} of B")
    if rows_a[0]["unit"] != rows_b[0]["unit"]:
        raise ValueError(f"{key[0]!r} is in {rows_a[0]['unit']} in A and {rows_b[0]['unit']} in B")

    def ratios(field):
        return [b[field] / a[field] for a, b in zip(rows_a, rows_b)]

    def median(rows):
        return results.number(statistics.median(row["figure_value"] for row in rows))
    values = ratios("figure_value")
    return [*key, rows_a[0]["unit"], median(rows_a), median(rows_b),
            *(f"{pick(values):.3f}" for pick in (statistics.median, min, max)),
            f"{statistics.median(ratios('ratio')):.3f}", str(len(values))]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("a", "name_a", "b", "name_b"):
        parser.add_argument(name)
    arguments = parser.parse_args()
    try:
        rows_a = by_figure(results.read(arguments.a)[0])
        rows_b = by_figure(results.read(arguments.b)[0])
        common = [key for key in rows_a if key in rows_b]
        lines = [compare(key, rows_a[key], rows_b[key]) for key in common]
    except (OSError, ValueError, results.MalformedResults) as error:
        sys.exit(f"compare.py: {error}")
    for name, mine, other in ((arguments.name_a, rows_a, rows_b),
                              (arguments.name_b, rows_b, rows_a)):
        for key in mine:
            if key not in other:
                print(f"only in {name}: {key[0]}, against {key[1]}", file=sys.stderr)
    if not lines:
        sys.exit("compare.py: the two revisions have no figure in common")
    print(f"A = {arguments.name_a}, B = {arguments.name_b}; B / A of the figure (median, min, max "
          "over the runs) and of its ratio to the ceiling (median)")
    print(results.aligned(["figure", "against", "unit", "A", "B", "B / A", "min", "max",
                           "of ratio", "runs"], lines))


if __name__ == "__main__":
    main()
