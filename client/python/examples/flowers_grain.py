"""A trainer for Grain's datasets, fed by Systole. The network is that of flowers_jax.py.

    systole make-flowers DATA/images --images 1200
    systole pack DATA/images DATA/flowers --shards 4 --validation 0.2
    python flowers_grain.py DATA

train() takes any grain.IterDataset of batches, and saves its iterator in the way that Grain's own
iterators are saved. The program calls train() twice, as if the program had ended in between. The
second call goes on with the next batch.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import grain
import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp
import systole
import systole.grain
from flowers_jax import TRAINING, initial_parameters, train_step

SAVE_STEPS = 20


def train(dataset: grain.IterDataset[Any], folder: Path, steps: int) -> list[list[int]]:
    """Trains until `steps` steps are done. Returns the labels of the batches that it took."""
    parameters = initial_parameters()
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    model = (parameters, {"step": jnp.zeros(()), "mean": zeros, "square": zeros})
    batches = iter(dataset)
    taken = []
    with ocp.CheckpointManager(folder) as manager:
        begin = manager.latest_step() or 0
        if begin > 0:
            restored = manager.restore(
                begin,
                args=ocp.args.Composite(
                    model=ocp.args.StandardRestore(model),
                    data=grain.checkpoint.CheckpointRestore(batches),
                ),
            )
            model = restored["model"]
        for step in range(begin + 1, steps + 1):
            batch = next(batches)
            model = train_step(*model, batch["image"], batch["label"])
            taken.append(batch["label"].tolist())
            if step % SAVE_STEPS == 0:
                manager.save(
                    step,
                    args=ocp.args.Composite(
                        model=ocp.args.StandardSave(model),
                        data=grain.checkpoint.CheckpointSave(batches),
                    ),
                )
    return taken


def main(data: str, steps: int = 60) -> dict[str, Any]:
    datasets = {"train": f"{data}/flowers-train-*.tfrecord"}
    dataset = systole.grain.IterDataset(lambda: systole.LocalFeed(datasets, TRAINING))
    folder = Path(data, "grain").absolute()
    first = train(dataset, folder, steps // 2)
    rest = train(dataset, folder, steps)
    saved = steps // 2 // SAVE_STEPS * SAVE_STEPS
    with systole.LocalFeed(datasets, TRAINING) as feed:
        wanted = [batch["label"].tolist() for batch in itertools.islice(feed.steps(), steps)]
    resumed = first[:saved] + rest == wanted
    print(f"{steps} steps; went on after step {saved}, with the next batch: {resumed}")
    return {"steps": saved + len(rest), "resumed": resumed}


if __name__ == "__main__":
    main(*sys.argv[1:2])
