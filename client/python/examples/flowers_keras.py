"""Trains a small convolutional network on the flowers with Keras.

    systole make-flowers DATA/images --images 3625 --seed 1
    systole pack DATA/images DATA/flowers --shards 16 --resize-short 80 --validation 0.2
    python flowers_keras.py DATA

The environment variable KERAS_BACKEND may be jax, torch or tensorflow. If you end the program and
start it again with the same DATA, it goes on with the next batch.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import systole
import systole.keras

SPECS = Path(__file__).parents[3] / "deploy" / "specs"
CLASSES = 5
SAVE_FREQ = 20  # Batches.


def new_model() -> keras.Model:
    layers = [keras.Input((64, 64, 3))]
    for filters in (16, 32, 64, 64):
        layers += [
            keras.layers.Conv2D(filters, 3, strides=2, padding="same", use_bias=False),
            keras.layers.BatchNormalization(momentum=0.9),
            keras.layers.ReLU(),
        ]
    layers += [keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(CLASSES)]
    model = keras.Sequential(layers)
    model.compile(
        optimizer=keras.optimizers.Adam(5e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        # Weighted metrics leave out padding. `metrics` would count the padding, too.
        weighted_metrics=["accuracy"],
    )
    return model


def main(data: str, epochs: int = 8) -> dict[str, Any]:
    keras.utils.set_random_seed(0)
    with (
        systole.LocalFeed(f"{data}/flowers-train-*.tfrecord", SPECS / "flowers.textproto") as feed,
        systole.LocalFeed(
            f"{data}/flowers-validation-*.tfrecord", SPECS / "flowers-eval.textproto"
        ) as validation_feed,
    ):
        train = systole.keras.dataset(feed, inputs="image", targets="label")
        validation = systole.keras.dataset(
            validation_feed, inputs="image", targets="label", restart=True
        )
        model = new_model()
        history = model.fit(
            train,
            steps_per_epoch=len(feed),
            epochs=epochs,
            validation_data=validation,
            callbacks=[
                keras.callbacks.LearningRateScheduler(lambda epoch: 5e-3 * (1 - epoch / epochs)),
                systole.keras.BackupAndRestore(train, f"{data}/backup", save_freq=SAVE_FREQ),
            ],
            verbose=2,
        ).history
        print(feed)
    return {"accuracy": history["val_accuracy"][-1], "epochs": len(history["loss"])}


if __name__ == "__main__":
    main(*sys.argv[1:2])
