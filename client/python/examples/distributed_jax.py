"""The processes of one job train one network with JAX. Each process feeds its own devices.

    systole make-flowers data/images --images 600
    systole pack data/images data/flowers --shards 4 --validation 0.2
    python distributed_jax.py data 127.0.0.1:8476 2 0 &  # process 0 of 2: JAX listens at this port
    python distributed_jax.py data 127.0.0.1:8476 2 1    # process 1 of 2

On a TPU or a cluster jax.distributed.initialize() takes no arguments. The feed gets the number of
its process from JAX, and takes this process's share of the cores. Every process prints the same
losses, and the same state.
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import systole
import systole.jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

STEPS = 20  # More steps than an epoch has.
SIZE = 32
CLASSES = 5
SPEC = systole.FeedSpec(
    dataset="flowers",
    seed=7,
    shuffle=systole.Shuffle("global"),
    global_batch=64,  # The examples of all processes together.
    num_cores=8,  # A multiple of the number of processes.
    outputs={
        "image": systole.Image(
            "image",
            random_resized_crop=(SIZE, SIZE),
            normalize={"mean": 127.5, "stddev": 63.75},
            dtype=np.float32,
        ),
        "label": systole.Output(feature="label", dtype=np.int32),
    },
)


def loss_of(weights: jax.Array, image: jax.Array, label: jax.Array) -> jax.Array:
    likely = jax.nn.log_softmax(image.reshape(len(image), -1) @ weights)
    return -jnp.take_along_axis(likely, label[:, None], axis=1).mean()


@jax.jit
def train_step(weights: jax.Array, image: jax.Array, label: jax.Array) -> Any:
    # The loss is the mean over the examples of all processes: JAX sums over the processes.
    loss, gradient = jax.value_and_grad(loss_of)(weights, image, label)
    return weights - 1e-4 * gradient, loss


def main(data: str, coordinator: str, processes: int, index: int) -> None:
    jax.distributed.initialize(coordinator, num_processes=processes, process_id=index)
    mesh = Mesh(np.array(jax.devices()), ("data",))  # The devices of all processes.
    sharding = NamedSharding(mesh, PartitionSpec("data"))
    everywhere = NamedSharding(mesh, PartitionSpec())
    weights = jax.device_put(np.zeros((SIZE * SIZE * 3, CLASSES), np.float32), everywhere)
    with systole.LocalFeed(f"{data}/flowers-train-*.tfrecord", SPEC) as feed:
        print(f"process {index} has cores {feed.cores}")
        batches = systole.jax.device_prefetch(feed.steps(), sharding)
        for batch in batches:
            weights, loss = train_step(weights, batch["image"], batch["label"])
            print(f"step {batch.step}  loss {loss:.6f}")
            if batch.step + 1 == STEPS:
                break
        # The state is the same on every process. It is enough if one process saves it.
        print(f"state {batches.state_dict()['token']}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
