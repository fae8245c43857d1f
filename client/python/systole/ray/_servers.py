"""systole.ray.serve: a server on each chosen node of a cluster."""

from __future__ import annotations

import logging
import os
import time
from types import TracebackType
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from systole import _errors
from systole._arguments import parameters_of, path, unknown_name, whole_number
from systole._durations import Duration, seconds
from systole._server_options import ServedDatasets, globs_by_name, server_arguments
from systole.ray import _nodes
from systole.ray._controller import Plan, SystoleServers

_POLL_SECONDS = 0.1
# If the start takes longer than this, the log names the servers that do not serve yet.
_SECONDS_TO_SAY_SO = 10.0
_SECONDS_TO_CLOSE = 40.0
_SECONDS_TO_ANSWER = 300.0
# Options whose values are paths on the nodes.
_PATHS = ("index_dir", "cache_disk", "block_cache")


class Servers:
    """The servers that serve() has started on nodes of a Ray cluster.

    This object may be passed to tasks and actors of the job, where it stands for the same servers.
    The servers end with close(), at the end of a `with` block, or with the job. If an actor or a
    task called serve(), the servers also end with this actor or task.
    """

    def __init__(self, controller: Any) -> None:
        self._controller = controller
        self._closed = False

    def addresses(self) -> list[str]:
        """The addresses of the servers that serve now. systole.ray.Feed and dataset() follow this
        list.

        Raises Unavailable if the servers have ended.
        """
        addresses: list[str] = self._ask("addresses")
        return addresses

    def state(self) -> list[dict[str, Any]]:
        """One dict for each chosen node: `node` (the node's id), `host`, `cpus`, `state`, `address`
        ("" while no server serves on the node), `restarts` (how many) and `error` (the last one).
        `state` is placing (Ray starts the server's actor), starting (the actor starts the server),
        serving, paused (no server until the next attempt) or given up.
        """
        servers: list[dict[str, Any]] = self._ask("state")
        return servers

    def close(self) -> None:
        """Ends the servers. Feeds from these servers get Unavailable after `retry_for`."""
        if not ray.is_initialized():
            return  # ray.shutdown() has ended the servers.
        try:
            ray.get(self._controller.close.remote(), timeout=_SECONDS_TO_CLOSE)
        except ray.exceptions.RayError:
            pass  # The servers have ended with their controller, or end with it now.
        self._closed = True
        ray.kill(self._controller)

    def __enter__(self) -> Servers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _ask(self, question: str) -> Any:
        """Calls a method of the controller, and returns the answer. Raises Unavailable if the
        controller has ended, or does not answer in time."""
        if self._closed:
            raise _ended()
        _check_connection()
        deadline = time.monotonic() + _SECONDS_TO_ANSWER
        while True:
            try:
                return ray.get(
                    getattr(self._controller, question).remote(), timeout=_SECONDS_TO_ANSWER
                )
            except ray.exceptions.ActorUnavailableError as error:
                if time.monotonic() > deadline:
                    raise _errors.Unavailable(
                        f"the servers' controller cannot be reached: {error}"
                    ) from None
                time.sleep(_POLL_SECONDS)  # Ray starts the controller again.
            except ray.exceptions.GetTimeoutError:
                raise _errors.Unavailable(
                    f"the servers' controller does not answer within {_SECONDS_TO_ANSWER:g} s"
                ) from None
            except ray.exceptions.RayActorError:
                raise _ended() from None


