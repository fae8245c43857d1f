#!/usr/bin/env python3
"""Runs clang-tidy over sources of a build folder, JOBS at a time (default: the number of CPUs).

    tests/tidy.py BUILD_FOLDER PATTERN [JOBS]

The script checks a source if the path of its object in BUILD_FOLDER begins with PATTERN, a regular
expression. Generated messages are left out. Sources that are compiled together are checked
together. Ninja must have built BUILD_FOLDER.

A source that passed is checked again only after a change of something that clang-tidy reads: the
source, a file that it includes, its compile command, .clang-tidy or clang-tidy itself. For each
source that passed there is an empty file in ~/.cache/systole/tidy (or under $XDG_CACHE_HOME). Its
name is the SHA-256 of all that clang-tidy reads for the source. The file is removed 30 days after
its last use. To check everything anew, remove the folder.

Exit status: 0 if there is no finding, 1 if there is one or PATTERN fits no source, 2 for wrong
arguments.
"""

import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

# Warnings of g++ that clang-tidy does not know must not count as findings.
OPTIONS = [
    "--quiet",
    "--extra-arg=-Werror",
    "--extra-arg=-Wno-unknown-warning-option",
    "--extra-arg=-Wno-unused-command-line-argument",
]
KEPT_SECONDS = 30 * 24 * 3600


# The same tree may be in another folder at the next run. So the folder's name is removed from all
# that is hashed.
TREE = os.getcwd().encode()


@functools.cache
def digest_of(path: str) -> bytes:
    return hashlib.sha256(pathlib.Path(path).read_bytes().replace(TREE, b".")).digest()


def files_read(build: str, made: str) -> list[str]:
    """The files that the compiler read for an object; empty if Ninja has none on record."""
    printed = subprocess.run(
        ["ninja", "-C", build, "-t", "deps", made], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    if not printed or "VALID" not in printed[0]:
        return []
    return [line.strip() for line in printed[1:] if line.startswith("    ")]


def key_of(build: str, entry: dict, made: str, tools: bytes) -> str | None:
    """The hash of all that clang-tidy reads for this source, or None if its files are unknown."""
    read = files_read(build, made)
    if not read:
        return None
    key = hashlib.sha256(tools + entry["command"].encode().replace(TREE, b"."))
    for path in [entry["file"], *read]:
        key.update(path.encode().replace(TREE, b".") + b"\0")
        key.update(digest_of(os.path.join(build, path)))
    return key.hexdigest()


def check(build: str, source: str) -> tuple[bool, str]:
    done = subprocess.run(
        ["clang-tidy", "-p", build, *OPTIONS, source], capture_output=True, text=True, check=False
    )
    # clang-tidy prints how many warnings other libraries' headers have, but not the warnings. Lines
    # with these numbers would hide the findings.
    said = (done.stdout + done.stderr).splitlines()
    said = [line for line in said if not re.fullmatch(r"\d+ warnings? generated\.", line)]
    return done.returncode == 0, "\n".join(said)


def main() -> int:
    if len(sys.argv) not in (3, 4):
        print(__doc__, file=sys.stderr)
        return 2
    build, pattern = sys.argv[1:3]
    jobs = int(sys.argv[3]) if len(sys.argv) == 4 else os.cpu_count()
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    cache = cache / "systole/tidy"
    cache.mkdir(parents=True, exist_ok=True)

    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    tools = version + digest_of(".clang-tidy") + " ".join(OPTIONS).encode()
    entries = json.loads(pathlib.Path(build, "compile_commands.json").read_text())
    unchanged = 0
    to_check = []
    for entry in entries:
        made = re.search(r" -o (\S+)", entry["command"])[1]
        if not re.match(pattern, made) or entry["file"].endswith(".pb.cc"):
            continue
        key = key_of(build, entry, made, tools)
        passed = cache / key if key else None
        if passed and passed.exists():
            passed.touch()
            unchanged += 1
        else:
            to_check.append((entry["file"], passed))
    if unchanged + len(to_check) == 0:
        print(f"{build} compiles nothing that begins with {pattern}", file=sys.stderr)
        return 1

    failed = False
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        results = pool.map(lambda item: check(build, item[0]), to_check)
        for (source, passed), (good, said) in zip(to_check, results, strict=True):
            if said:
                print(said, flush=True)
            if not good:
                print(f"clang-tidy found something in {source}", flush=True)
                failed = True
            elif passed:
                passed.touch()
    for kept in cache.iterdir():
        if kept.stat().st_mtime < time.time() - KEPT_SECONDS:
            kept.unlink(missing_ok=True)
    print(f"clang-tidy: {len(to_check)} sources checked, {unchanged} unchanged since they passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
