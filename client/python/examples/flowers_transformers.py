"""Trains the network of flowers_torch.py with Hugging Face's Trainer.

    systole make-flowers DATA/images --images 3625 --seed 1
    systole pack DATA/images DATA/flowers --shards 16 --resize-short 80 --validation 0.2
    python flowers_transformers.py DATA

If you end the program and start it again with the same DATA, it goes on with the batch after the
last checkpoint.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import systole
import systole.transformers
import torch
import transformers
from flowers_torch import images_of, new_network
from transformers.trainer_utils import get_last_checkpoint

SPECS = Path(__file__).parents[3] / "deploy" / "specs"
SAVE_STEPS = 20


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.network = new_network()

    # The arguments have the names of the spec's outputs.
    def forward(self, image: torch.Tensor, label: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.network(images_of({"image": image}))
        return {"loss": torch.nn.functional.cross_entropy(logits, label), "logits": logits}


def accuracy(predictions: transformers.EvalPrediction) -> dict[str, float]:
    right = predictions.predictions.argmax(1) == predictions.label_ids
    return {"accuracy": float(right.mean()), "images": len(right)}


def main(data: str, epochs: int = 5) -> dict[str, Any]:
    torch.set_num_threads(1)  # The network is too small for more threads.
    folder = f"{data}/transformers"
    args = transformers.TrainingArguments(
        folder,
        num_train_epochs=epochs,
        learning_rate=5e-3,
        save_steps=SAVE_STEPS,
        save_total_limit=2,
        logging_steps=SAVE_STEPS,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        seed=0,
    )
    transformers.set_seed(args.seed)
    share = {"process_index": args.process_index, "process_count": args.world_size}
    with (
        systole.LocalFeed(
            f"{data}/flowers-train-*.tfrecord", SPECS / "flowers.textproto", **share
        ) as feed,
        systole.LocalFeed(
            f"{data}/flowers-validation-*.tfrecord", SPECS / "flowers-eval.textproto", **share
        ) as validation,
    ):
        trainer = systole.transformers.Trainer(
            Net(), args, train_dataset=feed, eval_dataset=validation, compute_metrics=accuracy
        )
        saved = get_last_checkpoint(folder) if Path(folder).exists() else None
        trainer.train(resume_from_checkpoint=saved)
        print(feed)
        found = trainer.evaluate()  # Every image once: padding is left out.
        step = feed.step
    print(f"validation accuracy {found['eval_accuracy']:.3f} of {found['eval_images']} images")
    return {"accuracy": found["eval_accuracy"], "images": found["eval_images"], "step": step}


if __name__ == "__main__":
    main(*sys.argv[1:2])
