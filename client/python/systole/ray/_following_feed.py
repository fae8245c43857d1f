"""systole.ray.Feed: a feed that follows the changing list of servers on a Ray cluster."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any

import ray
from systole import _errors
from systole._message import SpecLike
from systole._served_feed import Feed as ServedFeed
from systole.ray._servers import Servers

# How often a feed requests the addresses from the controller.
_PERIOD = 2.0
_SECONDS_TO_ANSWER = 30.0
# How long a new feed waits if no server serves, for example while all servers are being replaced.
_SECONDS_TO_BEGIN = 120.0


class Feed(ServedFeed):
    """A systole.Feed from the servers of systole.ray.serve(), for any process of the job.

    It also reads from servers that start later, such as those that replace failed servers.
    `options` are those of systole.Feed.
    """

    def __init__(self, servers: Servers, spec: SpecLike, **options: Any) -> None:
        if not isinstance(servers, Servers):
            raise _errors.WrongType(
                f"servers is a {type(servers).__name__}; want what systole.ray.serve() gives; "
                "systole.Feed takes addresses"
            )
        self._list = _FollowedList(servers)
        self._end_list = weakref.finalize(self, self._list.close)
        try:
            super().__init__(self._list.name, spec, **options)
        except BaseException:
            self._end_list()
            raise

    def close(self) -> None:
        super().close()
        self._end_list()

    def _source(self) -> str:
        return f"{len(self._list.addresses)} servers of a Ray cluster"


class _FollowedList:
    """A file of this process that lists the servers' addresses, for a feed's address "file:path".

    The file is in memory, so nothing remains of it when the process is killed. A new list is
    another file, which replaces the old one under the same descriptor at once.
    """

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._process = os.getpid()
        deadline = time.monotonic() + _SECONDS_TO_BEGIN
        while not (addresses := servers.addresses()):
            if time.monotonic() > deadline:
                raise _errors.Unavailable(
                    f"no server serves after {_SECONDS_TO_BEGIN:g} s: {_errors_of(servers)}"
                )
            time.sleep(_PERIOD)
        self.addresses = addresses
        self._descriptor = _list_in_memory(addresses)
        threading.Thread(target=self._follow, name="systole-list", daemon=True).start()

    @property
    def name(self) -> str:
        return f"file:/proc/{self._process}/fd/{self._descriptor}"

    def close(self) -> None:
        with self._lock:
            if not self._ended.is_set():
                self._ended.set()
                os.close(self._descriptor)

    def _follow(self) -> None:
        away = False
        while not self._ended.wait(_PERIOD) and ray.is_initialized():
            try:
                addresses = self._servers.addresses()
                away = False
            except Exception as error:
                # The feed goes on with the list that it has.
                if not away:
                    logging.getLogger("systole").warning("no news of the servers: %s", error)
                away = True
                continue
            if addresses and addresses != self.addresses:
                self._replace(addresses)

    def _replace(self, addresses: Sequence[str]) -> None:
        descriptor = _list_in_memory(addresses)
        with self._lock:
            if not self._ended.is_set():
                os.dup2(descriptor, self._descriptor, inheritable=False)
                self.addresses = list(addresses)
        os.close(descriptor)


def _list_in_memory(addresses: Sequence[str]) -> int:
    """The descriptor of a file with the addresses, one a line."""
    descriptor = os.memfd_create("systole-servers")
    with open(descriptor, "w", closefd=False) as file:
        file.write("".join(f"{address}\n" for address in addresses))
    return descriptor


def _errors_of(servers: Servers) -> str:
    return "; ".join(one["error"] for one in servers.state() if one["error"]) or "still starting"
