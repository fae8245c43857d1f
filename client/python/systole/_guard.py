"""Runs a server for as long as another process needs it. Usage: _guard.py FOLDER COMMAND..

Ends the server (SIGTERM, then SIGKILL) when standard input ends. Standard input ends when the
process that started this one closes it or dies. Removes FOLDER after the server's end. If this
process is killed, the kernel kills the server at once. Ray, for example, kills processes that its
workers have started. Needs only the standard library. The exit code is the server's.
"""

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys

# How long a server may take to drain.
_SECONDS_TO_DRAIN = 10
# prctl()'s option: the signal that a process gets when its parent ends.
_PR_SET_PDEATHSIG = 1


def main(folder: str, command: list[str]) -> int:
    # Ctrl-C in a terminal reaches this process, too. It is ignored: only the parent decides when
    # the server ends.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    guard = os.getpid()
    prctl = ctypes.CDLL(None).prctl

    # A preexec_fn is safe here: this process has one thread.
    def prepare() -> None:
        # Undoes SIG_IGN, which the server would inherit. The server handles these signals itself.
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:  # The guard died before prctl(), so no signal will come.
            os._exit(1)

    try:
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=prepare
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
