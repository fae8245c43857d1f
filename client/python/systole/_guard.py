"""Runs a server for as long as another process needs it. Usage: _guard.py FOLDER COMMAND..

Ends the server (SIGTERM, then SIGKILL) when standard input ends. This means that the process that
started this one has closed it, or has died. Then removes FOLDER. Needs only the standard library.
The exit code is the server's.
"""

import os
import select
import shutil
import signal
import subprocess
import sys

# How long a server has to drain.
_SECONDS_TO_DRAIN = 10


def main(folder: str, command: list[str]) -> int:
    # Ctrl-C in a terminal reaches this process, too, but the parent decides when it ends.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    try:
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_defaults
        )
        while server.poll() is None:
            readable, _, _ = select.select([0], [], [], 0.1)
            if readable and not os.read(0, 1024):
                break
        if server.poll() is None:
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(_SECONDS_TO_DRAIN + 5)
            except subprocess.TimeoutExpired:
                server.kill()
        code = server.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return code if code >= 0 else 128 - code


def _defaults() -> None:
    # The server handles signals itself. A preexec_fn is safe here: this process has one thread.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
