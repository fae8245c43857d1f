"""Feeds for Keras 3, on its backends JAX, PyTorch and TensorFlow.

train = systole.keras.dataset(feed, inputs="image", targets="label")
model.fit(train, epochs=10)
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

try:
    import keras
    from keras.src.trainers.data_adapters.data_adapter import DataAdapter
except ImportError as error:
    raise ImportError(
        "systole.keras needs Keras 3: pip install keras, and one of jax, torch and tensorflow"
    ) from error

import numpy as np
from systole import _errors
from systole._any_feed import AnyFeed
from systole._arguments import checks_names, whole_number
from systole._batch import AnyBatch, ArraySpec

# Names of a feed's arrays, in the form in which the model takes the arrays: one array, a tuple, or
# a dict whose keys are the model's own names.
Names = str | Sequence[str] | Mapping[str, str]
Leaf = Callable[[str], Any]


def _nest(names: Names, leaf: Leaf) -> Any:
    """`names`, with leaf(name) in place of each name."""
    if isinstance(names, str):
        return leaf(names)
    if isinstance(names, Mapping):
        return {key: leaf(name) for key, name in names.items()}
    return tuple(leaf(name) for name in names)


class Dataset(DataAdapter):  # type: ignore[misc]
    """What dataset() makes: the first argument of fit(), evaluate() or predict(), or fit()'s
    validation_data.

    An iteration gives the steps up to the next multiple of steps_per_epoch. Keras begins some
    iterations and does not end them, for example to build a model. The batches of such an iteration
    do not count as consumed: the next iteration gives them again. Exception: an iteration that
    takes its last batch has consumed all its batches. So if an epoch has only one step, building a
    model uses up this step.
    """

    def __init__(
        self,
        feed: AnyFeed[Any],
        inputs: Names,
        targets: Names | None,
        weights: str | None,
        steps_per_epoch: int,
        restart: bool,
    ) -> None:
        self._feed = feed
        self._inputs = inputs
        self._targets = targets
        self._weights = weights
        self._steps_per_epoch = steps_per_epoch
        self._restart = restart
        self._step = feed.step  # Where the next iteration begins.
        self._iterations = 0
        self._specs = feed.element_spec
        self._nested(self._check)

    @property
    def feed(self) -> AnyFeed[Any]:
        """The feed below, for its stats() and metrics(). It may be ahead of the training."""
        return self._feed

    @property
    def step(self) -> int:
        """The step with which the next iteration begins."""
        return self._step

    def state_dict(self) -> dict[str, Any]:
        """The feed's state between two epochs. Within an epoch, this method gives the state from
        the beginning of the iteration; use BackupAndRestore there."""
        return self._feed.state_at(self._step)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Moves the feed to a state. The next iteration gives the rest of that state's epoch."""
        self._iterations += 1  # Earlier iterations take no further batch.
        self._feed.load_state_dict(state_dict)
        self._step = self._feed.step

    # ---- What Keras calls ----

    @property
    def num_batches(self) -> int:
        return self._steps_per_epoch

    @property
    def batch_size(self) -> int:
        examples: int = self._specs["valid"].per_core_shape[0]
        first, end = self._feed.cores
        return examples * (end - first)

    @property
    def has_partial_batch(self) -> bool:
        return False

    @property
    def partial_batch_size(self) -> None:
        return None

    def get_numpy_iterator(self) -> Iterator[Any]:
        return self._iterator(np.asarray)

    get_jax_iterator = get_numpy_iterator

    def get_torch_dataloader(self) -> Iterator[Any]:
        import torch

        return self._iterator(torch.from_dlpack)  # type: ignore[attr-defined]

    def get_tf_dataset(self) -> Any:
        import tensorflow as tf

        def signature(name: str) -> Any:
            spec = self._specs[name]
            return tf.TensorSpec(spec.shape, tf.dtypes.as_dtype(spec.dtype))

        nested = self._nested(signature)
        if self._targets is not None:
            nested += (tf.TensorSpec(self._specs["valid"].shape, tf.float32),)
        return tf.data.Dataset.from_generator(self.get_numpy_iterator, output_signature=nested)

    # ---- Batches ----

    def _nested(self, leaf: Leaf) -> tuple[Any, ...]:
        """The inputs and targets, with leaf(name) in place of each name."""
        nested = (_nest(self._inputs, leaf),)
        return nested if self._targets is None else (*nested, _nest(self._targets, leaf))

    def _check(self, name: str) -> ArraySpec:
        spec = self._specs.get(name)
        if spec is None:
            raise _errors.InvalidSpec(
                f"the feed has no array {name!r}: it has {', '.join(self._specs)}"
            )
        if spec.shape is None:
            raise _errors.InvalidSpec(
                f"{name!r} does not have the examples in its first dimension, so it is not one "
                "array for all cores: use another layout, or a feed of one core"
            )
        return spec

    def _iterator(self, convert: Callable[[Any], Any]) -> Iterator[Any]:
        """The tuples of one epoch. Takes no batch before the first tuple is requested."""
        self._iterations += 1
        this = self._iterations
        begin = 0 if self._restart else self._step
        self._feed.stand_at(begin)
        end = (begin // self._steps_per_epoch + 1) * self._steps_per_epoch
        batches = self._feed.steps()
        for step in range(begin, end):
            if this != self._iterations:
                return  # A later iteration has begun.
            batch = next(batches, None)
            if batch is None:  # The feed has ended.
                self._step = step
                return
            if step + 1 == end:
                self._step = end
            nested = self._nested(lambda name, batch=batch: convert(batch[name]))  # type: ignore[misc]
            if self._targets is not None:
                nested += (convert(self._weights_of(batch)),)
            del batch  # Otherwise it would hold the feed's memory while Keras works.
            yield nested

    def _weights_of(self, batch: AnyBatch) -> np.ndarray[Any, Any]:
        weights = np.asarray(batch["valid"]).astype(np.float32)
        if self._weights is not None:
            weights *= np.asarray(batch[self._weights])
        return weights


@checks_names("dataset")
def dataset(
    feed: AnyFeed[Any],
    inputs: Names,
    targets: Names | None = None,
    *,
    weights: str | None = None,
    steps_per_epoch: int | None = None,
    restart: bool = False,
) -> Dataset:
    """Makes an argument for fit(), evaluate() and predict() from a feed. The batches keep their
    order, and are not copied (with TensorFlow, each batch is copied once).

    inputs:          the name of the array that the model takes, a tuple of names, or a dict from
                     the model's names to the feed's names
    targets:         the names of the arrays that the model should give, in the same form; None:
                     Keras gets no targets
    weights:         the name of an output with a weight for each example; default: 1. Padding and
                     masked examples weigh 0 in any case
    steps_per_epoch: the steps of one epoch of Keras; default: as many as an epoch of the feed has.
                     Call fit() without steps_per_epoch, or with this number
    restart:         whether each iteration begins with the feed's first step, as validation_data
                     needs it
    """
    if not isinstance(feed, AnyFeed):
        raise _errors.WrongType(
            f"feed is a {type(feed).__name__}; want a Feed, a LocalFeed or the result of "
            "systole.map()"
        )
    steps = (
        len(feed) if steps_per_epoch is None else whole_number("steps_per_epoch", steps_per_epoch)
    )
    if steps < 1:
        raise _errors.InvalidSpec(f"steps_per_epoch is {steps}, want 1 or more")
    made = Dataset(feed, inputs, targets, weights, steps, restart)
    if weights is not None and len(made._check(weights).per_core_shape) != 1:
        raise _errors.InvalidSpec(
            f"weights={weights!r} has the shape {made._check(weights).shape}; want one weight for "
            "each example"
        )
    return made


class BackupAndRestore(keras.callbacks.BackupAndRestore):  # type: ignore[misc]
    """keras.callbacks.BackupAndRestore with the state of the feed: a run that was interrupted in
    the middle of an epoch goes on with the next batch, and then gets the rest of the epoch's
    batches.

    train:      what fit() trains on, from dataset()
    backup_dir: a folder for this run alone
    save_freq:  when to save: "epoch", or a number of batches
    options:    those of keras.callbacks.BackupAndRestore

    If a run goes on in the middle of an epoch, fit() counts the rest of that epoch from batch 0. At
    the end of this short epoch Keras warns that the input ran out of data.
    """

    def __init__(
        self,
        train: Dataset,
        backup_dir: str | os.PathLike[str],
        save_freq: str | int = "epoch",
        **options: Any,
    ) -> None:
        if not isinstance(train, Dataset):
            raise _errors.WrongType(
                f"train is a {type(train).__name__}; want the result of systole.keras.dataset(), "
                "which fit() trains on"
            )
        super().__init__(os.fspath(backup_dir), save_freq, **options)
        self._train = train
        self._path = os.path.join(os.fspath(backup_dir), "feed.json")
        # The last two saves, newest first. The folder has the weights of one of these saves, or is
        # about to get these weights.
        self._saves: list[dict[str, Any]] = []
        self._epoch = 0  # The epoch of the batch that comes next.
        self._epoch_begin = 0
        self._step = 0

    def on_train_begin(self, logs: Any = None) -> None:
        super().on_train_begin(logs)
        try:
            with open(self._path, encoding="utf-8") as file:
                self._saves = json.load(file)
        except FileNotFoundError:
            self._saves = []
        if self._saves and os.path.exists(self._weights_path):
            self._go_to(self._updates())
        self._step = self._train.step

    def _go_to(self, updates: int) -> None:
        """Sets the feed to the save whose weights have had this number of updates. A save writes
        feed.json and then the file of weights, so after a crash feed.json may be newer than the
        weights. Both files hold the number of updates: it shows which save belongs to the
        weights."""
        for save in self._saves:
            if save["updates"] == updates:
                self._train.load_state_dict(save["state"])
                self.model._initial_epoch = save["epoch"]
                return
        raise _errors.FailedPrecondition(
            f"{self._path} has no state for the weights beside it, which have had {updates} "
            "updates: another run has written into the folder; give each run a folder of its own"
        )

    def _updates(self) -> int:
        optimizer = self.model.optimizer
        optimizer = getattr(optimizer, "inner_optimizer", optimizer)
        # `_iterations` counts each batch. If the optimizer accumulates gradients, its `iterations`
        # counts several batches as one.
        return int(keras.ops.convert_to_numpy(optimizer._iterations))

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_begin(epoch, logs)
        self._epoch = self._current_epoch = epoch
        self._epoch_begin = self._step

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._step = self._epoch_begin + batch + 1
        if self._step % self._train.num_batches == 0 or batch + 1 == self.params["steps"]:
            self._epoch = self._current_epoch + 1
        super().on_train_batch_end(batch, logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._epoch = epoch + 1
        super().on_epoch_end(epoch, logs)

    def on_train_end(self, logs: Any = None) -> None:
        # If a callback has stopped the training within an epoch, the next fit() goes on from there.
        self._train._step = self._step
        super().on_train_end(logs)

    def _save_model(self) -> None:
        save = {
            "updates": self._updates(),
            "epoch": self._epoch,
            "state": self._train.feed.state_at(self._step),
        }
        self._saves = [save, *(one for one in self._saves if one["updates"] != save["updates"])][:2]
        os.makedirs(self.backup_dir, exist_ok=True)
        with open(self._path + ".new", "w", encoding="utf-8") as file:
            json.dump(self._saves, file)
        os.replace(self._path + ".new", self._path)
        super()._save_model()
