"""Trainings with Keras whose models remember the records that they saw. Each training runs in a
process of its own, because a process has one backend:

    KERAS_BACKEND=jax python keras_runs.py RUN SHARDS FOLDER    prints what the run found, as JSON
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import keras
import numpy as np
import systole
import systole.keras

BATCH = 20  # 96 records are five steps, the last of them with 4 examples of padding.
SPEC = systole.FeedSpec(
    dataset="flowers",
    seed=5,
    shuffle=systole.Shuffle("global"),
    global_batch=BATCH,
    num_cores=4,
    tail="pad",
    outputs={
        "image": systole.Image("image", resize=(8, 8), normalize={"scale": 1 / 255}),
        "label": systole.Output(feature="label", dtype="int32"),
        "id": systole.Output(feature="record_id", dtype="int32"),
    },
)
INPUTS = {"pixels": "image", "number": "id"}


class Net(keras.Model):
    """A linear model. `trained` and `tested` are the ids of each batch that it got."""

    def __init__(self):
        super().__init__()
        keras.utils.set_random_seed(1)
        self.dense = keras.layers.Dense(5)
        self.trained = []
        self.tested = []
        self.dense.build((None, 192))
        self.built = True
        self.compile(
            "sgd",
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            weighted_metrics=["accuracy"],
            run_eagerly=True,
        )

    def call(self, inputs, training=False):
        try:
            ids = np.asarray(keras.ops.convert_to_numpy(inputs["number"])).tolist()
        except Exception:
            pass  # Keras builds the model from shapes, without values.
        else:
            (self.trained if training else self.tested).append(ids)
        return self.dense(keras.ops.reshape(inputs["pixels"], (-1, 192)))


class Killed(Exception):
    pass


class Kill(keras.callbacks.Callback):
    """Ends a fit() after a number of batches."""

    def __init__(self, after):
        super().__init__()
        self.left = after

    def on_train_batch_end(self, batch, logs=None):
        self.left -= 1
        if self.left == 0:
            raise Killed


def new_feed(shards, spec=SPEC, **options):
    return systole.LocalFeed(shards, spec, threads=2, **options)


def new_data(shards, **options):
    return systole.keras.dataset(new_feed(shards), INPUTS, "label", **options)


def wanted(shards, epochs):
    with new_feed(shards) as feed:
        return [batch["id"].tolist() for _ in range(epochs) for batch in feed]


def fit(shards, folder):
    """Epochs, validation data, weights, predictions."""
    net, data = Net(), new_data(shards)
    validation = new_data(shards, restart=True)
    net.fit(data, epochs=2, validation_data=validation, verbose=0)
    first = wanted(shards, 2)
    found = {
        "trained": net.trained == first,
        "validated": net.tested == first[:5] * 2,
        "step": data.step,
    }
    _, accuracy = net.evaluate(validation, verbose=0)
    rows = net.predict(validation, verbose=0)
    with new_feed(shards) as feed:
        batches = list(feed)
        labels = np.concatenate([batch["label"] for batch in batches])
        valid = np.concatenate([batch["valid"] for batch in batches]) != 0
    right = (rows.argmax(1) == labels)[valid]
    found["rows"] = len(rows)
    found["weighted"] = bool(abs(accuracy - right.mean()) < 1e-6 and len(right) == 96)
    # A second fit() goes on with the next epoch.
    net.trained.clear()
    net.fit(data, epochs=1, verbose=0)
    found["went_on"] = net.trained == wanted(shards, 3)[10:]
    # The dataset says that an epoch has 4 steps. fit() takes 20 batches in a row, across the ends
    # of the feed's own epochs.
    for given in (None, 4):
        net = Net()
        net.fit(new_data(shards, steps_per_epoch=4), epochs=5, steps_per_epoch=given, verbose=0)
        found[f"steps_per_epoch={given}"] = net.trained == wanted(shards, 4)
    return found


def resume(shards, folder):
    """A fit() that is killed after some batches, and goes on in a new model with a new feed."""
    whole = Net()
    whole.fit(new_data(shards), epochs=3, verbose=0)
    found = {}
    for frequency, killed in ((1, 3), (1, 5), (1, 6), (2, 9), (3, 13), ("epoch", 8)):
        backup = Path(folder) / f"backup-{frequency}-{killed}"
        net, data = Net(), new_data(shards)
        save = systole.keras.BackupAndRestore(data, backup, save_freq=frequency)
        try:
            net.fit(data, epochs=3, callbacks=[save, Kill(killed)], verbose=0)
            raise AssertionError("the fit was not killed")
        except Killed:
            pass
        saved = killed // 5 * 5 if frequency == "epoch" else killed // frequency * frequency
        again, data = Net(), new_data(shards)
        save = systole.keras.BackupAndRestore(data, backup, save_freq=frequency)
        again.fit(data, epochs=3, callbacks=[save], verbose=0)
        same = all(
            np.allclose(one, other, atol=1e-6)
            for one, other in zip(whole.get_weights(), again.get_weights(), strict=True)
        )
        found[f"{frequency} {killed}"] = {
            "records": net.trained[:saved] + again.trained == whole.trained,
            "weights": same,
            "removed": not backup.exists(),
        }
    return found


def crash(shards, folder):
    """A crash between the two files of a save, and a folder of another run."""
    backup = Path(folder) / "backup"
    net, data = Net(), new_data(shards)
    save = systole.keras.BackupAndRestore(data, backup, save_freq=1)
    write, calls = net.save_weights, []

    def save_weights(*args, **options):
        calls.append(1)
        if len(calls) == 4:
            raise Killed
        write(*args, **options)

    net.save_weights = save_weights
    try:
        net.fit(data, epochs=1, callbacks=[save], verbose=0)
    except Killed:
        pass
    again, data = Net(), new_data(shards)
    save = systole.keras.BackupAndRestore(data, backup, save_freq=1, delete_checkpoint=False)
    again.fit(data, epochs=1, callbacks=[save], verbose=0)
    found = {"records": net.trained[:3] + again.trained == wanted(shards, 1)}
    saves = json.loads((backup / "feed.json").read_text())
    (backup / "feed.json").write_text(json.dumps([{**one, "updates": 77} for one in saves]))
    try:
        Net().fit(data, epochs=1, callbacks=[save], verbose=0)
    except systole.FailedPrecondition as error:
        found["foreign"] = str(error)
    return found


def stopped(shards, folder):
    """A callback stops the training in an epoch. The next fit() goes on with the next batch."""

    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.model.stop_training = batch == 2

    net, data = Net(), new_data(shards)
    save = systole.keras.BackupAndRestore(data, Path(folder) / "backup")
    net.fit(data, epochs=1, callbacks=[save, Stop()], verbose=0)
    net.fit(data, epochs=1, verbose=0)
    return {"records": net.trained == wanted(shards, 1)}


def names(shards, folder):
    """A mapped feed, bfloat16, tuples, weights of one's own."""

    def weigh(batch):
        weight = (batch["id"] % 2).astype(np.float32)
        return {name: batch[name] for name in ("image", "label", "id")} | {"weight": weight}

    with systole.map(new_feed(shards), weigh, workers=2) as feed:
        data = systole.keras.dataset(feed, ("image", "id"), "label", weights="weight")
        batch = next(data.get_numpy_iterator())
        with new_feed(shards) as plain:
            first = next(plain)
        found = {
            "tuple": type(batch[0]) is tuple and (batch[0][1] == first["id"]).all().item(),
            "weights": batch[2].tolist() == (first["id"] % 2).tolist(),
            "batch_size": data.batch_size,
        }
        feed.skip_to(0)
        mapped = systole.keras.dataset(feed, INPUTS, "label", weights="weight")
        net = Net()
        net.fit(mapped, epochs=2, verbose=0)
        found["mapped"] = net.trained == wanted(shards, 2)
        net.predict(systole.keras.dataset(new_feed(shards), INPUTS), verbose=0)
        found["inputs_only"] = net.tested == wanted(shards, 1)
    image = systole.Image("image", resize=(8, 8), normalize={"scale": 1 / 255}, dtype="bfloat16")
    half = systole.FeedSpec(
        dataset="flowers", global_batch=8, num_cores=1, outputs=SPEC.outputs | {"image": image}
    )
    data = systole.keras.dataset(new_feed(shards, half), INPUTS, "label")
    found["dtype"] = str(next(data.get_numpy_iterator())[0]["pixels"].dtype)
    found["epochs"] = len(Net().fit(data, epochs=2, verbose=0).history["loss"])
    return found


def devices(shards, folder):
    """Data-parallel over eight devices of JAX, in one process."""
    keras.distribution.set_distribution(keras.distribution.DataParallel(auto_shard_dataset=False))
    wide = systole.FeedSpec(
        dataset="flowers", global_batch=16, num_cores=8, outputs=dict(SPEC.outputs)
    )
    net = Net()
    net.run_eagerly = False
    data = systole.keras.dataset(new_feed(shards, wide), INPUTS, "label")
    history = net.fit(data, epochs=2, verbose=0).history
    return {"losses": len(history["loss"]), "devices": len(keras.distribution.list_devices())}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
