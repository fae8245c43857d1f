"""Every block of client/python/README.md works, and what it shows is what comes out."""

from __future__ import annotations

import re

from readme_blocks import README, blocks, place, run


def test_the_readme_is_true(tmp_path, capsys):
    code = blocks()
    assert len(code) >= 9
    with place(tmp_path) as server:
        run(code, server)
    assert (tmp_path / "page.html").exists()
    printed = " ".join(capsys.readouterr().out.split())
    shown = re.search(r"^```\n(<systole.*?)```$", README.read_text(), re.M | re.S)
    assert shown is not None
    # All but the share of the time, which is the machine's.
    first, second = re.split(r"\d+%", " ".join(shown.group(1).split()))
    assert first in printed and second in printed
