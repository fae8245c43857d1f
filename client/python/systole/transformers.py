"""Feeds for the Trainer of Hugging Face's transformers.

share = {"process_index": args.process_index, "process_count": args.world_size}
feed = systole.LocalFeed(shards, spec, **share)
trainer = systole.transformers.Trainer(model, args, train_dataset=feed)
trainer.train(resume_from_checkpoint=True)
"""

from __future__ import annotations

import functools
from typing import Any

try:
    import transformers
    from transformers.trainer_callback import ExportableState
except ImportError as error:
    raise ImportError(
        "systole.transformers needs Hugging Face's Trainer: pip install transformers accelerate"
    ) from error

import torch
from systole import _errors
from systole._any_feed import AnyFeed
from systole._batch import AnyBatch
from systole._loader import Loader
from systole.torch import to_tensors

Arguments = dict[str, torch.Tensor]
_CALLBACK = "_FeedState"


def _arguments_of(batch: AnyBatch, process_count: int) -> Arguments:
    """The model's arguments: the batch's tensors, without padding and masked examples."""
    tensors = to_tensors(batch)
    valid = tensors.pop("valid") != 0
    if bool(valid.all()):
        return tensors
    if process_count > 1:
        raise _errors.FailedPrecondition(
            f"step {batch.step} has padding or masked examples, and {process_count} processes "
            "would get batches of different sizes: use tail='drop' and on_corrupt='fail' in the "
            "spec"
        )
    return {name: tensor[valid] for name, tensor in tensors.items()}


class _FeedState(transformers.TrainerCallback, ExportableState):
    """Keeps the feed's state in trainer_state.json, which the Trainer writes as one file.

    Each Trainer makes a subclass of this class, whose attribute `feed` is the Trainer's feed. With
    restore_callback_states_from_checkpoint the Trainer makes a new object of this subclass, which
    therefore has the feed, too.
    """

    feed: AnyFeed[Any]

    def state(self) -> dict[str, Any]:
        return {"args": {}, "attributes": {"saved": self.feed.state_dict()}}

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        wanted = state.global_step * args.gradient_accumulation_steps
        saved = state.stateful_callbacks.get(_CALLBACK)
        if saved is not None:
            # Raises FailedPrecondition if the data differ.
            self.feed.load_state_dict(saved["attributes"]["saved"])
        if saved is not None and state.global_step > 0 and self.feed.step != wanted:
            raise _errors.FailedPrecondition(
                f"the checkpoint has {state.global_step} updates, so {wanted} batches, but its "
                f"feed stands at step {self.feed.step}: use the training arguments and the "
                "global_batch of the run that saved it"
            )
        self.feed.stand_at(wanted)


class Trainer(transformers.Trainer):
    """transformers.Trainer whose train_dataset, eval_dataset and the dataset of predict() may be
    feeds. Other datasets work as in transformers.Trainer.

    The spec's outputs must have the names of the model's arguments, such as pixel_values and
    labels. Padding and masked examples are left out of the batches. The spec decides the size of a
    batch, and per_device_train_batch_size changes nothing but what the Trainer prints. Evaluation
    always begins with the feed's first step.

    Checkpoints hold the state of the training feed. train(resume_from_checkpoint=..) goes on with
    the next batch. It does not read the earlier batches again.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        feed = self.train_dataset
        if not isinstance(feed, AnyFeed):
            return
        if len(feed) % self.args.gradient_accumulation_steps != 0:
            raise _errors.InvalidSpec(
                f"an epoch has {len(feed)} steps, which is not a multiple of "
                f"gradient_accumulation_steps={self.args.gradient_accumulation_steps}: choose a "
                "number that divides it, or another global_batch"
            )
        # Without this, the Trainer would read the batches before the checkpoint and drop them.
        self.args.ignore_data_skip = True
        self.add_callback(type(_CALLBACK, (_FeedState,), {"feed": feed})())

    def get_train_dataloader(self) -> Any:
        if not isinstance(self.train_dataset, AnyFeed):
            return super().get_train_dataloader()
        return self._loader(self.train_dataset, restart=False)

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        own: Any = self.eval_dataset
        chosen = own if eval_dataset is None else eval_dataset
        if isinstance(chosen, str):
            chosen = own[chosen]
        if not isinstance(chosen, AnyFeed):
            return super().get_eval_dataloader(eval_dataset)
        return self._loader(chosen, restart=True)

    def get_test_dataloader(self, test_dataset: Any) -> Any:
        if not isinstance(test_dataset, AnyFeed):
            return super().get_test_dataloader(test_dataset)
        return self._loader(test_dataset, restart=True)

    def _loader(self, feed: AnyFeed[Any], restart: bool) -> Loader[Arguments]:
        arguments_of = functools.partial(_arguments_of, process_count=self.args.world_size)
        return Loader(feed, arguments_of, restart=restart)
