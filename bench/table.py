#!/usr/bin/env python3
"""Makes a table, the same table as JSON, and a picture of each curve from benchmarks' results.

  bench/table.py RESULTS OUT [--versions FILE]

RESULTS is the file $SYSTOLE_BENCH_RESULTS, to which benchmarks append. Prints the table; writes
OUT/table.json and OUT/<curve>.svg. bench/run.sh runs this program.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import subprocess
import sys

import plot
import results

CLAIM_ROUNDS = 5  # The fewest rounds whose median may be published.


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def git(*arguments):
    """What git prints, or None if git fails, such as outside of a checkout."""
    try:
        return subprocess.run(["git", *arguments], cwd=pathlib.Path(__file__).parent, text=True,
                              capture_output=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def machine(versions_path):
    facts = {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "revision": git("rev-parse", "HEAD"),
        "dirty": bool(git("status", "--porcelain")),
    }
    if versions_path:
        facts |= json.loads(pathlib.Path(versions_path).read_text(encoding="utf-8"))
    return facts


def cpu_cell(row):
    """CPU seconds for 1,000 images or one GB. Empty for another unit, or if not measured."""
    seconds = row.get("cpu_seconds_per_unit")
    if seconds is None or row["unit"] not in ("img/s", "GB/s"):
        return ""
    if row["unit"] == "img/s":
        return f"{results.number(1000 * seconds)} / 1,000 img"
    return f"{results.number(seconds)} / GB"


def table(rows):
    header = ["figure", "against", "unit", "value", "ceiling", "ratio", "min", "max", "wanted", "",
              "CPU-s", "peak MB"]
    lines = []
    for row in rows:
        values = [results.number(row[key]) for key in
                  ("figure_value", "ceiling_value", "ratio", "ratio_min", "ratio_max")]
        wanted = f"{row['bound']} {row['wanted']:g}" if "wanted" in row else ""
        peak = results.number(row["peak_bytes"] / 1e6) if "peak_bytes" in row else ""
        lines.append([row["figure"], row["ceiling"], row["unit"], *values, wanted,
                      results.verdict(row), cpu_cell(row), peak])
    return results.aligned(header, lines)


def summary(rows):
    verdicts = [results.verdict(row) for row in rows]
    wanted = [row for row in rows if "wanted" in row]
    lines = [f"{verdicts.count('hit')} of {len(wanted)} wanted ratios reached."]
    for row, found in zip(rows, verdicts):
        names = f"{row['figure']}, against {row['ceiling']}: {results.number(row['ratio'])}"
        if found == "MISS":
            lines.append(f"MISS: {names}, wanted {row['bound']} {row['wanted']:g}")
        elif found == "BAD CEILING":
            lines.append(f"BAD CEILING: {names} is above {row['valid_up_to']:g}, so the ceiling "
                         "was measured badly")
    rounds = min(row["rounds"] for row in rows)
    if rounds < CLAIM_ROUNDS:
        lines.append(f"{rounds} round{'s' * (rounds > 1)}: too few to claim a figure "
                     f"(want {CLAIM_ROUNDS}).")
    return "\n".join(lines)


def refuse_repeated(rows, path):
    seen = set()
    for row in rows:
        key = (row["figure"], row["ceiling"])
        if key in seen:
            raise results.MalformedResults(
                f"{path}: {key[0]!r} against {key[1]!r} appears twice: were two runs appended?")
        seen.add(key)


def write(out, rows, points, not_measured, facts):
    out.mkdir(parents=True, exist_ok=True)
    table_rows = [row | {"verdict": results.verdict(row)} for row in rows]
    (out / "table.json").write_text(
        json.dumps({"machine": facts, "rows": table_rows, "points": points,
                    "not_measured": not_measured}, indent=2) + "\n",
        encoding="utf-8")
    curves = {}
    for point in points:
        curves.setdefault(point["curve"], []).append(point)
    for title, of_curve in curves.items():
        name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") + ".svg"
        (out / name).write_text(plot.svg(of_curve), encoding="utf-8")
        print(f"curve: {out / name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--versions", metavar="FILE",
                        help="a file with a JSON object; its fields are added to the machine facts")
    arguments = parser.parse_args()
    try:
        rows, points, not_measured = results.read(arguments.results)
        refuse_repeated(rows, arguments.results)
    except (OSError, results.MalformedResults) as error:
        sys.exit(f"table.py: {error}")
    facts = machine(arguments.versions)
    if rows:
        print(table(rows))
        print()
        print(summary(rows))
    else:
        print("no rows: no figure was compared with a ceiling")
    for line in not_measured:
        print(f"NOT MEASURED: {line['not_measured']}: {line['reason']}")
    print(", ".join(f"{key}: {value}" for key, value in facts.items()))
    write(arguments.out, rows, points, not_measured, facts)


if __name__ == "__main__":
    main()
