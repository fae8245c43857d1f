"""The actor that runs one server on its node."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Sequence

from systole._server_process import ServerProcess

# How long watch() watches at a time.
WATCH_SECONDS = 5.0
# A server has failed if it does not answer for this long, this many times in a row.
_SECONDS_TO_ANSWER = 20.0
_SILENCES = 3
_POLL_SECONDS = 0.1
# What an HTTP/2 client sends first: its preface, and an empty frame of settings.
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


class SystoleServer:
    """Runs a `systole-server`, which ends with the actor's process, even if that process is killed.

    Ray runs the calls on several threads, because stop() may come while watch() runs. All calls
    come from one controller, which calls watch() only after start().
    """

    def __init__(self) -> None:
        self._process: ServerProcess | None = None
        self._host = ""
        self._port = 0
        self._silences = 0

    def is_placed(self) -> bool:
        """Answers as soon as Ray has started the actor."""
        return True

    def start(self, host: str, port: int, arguments: Sequence[str], timeout: float) -> str:
        """Starts the server on a port of `host` (0: any free one). Returns its address when it
        serves. Errors are those of ServerProcess.wait_until_it_serves().
        """
        bracketed = f"[{host}]" if ":" in host else host
        self._process = ServerProcess(f"{bracketed}:{port}", arguments)
        self._host = host
        try:
            self._port = self._process.wait_until_it_serves(timeout)
        except BaseException:
            self.stop()
            raise
        return f"{bracketed}:{self._port}"

    def watch(self) -> str:
        """Watches for WATCH_SECONDS. Returns "" if the server serves, otherwise a text that says
        why the server does not serve. Writes what the server has logged into Ray's log of this
        actor.
        """
        process = self._process
        if process is None:
            return "it was stopped"
        end = time.monotonic() + WATCH_SECONDS
        while time.monotonic() < end:
            if process.has_ended():
                return f"the server has ended; its log:\n{process.log()}"
            time.sleep(_POLL_SECONDS)
        if logged := process.new_log():
            print(logged, file=sys.stderr, flush=True)
        if _answers(self._host, self._port, _SECONDS_TO_ANSWER):
            self._silences = 0
            return ""
        self._silences += 1
        if self._silences < _SILENCES:
            return ""
        return (
            f"the server gave no answer to {_SILENCES} requests in a row, though each "
            f"waited {_SECONDS_TO_ANSWER:g} s; its log:\n{process.log()}"
        )

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.close()


def _answers(host: str, port: int, timeout: float) -> bool:
    """Whether the server sends anything, or closes the connection as a server with TLS does."""
    try:
        with socket.create_connection((host, port), timeout) as connection:
            connection.sendall(_HELLO)
            connection.recv(1)
    except TimeoutError:
        return False
    except OSError:
        pass  # A refused connection counts as an answer. watch() notices a server that has ended.
    return True
