"""The state of feeds in Orbax's checkpoints, beside the model.

ocp.save_checkpointables(path, {"model": params, "feed": systole.orbax.State(feed)})
ocp.load_checkpointables(path, {"model": shapes, "feed": systole.orbax.State(feed)})
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Mapping
from typing import Any, Protocol

try:
    import jax
    from etils import epath
except ImportError as error:
    raise ImportError("systole.orbax needs Orbax: pip install orbax-checkpoint") from error

from systole import _errors

_FILE = "feed.json"


class Stateful(Protocol):
    """A feed, a device_prefetch, a FeedDataset, or a dataset of systole.keras."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None: ...


class Directory(Protocol):
    """Orbax's folder of a checkpoint that is being made."""

    async def await_creation(self) -> epath.Path: ...


class State:
    """Lets Orbax save and load the state of a feed, by Orbax's protocol StatefulCheckpointable.

    The state is the same on all hosts, so process 0 writes it, and a job with another number of
    processes can load it. All processes load it from the same folder.

    stateful: the object from which the training takes its batches. If this is a device_prefetch, do
              not give the feed below it
    """

    def __init__(self, stateful: Stateful) -> None:
        for name in ("state_dict", "load_state_dict"):
            if not hasattr(type(stateful), name):
                raise _errors.WrongType(
                    f"stateful is a {type(stateful).__name__}, which has no {name}(); want a feed, "
                    "or what device_prefetch() gives"
                )
        self._stateful = stateful

    async def save(self, directory: Directory) -> Awaitable[None]:
        """Takes the state now, and returns an awaitable that writes it in the background."""
        state = json.dumps(self._stateful.state_dict())

        async def write() -> None:
            folder = await directory.await_creation()
            if jax.process_index() == 0:
                await asyncio.to_thread((folder / _FILE).write_text, state)

        return write()

    async def load(self, directory: epath.PathLike) -> Awaitable[None]:
        """Lets the feed go on from the state. This does not run in the background, because Orbax
        would then hide the message of an error behind one of its own."""
        path = epath.Path(directory) / _FILE
        try:
            state = json.loads(path.read_text())
        except FileNotFoundError:
            raise _errors.NotFound(
                f"{path}: there is no state of a feed in this checkpoint: save it with "
                "systole.orbax.State(feed)"
            ) from None
        except ValueError:
            raise _errors.WrongType(
                f"{path} is not a state of a feed: it is not JSON; take another checkpoint"
            ) from None
        self._stateful.load_state_dict(state)

        async def nothing() -> None:
            pass

        return nothing()
