"""Feeds for Lightning's Trainer.

data = systole.lightning.DataModule(lambda **share: systole.LocalFeed(shards, spec, **share))
trainer.fit(model, datamodule=data)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

try:
    from lightning.pytorch import LightningDataModule
except ImportError:
    try:
        from pytorch_lightning import LightningDataModule  # type: ignore[assignment]
    except ImportError as error:
        raise ImportError("systole.lightning needs Lightning: pip install lightning") from error

import torch
from systole import _errors
from systole._any_feed import AnyFeed
from systole._arguments import checks_names
from systole._loader import Loader
from systole.torch import to_tensors

# Opens a feed. Takes the keywords process_index and process_count of systole.Feed and LocalFeed.
Open = Callable[..., AnyFeed[Any]]
Batches = Loader[dict[str, torch.Tensor]]


class DataModule(LightningDataModule):
    """The feeds of a training. A batch is a dict of tensors in the feed's memory.

    train, validation, test, predict: functions that open the feeds, such as
        lambda **share: systole.LocalFeed(shards, spec, **share)
        `share` gives each process of Trainer(strategy="ddp") its part of a global batch.

    A training epoch has as many batches as an epoch of the feed, or fewer with limit_train_batches.
    The next training epoch goes on with the feed's next batch. Validation, test and prediction
    always begin with step 0.

    Lightning's checkpoints hold the state of the training feed. trainer.fit(.., ckpt_path=..) goes
    on with the next batch, also in the middle of an epoch.
    """

    @checks_names("DataModule")
    def __init__(
        self,
        train: Open | None = None,
        *,
        validation: Open | None = None,
        test: Open | None = None,
        predict: Open | None = None,
    ) -> None:
        super().__init__()
        self._open = {"train": train, "validation": validation, "test": test, "predict": predict}
        for name, function in self._open.items():
            if function is not None and not callable(function):
                raise _errors.WrongType(
                    f"{name} is a {type(function).__name__}; want a function that opens a feed, "
                    "such as lambda **share: systole.LocalFeed(shards, spec, **share)"
                )
        self._feeds: dict[str, AnyFeed[Any]] = {}
        self._state: Mapping[str, Any] | None = None

    def feed(self, name: str = "train") -> AnyFeed[Any]:
        """The feed `name`, opened at the first use. For its stats() and metrics()."""
        if name not in self._feeds:
            function = self._open.get(name)
            if function is None:
                raise _errors.InvalidSpec(
                    f"there is no feed for {name!r}: give DataModule(.., {name}=..) a function "
                    "that opens it"
                )
            trainer = self.trainer
            share = {"process_index": 0, "process_count": 1}
            if trainer is not None:
                share = {
                    "process_index": trainer.global_rank,
                    "process_count": trainer.world_size,
                }
            self._feeds[name] = function(**share)
            if name == "train" and self._state is not None:
                self._feeds[name].load_state_dict(self._state)
        return self._feeds[name]

    def close(self) -> None:
        """Closes the feeds. Feeds that are still open when the process ends are closed then."""
        for feed in self._feeds.values():
            feed.close()
        self._feeds.clear()

    # ---- What Lightning calls ----

    def train_dataloader(self) -> Batches:
        # Lightning ends the epoch itself, so the Loader needs no end. But the Loader has a length,
        # because Lightning takes a batch ahead from a loader without a length.
        return Loader(self.feed("train"), to_tensors, restart=False, without_end=True)

    def val_dataloader(self) -> Batches | list[Batches]:
        # Lightning takes an empty list for "no validation".
        return [] if self._open["validation"] is None else self._from_the_start("validation")

    def test_dataloader(self) -> Batches:
        return self._from_the_start("test")

    def predict_dataloader(self) -> Batches:
        return self._from_the_start("predict")

    def _from_the_start(self, name: str) -> Batches:
        return Loader(self.feed(name), to_tensors, restart=True)

    def state_dict(self) -> dict[str, Any]:
        if self._open["train"] is None:
            return {}
        return {"train": self.feed("train").state_dict()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        self._state = state_dict.get("train")
        if "train" in self._feeds and self._state is not None:
            self._feeds["train"].load_state_dict(self._state)