def serve(
    datasets: ServedDatasets,
    *,
    nodes: _nodes.Choice = None,
    cpus: int | None = None,
    port: int = 0,
    insecure: bool = False,
    tls_certificate: str | os.PathLike[str] | None = None,
    tls_key: str | os.PathLike[str] | None = None,
    tls_client_ca: str | os.PathLike[str] | None = None,
    config: str | os.PathLike[str] | None = None,
    start_timeout: Duration = 600,
    max_restarts: int = 10,
    **options: Any,
) -> Servers:
    """Starts a server on each chosen node of the cluster that this process is connected to:

        servers = systole.ray.serve({"photos": "/data/photos-*.tfrecord"}, cpus=8, insecure=True)

    datasets:      {name: glob, folder, or a list of them}. The shards must be in a bucket, or in a
                   folder that every node has
    nodes:         which nodes get a server. None: every node that has CPUs, also one that joins
                   later. "feeder": the nodes with the resource `feeder`, also one that joins later.
                   3: three nodes, preferably without accelerators; if a node dies, another node
                   takes its place. A list: the nodes with these ids
    cpus:          the number of CPUs, as Ray counts them, that each server takes on its node. The
                   server has as many threads. Default: all CPUs of the node; with nodes=None half
                   of them, so that trainers get the other half
    port:          the port on which each server listens; default: any free port
    insecure:      serve without TLS, to everybody who reaches the nodes' addresses
    tls_certificate, tls_key: serve only TLS, with this certificate and its key
    tls_client_ca: clients must show a certificate of one of these CAs
    config:        the file of a ServerConfig, for everything that has no argument here, such as
                   `access` with its token file. Arguments override the config
    start_timeout: how long to wait until all servers serve, in seconds or as "10m"
    max_restarts:  how often in a row a server is started again on a node before the node is given
                   up. The pauses between the starts grow from 1 s to 60 s. After a server has
                   served for a minute, the count begins again
    options:       further options of systole.serve, such as memory_budget=4 << 30

    Files are given as paths on the nodes, and are read there. So no secret passes through Ray.
    Returns when all servers serve.
    If a server cannot start, ends all servers and raises Error with that server's log. After the
    start, a new server replaces each server that ends.
    """
    _check_connection()
    known = [name for name in parameters_of(server_arguments) if name not in ("globs", "threads")]
    for name in options:
        if name == "threads":
            raise _errors.WrongName("serve() of a cluster has no 'threads': give cpus")
        if name not in known:
            own = [one for one in parameters_of(serve) if one != "options"]
            raise unknown_name("serve()", name, own + known)
    for name in _PATHS:
        if options.get(name) is not None:
            options[name] = os.path.abspath(path(name, options[name]))
    arguments = server_arguments(
        {
            name: [_as_nodes_see_it(one) for one in globs]
            for name, globs in globs_by_name(datasets).items()
        },
        **options,
    )
    files = {
        "--tls-certificate": tls_certificate,
        "--tls-key": tls_key,
        "--tls-client-ca": tls_client_ca,
        "--config": config,
    }
    for flag, file in files.items():
        if file is not None:
            name = flag[2:].replace("-", "_")
            arguments += [flag, os.path.abspath(path(name, file))]
    if insecure:
        arguments += ["--insecure"]
    elif tls_certificate is None and config is None:
        raise _errors.InvalidSpec(
            "other machines reach the nodes' addresses: give tls_certificate and tls_key, or "
            "insecure=True if everybody who reaches the nodes may read the datasets"
        )
    if config is None:
        # Ray keeps the server's log, and shows it to the driver.
        arguments += ["--log-level=warn"]
    if cpus is not None:
        cpus = whole_number("cpus", cpus)
        if cpus < 1:
            raise _errors.InvalidSpec(f"cpus is {cpus}, want 1 or more")
    plan = Plan(
        arguments=arguments,
        nodes=_nodes.checked_choice(nodes),
        cpus=cpus,
        port=whole_number("port", port, "8470"),
        start_timeout=seconds("start_timeout", start_timeout),
        max_restarts=whole_number("max_restarts", max_restarts),
    )
    _nodes.check(_nodes.living_nodes(), plan.nodes, plan.cpus)
    here = ray.get_runtime_context().get_node_id()
    controller = (
        ray.remote(SystoleServers)
        .options(
            num_cpus=0,
            max_restarts=-1,
            scheduling_strategy=NodeAffinitySchedulingStrategy(here, soft=False),
        )
        .remote(plan)
    )
    servers = Servers(controller)
    try:
        _wait_for_start(servers)
    except BaseException:
        servers.close()
        raise
    return servers


def _ended() -> _errors.Unavailable:
    return _errors.Unavailable(
        "the servers have ended, by close() or with the process that started them: call "
        "systole.ray.serve() again"
    )


def _check_connection() -> None:
    # Without this check, Ray would start a cluster of its own.
    if not ray.is_initialized():
        raise _errors.FailedPrecondition(
            "this process is not connected to a Ray cluster: call ray.init() first"
        )


def _as_nodes_see_it(glob: str) -> str:
    """Makes a relative path absolute, because processes on nodes have other working folders."""
    return glob if "://" in glob else os.path.abspath(glob)


def _wait_for_start(servers: Servers) -> None:
    """Waits until all servers serve. If a server does not start, raises Error with the server's
    last error."""
    begin = time.monotonic()
    said = False
    while True:
        state = servers.state()
        for one in state:
            if one["error"]:
                raise _errors.Error(f"no server on {_name(one)}: {one['error']}")
        waiting = [one for one in state if one["state"] != "serving"]
        if state and not waiting:
            return
        if waiting and not said and time.monotonic() - begin > _SECONDS_TO_SAY_SO:
            said = True
            logging.getLogger("systole").warning(
                "servers that do not serve yet: %s",
                "; ".join(f"{_name(one)} ({one['cpus']} CPUs): {one['state']}" for one in waiting),
            )
        time.sleep(_POLL_SECONDS)


def _name(server: dict[str, Any]) -> str:
    return f"node {server['node'][:8]} at {server['host']}"
