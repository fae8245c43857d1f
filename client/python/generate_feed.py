"""Makes systole/_served_feed.py, which has the class systole.Feed. The class's keywords are the
rows of client/lanes/feed_option_table.cc. For a new row, nothing in this file must be changed.

usage: generate_feed.py FOLDER OUT    (FOLDER has the extension _systole, which has the rows)
"""

import sys
import textwrap

WIDTH = 96
COLUMN = 20  # The column at which texts begin.

TEMPLATE = '''"""systole.Feed. To change this file, edit feed_option_table.cc or generate_feed.py"""

from __future__ import annotations

import os
from collections.abc import Sequence

from systole._arguments import checks_names
from systole._durations import Duration
from systole._feed import ServedFeed
from systole._message import SpecLike
from systole._serve import serve


class Feed(ServedFeed):
    """A feed from servers, which share the work and take over from each other.

    servers:            "host:port", "unix:path", "dns:///name:port" (every address of the name),
                        "file:path" (one address a line, read again when changed), "xds:///name" or
                        the value of systole.serve(); several as a list, or separated by commas
    spec:               a path (textproto, or .json), a dict, systole.FeedSpec, or the message
    cores:              (first, end), the cores of this process; or
    process_index, process_count: this process gets part process_index of process_count equal
                        parts of the cores. If none of the three arguments is given, JAX
                        gives these two numbers, if it runs on several processes. Otherwise
                        RANK and WORLD_SIZE give them, if they are set. Otherwise the feed
                        has all cores. repr() of the feed says which cores it has
@DOCS@
    keep_freed_memory:  have malloc keep freed memory, as the program `systole` does. A feed over
                        TCP is then twice as fast. See systole.keep_freed_memory()

    Durations are seconds (3, 0.5), texts with a unit ("3s", "500ms", "2m") or a timedelta.

    When a feed is opened, a server checks the spec. InvalidSpec or NotFound is raised if the check
    fails, and Unavailable if no server answers. A feed requests its first steps when you take the
    first batch.
    """

    @checks_names("Feed")
    def __init__(
        self,
        servers: str | Sequence[str] | serve,
        spec: SpecLike,
        *,
        cores: tuple[int, int] | None = None,
        process_index: int | None = None,
        process_count: int | None = None,
@KEYWORDS@
        keep_freed_memory: bool = True,
    ) -> None:
        super().__init__(
            servers,
            spec,
            cores,
            process_index,
            process_count,
            keep_freed_memory,
            {
@VALUES@
            },
        )
'''


def docs(row):
    """The row's lines in the class's docstring."""
    return textwrap.fill(
        row["help"][0].lower() + row["help"][1:],
        width=WIDTH,
        initial_indent=f"{row['name']}:".ljust(COLUMN - 1) + " ",
        subsequent_indent=" " * COLUMN,
        break_long_words=False,
        break_on_hyphens=False,
    ).replace("\\", "\\\\")


def default(value):
    """The value as people write it. A large size is written with a shift, as in `256 << 20`."""
    if isinstance(value, bool) or not isinstance(value, int):
        is_whole = isinstance(value, float) and value.is_integer()
        return repr(int(value) if is_whole else value).replace("'", '"')
    for shift in (30, 20):
        if value > 0 and value % (1 << shift) == 0:
            return f"{value >> shift} << {shift}"
    return repr(value)


def main(argv):
    sys.path.insert(0, argv[1])
    import _systole

    rows = _systole.feed_options()
    text = TEMPLATE.replace("@DOCS@", textwrap.indent("\n".join(map(docs, rows)), " " * 4))
    keywords = [f"{row['name']}: {row['type']} = {default(row['default'])}," for row in rows]
    text = text.replace("@KEYWORDS@", textwrap.indent("\n".join(keywords), " " * 8))
    values = [f'"{row["name"]}": {row["name"]},' for row in rows]
    text = text.replace("@VALUES@", textwrap.indent("\n".join(values), " " * 16))
    with open(argv[2], "w", encoding="utf-8") as to:
        to.write(text)


if __name__ == "__main__":
    main(sys.argv)
