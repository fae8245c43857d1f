"""The nodes of a cluster, and which of them get a server."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray
from systole import _errors

# The argument `nodes` of serve(). None: every node with CPUs. A number: this many of the nodes with
# CPUs. A text: the nodes with this resource. A list: the nodes with these ids.
Choice = int | str | Sequence[str] | None


@dataclass(frozen=True)
class Node:
    """A living node."""

    id: str
    host: str
    resources: Mapping[str, float]

    @property
    def cpus(self) -> int:
        return int(self.resources.get("CPU", 0))

    def __str__(self) -> str:
        return f"node {self.id[:8]} at {self.host}"


def living_nodes() -> dict[str, Node]:
    """The nodes of the cluster by their ids."""
    return {
        one["NodeID"]: Node(one["NodeID"], one["NodeManagerAddress"], one["Resources"])
        for one in ray.nodes()  # type: ignore[no-untyped-call]
        if one["Alive"]
    }


def checked_choice(nodes: Any) -> Choice:
    """The argument `nodes`, checked. Raises WrongType or InvalidSpec."""
    if nodes is None:
        return None
    if isinstance(nodes, int) and not isinstance(nodes, bool):
        if nodes < 1:
            raise _errors.InvalidSpec(f"nodes is {nodes}, want 1 or more")
        return nodes
    if isinstance(nodes, str):
        return nodes
    try:
        ids = list(nodes)
    except TypeError:
        ids = [nodes]
    if not all(isinstance(one, str) for one in ids):
        raise _errors.WrongType(
            f"nodes is {nodes!r:.200}; want a number of nodes, the name of a resource that the "
            "nodes have, a list of node ids, or None for all"
        )
    if not ids:
        raise _errors.InvalidSpec("nodes is an empty list: name a node, or leave nodes out for all")
    return ids


def chosen(
    alive: Mapping[str, Node], choice: Choice, keep: Collection[str], avoid: Collection[str]
) -> list[Node]:
    """The nodes that are to have a server, by `choice`, in the order of their ids.

    keep:  nodes that are taken first, if `choice` is a number
    avoid: nodes that are taken only if there are too few others, if `choice` is a number
    """
    if isinstance(choice, (list, tuple)):
        found = [alive[one] for one in choice if one in alive]
    elif isinstance(choice, str):
        found = [node for node in alive.values() if node.resources.get(choice, 0) > 0]
    else:
        found = [node for node in alive.values() if node.cpus > 0]
    if isinstance(choice, int):
        # The nodes that count the same for `avoid` and `keep` are sorted further: nodes with
        # accelerators come last, because trainers need them.
        found.sort(
            key=lambda node: (
                node.id in avoid,
                node.id not in keep,
                node.resources.get("GPU", 0) + node.resources.get("TPU", 0) > 0,
                -node.cpus,
                node.id,
            )
        )
        found = found[:choice]
    return sorted(found, key=lambda node: node.id)


def cpus_of(node: Node, cpus: int | None, choice: Choice) -> int:
    """The CPUs that the node's server gets, 1 or more."""
    if cpus is not None:
        return cpus
    return max(1, node.cpus // 2 if choice is None else node.cpus)


def check(alive: Mapping[str, Node], choice: Choice, cpus: int | None) -> None:
    """Raises NotFound if `choice` names a missing node or resource, or if too few nodes have CPUs.
    Raises InvalidSpec if a node has fewer CPUs than its server would get."""
    there = ", ".join(f"{node.id} ({node.host}, {node.cpus} CPUs)" for node in alive.values())
    if isinstance(choice, (list, tuple)):
        for one in choice:
            if one not in alive:
                raise _errors.NotFound(
                    f"nodes has {one!r:.80}, and no living node has this id: {there}"
                )
    found = chosen(alive, choice, (), ())
    if isinstance(choice, str) and not found:
        raise _errors.NotFound(
            f"no living node has the resource {choice!r}: give it to nodes by `ray start "
            f"--resources '{{\"{choice}\": 1}}'`, or choose among {there}"
        )
    if not found:
        raise _errors.NotFound(f"no living node has a CPU for a server: {there}")
    if isinstance(choice, int) and len(found) < choice:
        raise _errors.NotFound(
            f"nodes is {choice}, but only {len(found)} living nodes have CPUs: {there}"
        )
    for node in found:
        wanted = cpus_of(node, cpus, choice)
        if wanted > node.cpus:
            raise _errors.InvalidSpec(
                f"cpus is {wanted}, but {node} has {node.cpus}: lower cpus, or choose other nodes "
                f"by nodes=..; there are {there}"
            )
