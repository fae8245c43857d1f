"""Functions for the checks that run programs."""

import contextlib
import subprocess
import sys
import time

_LONGEST_WAIT_S = 300


def need(holds, text):
    """Ends the program with `text` unless `holds`."""
    if not holds:
        sys.exit(text)


def wait_for(what, holds):
    """Calls holds() until its answer is true, and returns this answer. OSError counts as false."""
    deadline = time.monotonic() + _LONGEST_WAIT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if answer := holds():
                return answer
        time.sleep(0.05)
    sys.exit(f"waited {_LONGEST_WAIT_S} s in vain for {what}")


def run(line, **more):
    """Runs a command that must succeed, and returns what it writes."""
    done = subprocess.run(line, capture_output=True, text=True, check=False, **more)
    need(done.returncode == 0, f"{line}: exit code {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout
