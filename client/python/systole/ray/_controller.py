"""The actor that keeps a server on each chosen node, and knows the servers' addresses."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from systole.ray import _nodes
from systole.ray._server_actor import SystoleServer

# The pause after a server's first failure. Each further failure doubles it.
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
# If a server fails after it has served for this long, the failure counts as the first one again.
_GOOD_SECONDS = 60.0
# An actor that does not answer watch() for this long is killed. An actor that works answers after
# 5 s, or after 25 s if its server does not answer (_server_actor.py).
_LONGEST_SILENCE = 120.0
_SECONDS_TO_STOP = 20.0
# How often the controller lists the nodes. It hears of a server's start or failure without this
# delay.
_TURN_SECONDS = 1.0
# How many calls a SystoleServer can run at a time. stop() must run while start() or watch() runs.
# Calls whose connection was lost may still run, too.
_ACTOR_THREADS = 8


@dataclass(frozen=True)
class Plan:
    """The checked arguments of serve()."""

    arguments: Sequence[str]
    nodes: _nodes.Choice
    cpus: int | None
    port: int
    start_timeout: float
    max_restarts: int


@dataclass
class _Place:
    """A chosen node, and the state of its server."""

    node: _nodes.Node
    # placing: Ray has not started the actor yet; starting: the actor starts the server; serving:
    # the server serves; paused: no server until the next attempt; given up: no further attempt,
    # after too many failures.
    state: str = "paused"
    address: str = ""
    actor: Any = None
    call: Any = None  # The call that the actor has not answered yet.
    since: float = 0.0  # When `state` or `call` began.
    served_since: float = 0.0
    next_attempt: float = 0.0
    restarts: int = 0  # All restarts on this node.
    failures: int = 0  # Failures in a row.
    error: str = ""  # The error of the last failure.


class SystoleServers:
    """Starts a server on each chosen node and watches them, on a thread of its own.

    This actor lives on the node where serve() was called, because the job ends with that node
    anyway. It owns the actors that run the servers. So if this actor's process dies, Ray ends the
    servers. Ray also starts this actor again, and it starts new servers. Trainers get the servers'
    addresses from this actor.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._lock = threading.Lock()
        self._places: dict[str, _Place] = {}
        self._ending = threading.Event()
        self._remote = ray.remote(SystoleServer)
        self._log = logging.getLogger("systole")
        self._thread = threading.Thread(target=self._keep, name="systole-servers", daemon=True)
        self._thread.start()

    # ---- Calls ----

    def addresses(self) -> list[str]:
        """The addresses of the servers that serve now."""
        with self._lock:
            return [one.address for one in self._places.values() if one.state == "serving"]

    def state(self) -> list[dict[str, Any]]:
        """What Servers.state() gives."""
        with self._lock:
            return [
                {
                    "node": one.node.id,
                    "host": one.node.host,
                    "cpus": self._cpus(one.node),
                    "state": one.state,
                    "address": one.address if one.state == "serving" else "",
                    "restarts": one.restarts,
                    "error": one.error,
                }
                for one in self._places.values()
            ]

    def process(self) -> int:
        """The id of this process on its node."""
        return os.getpid()

    def close(self) -> None:
        """Ends all servers."""
        self._ending.set()
        self._thread.join()
        places = list(self._places.values())
        stops = [one.actor.stop.remote() for one in places if one.state in ("starting", "serving")]
        if stops:
            ray.wait(stops, num_returns=len(stops), timeout=_SECONDS_TO_STOP)
        for place in places:
            self._end_actor(place)
        with self._lock:
            self._places.clear()

    # ---- The thread ----

    def _keep(self) -> None:
        while not self._ending.is_set():
            try:
                self._turn()
            except Exception:
                # Ray itself may not answer for a while. Meanwhile the servers go on.
                self._log.exception("the check of the servers failed; it will be repeated")
                self._ending.wait(_TURN_SECONDS)

    def _turn(self) -> None:
        self._follow_nodes(_nodes.living_nodes())
        now = time.monotonic()
        for place in self._places.values():
            if place.call is None and now >= place.next_attempt:
                if place.state == "paused":
                    self._place_actor(place)
                elif place.state == "serving":  # The connection to the actor was lost: watch again.
                    place.call = place.actor.watch.remote()
        calls = {place.call: place for place in self._places.values() if place.call is not None}
        if not calls:
            self._ending.wait(_TURN_SECONDS)
            return
        ray.wait(list(calls), num_returns=1, timeout=_TURN_SECONDS)
        done, _ = ray.wait(list(calls), num_returns=len(calls), timeout=0)
        for call in done:
            self._take_answer(calls[call])
        for place in calls.values():
            self._look_at_clock(place)

    def _cpus(self, node: _nodes.Node) -> int:
        return _nodes.cpus_of(node, self._plan.cpus, self._plan.nodes)

    def _follow_nodes(self, alive: dict[str, _nodes.Node]) -> None:
        given_up = [key for key, one in self._places.items() if one.state == "given up"]
        wanted = {
            node.id: node for node in _nodes.chosen(alive, self._plan.nodes, self._places, given_up)
        }
        gone = [one for key, one in self._places.items() if key not in wanted]
        with self._lock:
            for place in gone:
                del self._places[place.node.id]
            for key, node in wanted.items():
                if key not in self._places:
                    self._places[key] = _Place(node)
        for place in gone:
            if place.node.id not in alive:
                self._log.warning("%s has left, and its server with it", place.node)
            self._end_actor(place)

    def _place_actor(self, place: _Place) -> None:
        cpus = self._cpus(place.node)
        if cpus > place.node.cpus:  # The node joined after serve() had checked the nodes.
            self._give_up(place, f"cpus is {cpus}, but the node has {place.node.cpus}")
            return
        place.actor = self._remote.options(
            num_cpus=cpus,
            max_restarts=0,
            max_concurrency=_ACTOR_THREADS,
            scheduling_strategy=NodeAffinitySchedulingStrategy(place.node.id, soft=False),
        ).remote()
        self._await(place, "placing", place.actor.is_placed.remote())

    def _await(self, place: _Place, state: str, call: Any) -> None:
        with self._lock:
            place.state = state
        place.call = call
        place.since = time.monotonic()

    def _take_answer(self, place: _Place) -> None:
        try:
            answer = ray.get(place.call)
        except ray.exceptions.ActorUnavailableError:
            # The connection is lost. The next call shows whether the actor is lost, too. If the
            # node is lost, Ray reports it after a while.
            if place.state == "serving":
                place.call = None
                place.next_attempt = time.monotonic() + _TURN_SECONDS
            else:
                self._failed(place, "the connection to the server's actor was lost")
            return
        except ray.exceptions.RayTaskError as error:
            cause = error.cause if isinstance(error.cause, Exception) else error
            self._failed(place, str(cause))
            return
        except ray.exceptions.RayError as error:
            self._failed(place, f"the server's actor has ended: {error}")
            return
        if place.state == "placing":
            plan = self._plan
            arguments = [*plan.arguments, f"--threads={self._cpus(place.node)}"]
            call = place.actor.start.remote(
                place.node.host, plan.port, arguments, plan.start_timeout
            )
            self._await(place, "starting", call)
        elif place.state == "starting":
            place.served_since = time.monotonic()
            place.address = answer
            self._await(place, "serving", place.actor.watch.remote())
        elif answer:
            self._failed(place, answer)
        else:
            self._await(place, "serving", place.actor.watch.remote())

    def _look_at_clock(self, place: _Place) -> None:
        waited = time.monotonic() - place.since
        if place.state == "placing" and waited > self._plan.start_timeout:
            text = (
                f"Ray has not started the server's actor within {self._plan.start_timeout:g} s. "
                f"The actor needs {self._cpus(place.node)} of the node's {place.node.cpus} CPUs, "
                "and other actors or tasks use too many of them. End some of these, or lower cpus"
            )
            if place.error != text:
                self._log.warning("%s: %s", place.node, text)
                with self._lock:
                    place.error = text
        elif place.state == "serving" and waited > _LONGEST_SILENCE:
            self._failed(place, f"the server's actor has not answered for {_LONGEST_SILENCE:g} s")

    def _failed(self, place: _Place, error: str) -> None:
        now = time.monotonic()
        if place.state == "serving" and now - place.served_since > _GOOD_SECONDS:
            place.failures = 0
        self._end_actor(place)
        place.failures += 1
        if place.failures > self._plan.max_restarts:
            self._give_up(place, error)
            return
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** (place.failures - 1))
        self._log.warning("no server on %s: %s\nAnother starts in %g s", place.node, error, pause)
        with self._lock:
            place.state = "paused"
            place.error = error
            place.restarts += 1
        place.next_attempt = now + pause

    def _give_up(self, place: _Place, error: str) -> None:
        self._log.error(
            "no server on %s, and none will be started there (failures in a row: %d): %s",
            place.node,
            place.failures,
            error,
        )
        with self._lock:
            place.state = "given up"
            place.error = error

    def _end_actor(self, place: _Place) -> None:
        actor, place.actor, place.call = place.actor, None, None
        if actor is not None:
            ray.kill(actor)
