"""Trains a small convolutional network on the flowers with JAX, fed by a Systole server.

    systole make-flowers data/images --images 1200
    systole pack data/images data/flowers --shards 4 --validation 0.2
    python flowers_jax.py data

Halfway the program saves a checkpoint, forgets everything else, and goes on from the checkpoint.
The next batch is the same as without this break, bit for bit. Prints the accuracy on the validation
set.
"""

from __future__ import annotations

import pickle
import sys
import tempfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import systole
import systole.jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

CLASSES = 5
EPOCHS = 50
NORMALIZE = systole.Normalize(mean=127.5, stddev=63.75)
LABEL = systole.Output(feature="label", dtype="int32")

TRAINING = systole.FeedSpec(
    dataset="train",
    seed=7,
    shuffle=systole.Shuffle("global"),
    global_batch=64,
    num_cores=8,
    outputs={
        "image": systole.Image(
            "image",
            random_resized_crop={"height": 48, "width": 48, "area_min": 0.6},
            flip=True,
            normalize=NORMALIZE,
        ),
        "label": LABEL,
    },
)
# Every picture comes once. The last step is filled up, and `valid` says which places hold a
# picture.
VALIDATION = systole.FeedSpec(
    dataset="validation",
    epochs=1,
    global_batch=64,
    num_cores=8,
    tail="pad",
    outputs={
        "image": systole.Image("image", center_crop=(48, 48), normalize=NORMALIZE),
        "label": LABEL,
    },
)


def initial_parameters() -> list[dict[str, jax.Array]]:
    key = jax.random.key(0)
    shapes = [(3, 3, 3, 16), (3, 3, 16, 32), (3, 3, 32, 64), (64, CLASSES)]
    parameters = []
    for shape in shapes:
        key, mine = jax.random.split(key)
        scale = np.sqrt(2 / np.prod(shape[:-1]))
        parameters.append({"w": scale * jax.random.normal(mine, shape), "b": jnp.zeros(shape[-1])})
    return parameters


def logits(parameters: list[dict[str, jax.Array]], image: jax.Array) -> jax.Array:
    x = image
    for layer in parameters[:-1]:
        x = jax.lax.conv_general_dilated(
            x, layer["w"], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = jax.nn.relu(x + layer["b"])
    return x.mean(axis=(1, 2)) @ parameters[-1]["w"] + parameters[-1]["b"]


def loss(parameters: Any, image: jax.Array, label: jax.Array) -> jax.Array:
    likely = jax.nn.log_softmax(logits(parameters, image))
    return -jnp.take_along_axis(likely, label[:, None], axis=1).mean()


@jax.jit
def train_step(parameters: Any, adam: Any, image: jax.Array, label: jax.Array) -> Any:
    gradients = jax.grad(loss)(parameters, image, label)
    step = adam["step"] + 1
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, adam["mean"], gradients)
    square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, adam["square"], gradients)
    rate = 0.004 * jnp.sqrt(1 - 0.99**step) / (1 - 0.9**step)
    parameters = jax.tree.map(
        lambda p, m, s: p - rate * m / (jnp.sqrt(s) + 1e-8), parameters, mean, square
    )
    return parameters, {"step": step, "mean": mean, "square": square}


@jax.jit
def count_right(parameters: Any, image: jax.Array, label: jax.Array, valid: jax.Array) -> Any:
    right = logits(parameters, image).argmax(axis=1) == label
    return (right & (valid == 1)).sum(), valid.sum()


def main(folder: str) -> float:
    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), PartitionSpec("data"))
    everywhere = NamedSharding(sharding.mesh, PartitionSpec())
    datasets = {
        "train": f"{folder}/flowers-train-*.tfrecord",
        "validation": f"{folder}/flowers-validation-*.tfrecord",
    }
    checkpoint = Path(tempfile.mkdtemp()) / "checkpoint.pickle"
    with systole.serve(datasets) as server:
        parameters = jax.device_put(initial_parameters(), everywhere)
        zeros = jax.tree.map(jnp.zeros_like, parameters)
        adam = jax.device_put({"step": jnp.zeros(()), "mean": zeros, "square": zeros}, everywhere)
        feed = systole.Feed(server.address, TRAINING)
        batches = systole.jax.device_prefetch(feed, sharding)
        expected = ""
        for epoch in range(EPOCHS):
            for batch in batches:
                parameters, adam = train_step(parameters, adam, batch["image"], batch["label"])
                if epoch == EPOCHS // 2 and batch.step % len(feed) == 2:
                    # The state counts this batch, but not the batches that were only fetched ahead.
                    state = {"feed": batches.state_dict(), "model": (parameters, adam)}
                    checkpoint.write_bytes(pickle.dumps(jax.device_get(state)))
                    break
            if epoch == EPOCHS // 2:
                expected = np.asarray(next(batches)["image"]).tobytes()
                feed.close()
                # From here on only the checkpoint file is used, as after a crash.
                saved = pickle.loads(checkpoint.read_bytes())
                parameters, adam = jax.device_put(saved["model"], everywhere)
                feed = systole.Feed(server.address, TRAINING)
                feed.load_state_dict(saved["feed"])
                assert np.asarray(feed.peek()["image"]).tobytes() == expected
                batches = systole.jax.device_prefetch(feed, sharding)
        assert expected
        right = count = 0
        with systole.Feed(server.address, VALIDATION) as validation:
            for batch in systole.jax.device_prefetch(validation, sharding):
                found = count_right(parameters, batch["image"], batch["label"], batch["valid"])
                right, count = right + int(found[0]), count + int(found[1])
        feed.close()
    print(f"validation accuracy {right / count:.3f} over {count} pictures")
    return right / count


if __name__ == "__main__":
    main(sys.argv[1])
