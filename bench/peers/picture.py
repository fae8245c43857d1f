"""Draws the picture of bench/README.md from the table there: picture.py OUT.svg

The picture has no figures of its own, so it cannot differ from the table."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "bench"))

import plot  # noqa: E402

TITLE = "Images per second on two cores, in one process, f32"


def in_process(markdown):
    """(name, images/s) of Systole and of each peer, from the table's rows for one process."""
    def rate(cell):
        name, number = re.fullmatch(r"(.+): ([\d,]+)/s", cell).groups()
        return name, int(number.replace(",", ""))
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in markdown.splitlines() if line.startswith("|")]
    first = next(i for i, row in enumerate(rows) if row[0].startswith("in one process, f32: "))
    found = [("Systole", rate(rows[first][0])[1]), rate(rows[first][1])]
    for row in rows[first + 1:]:
        if row[0]:
            break
        found.append(rate(row[1]))
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    values = in_process((ROOT / "bench" / "README.md").read_text(encoding="utf-8"))
    ours, *peers = values
    peers.sort(key=lambda named: -named[1])
    pathlib.Path(sys.argv[1]).write_text(plot.bars(TITLE, [ours, *peers]), encoding="utf-8")


if __name__ == "__main__":
    main()
