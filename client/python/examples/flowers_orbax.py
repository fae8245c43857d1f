"""Trains the network of flowers_jax.py, with checkpoints of Orbax.

    systole make-flowers DATA/images --images 1200
    systole pack DATA/images DATA/flowers --shards 4 --validation 0.2
    python flowers_orbax.py DATA

A checkpoint has the model and the state of the feed. The program calls train() twice, as if the
program had ended in between. The second call goes on with the next batch.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import systole
import systole.jax
import systole.orbax
from flowers_jax import TRAINING, initial_parameters, train_step
from orbax.checkpoint.experimental import v1 as ocp

SAVE_STEPS = 20


def train(feed: systole.LocalFeed, folder: Path, steps: int) -> list[list[int]]:
    """Trains until `steps` steps are done. Returns the labels of the batches that it took."""
    parameters = initial_parameters()
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    model = (parameters, {"step": jnp.zeros(()), "mean": zeros, "square": zeros})
    # The feed's own state also counts the batches that are on their way to the device. So the
    # checkpoint gets the state of `batches`, which does not count these batches.
    batches = systole.jax.device_prefetch(feed.steps(), jax.devices()[0])
    taken = []
    with ocp.training.Checkpointer(folder) as checkpointer:
        begin = 0
        if checkpointer.latest is not None:
            begin = checkpointer.latest.step
            saved = {"model": model, "feed": systole.orbax.State(batches)}
            model = checkpointer.load_checkpointables(begin, saved)["model"]
        for step in range(begin + 1, steps + 1):
            batch = next(batches)
            model = train_step(*model, batch["image"], batch["label"])
            taken.append(batch["label"].tolist())
            if step % SAVE_STEPS == 0:
                state = systole.orbax.State(batches)
                checkpointer.save_checkpointables(step, {"model": model, "feed": state})
    return taken


def main(data: str, steps: int = 60) -> dict[str, Any]:
    datasets = {"train": f"{data}/flowers-train-*.tfrecord"}
    folder = Path(data, "orbax").absolute()
    with systole.LocalFeed(datasets, TRAINING) as feed:
        first = train(feed, folder, steps // 2)
    with systole.LocalFeed(datasets, TRAINING) as feed:
        rest = train(feed, folder, steps)
    saved = steps // 2 // SAVE_STEPS * SAVE_STEPS
    with systole.LocalFeed(datasets, TRAINING) as feed:
        wanted = [batch["label"].tolist() for batch in itertools.islice(feed.steps(), steps)]
    resumed = first[:saved] + rest == wanted
    print(f"{steps} steps; went on after step {saved}, with the next batch: {resumed}")
    return {"steps": saved + len(rest), "resumed": resumed}


if __name__ == "__main__":
    main(*sys.argv[1:2])
