"""A `systole-server` that ends with this process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence

from systole import _errors
from systole._programs import path_of

_LOG_BYTES = 4000


class ServerProcess:
    """A server that runs until close(), or until this process ends, even if this process is killed.

    listen:    HOST:PORT, or "" for a Unix socket in a private folder
    arguments: further arguments of `systole-server`
    prepare:   a function that is called with the private folder. It may write files there, and
               returns further arguments, which name these files. None: there are no such files

    A server with a port needs the folder only until the port is known. The folder is removed at
    that time, and otherwise when the server has ended.

    Thread-compatible, except that any thread may call has_ended(), log() and new_log().
    """

    def __init__(
        self,
        listen: str,
        arguments: Sequence[str],
        prepare: Callable[[str], Sequence[str]] | None = None,
    ) -> None:
        # Only this user may enter the folder. The guard, the process that runs the server
        # (_guard.py), removes it.
        self._folder = tempfile.mkdtemp(prefix="systole-")
        try:
            prepared = [] if prepare is None else prepare(self._folder)
        except BaseException:
            self._remove_folder()
            raise
        self._port_file = os.path.join(self._folder, "port")
        self._socket = "" if listen else os.path.join(self._folder, "socket")
        command = [
            path_of("systole-server"),
            "--listen",
            listen or f"unix:{self._socket}",
            "--port-file",
            self._port_file,
            *arguments,
            *prepared,
        ]
        guard = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_guard.py")
        self._log = tempfile.TemporaryFile()
        self._log_lock = threading.Lock()
        self._log_taken = 0
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", guard, self._folder, *command],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
        )

    @property
    def socket(self) -> str:
        """The path of the Unix socket; "" if the server listens on a port."""
        return self._socket

    def wait_until_it_serves(self, timeout: float) -> int:
        """Returns the port, or 0 if the server listens on a Unix socket. Raises Error if the server
        ends before it serves, and Unavailable if it does not serve within `timeout` seconds. Both
        errors contain the server's log."""
        deadline = time.monotonic() + timeout
        while not os.path.exists(self._port_file):
            if self.has_ended():
                raise _errors.Error(f"the server did not start:\n{self.log()}")
            if time.monotonic() > deadline:
                raise _errors.Unavailable(
                    f"the server does not serve after {timeout:g} s; its log:\n{self.log()}"
                )
            time.sleep(0.01)
        if self._socket:
            return 0
        with open(self._port_file) as file:
            port = int(file.read())
        # The folder is not needed any more. If it were kept, it would stay behind when both this
        # process and the guard are killed.
        self._remove_folder()
        return port

    def has_ended(self) -> bool:
        return self._guard.poll() is not None

    def log(self) -> str:
        """The last lines that the server wrote. Empty after close()."""
        return self._log_from(0)[0]

    def new_log(self) -> str:
        """The last lines that the server wrote since the last call of new_log()."""
        text, self._log_taken = self._log_from(self._log_taken)
        return text

    def close(self) -> None:
        """Lets the server finish what it is sending (drain), and waits for its end."""
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait()
        self._remove_folder()  # The guard has removed it, unless the guard was killed.
        with self._log_lock:
            self._log.close()

    def _remove_folder(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _log_from(self, begin: int) -> tuple[str, int]:
        """The log from byte `begin` on (only the last _LOG_BYTES of it), and the log's size."""
        with self._log_lock:
            if self._log.closed:
                return "", begin
            size = os.fstat(self._log.fileno()).st_size
            # pread() does not move the file's position, at which the server writes.
            text = os.pread(self._log.fileno(), _LOG_BYTES, max(begin, size - _LOG_BYTES))
        return text.decode(errors="replace").strip(), size
