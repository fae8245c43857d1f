"""Trains the network of flowers_torch.py with Lightning's Trainer.

    systole make-flowers DATA/images --images 3625 --seed 1
    systole pack DATA/images DATA/flowers --shards 16 --resize-short 80 --validation 0.2
    python flowers_lightning.py DATA

If you end the program and start it again with the same DATA, it goes on with the batch after the
last checkpoint. With devices=2 and strategy="ddp" each process gets its share of each batch.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import lightning
import systole
import systole.lightning
import torch
from flowers_torch import images_of, new_network
from lightning.pytorch.callbacks import ModelCheckpoint

SPECS = Path(__file__).parents[3] / "deploy" / "specs"
SAVE_STEPS = 20


class Net(lightning.LightningModule):
    def __init__(self, epochs: int) -> None:
        super().__init__()
        self.network = new_network()
        self.epochs = epochs

    def training_step(self, batch: dict[str, torch.Tensor], index: int) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(self.network(images_of(batch)), batch["label"])

    def validation_step(self, batch: dict[str, torch.Tensor], index: int) -> None:
        valid = batch["valid"] != 0  # The last batch is padded.
        right = (self.network(images_of(batch)).argmax(1) == batch["label"])[valid]
        self.log("accuracy", right.float().mean(), batch_size=len(right))

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.Adam(self.parameters(), 5e-3)
        return [optimizer], [
            torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 - epoch / self.epochs)
        ]


def main(data: str, epochs: int = 5) -> dict[str, Any]:
    torch.manual_seed(0)
    torch.set_num_threads(1)  # The network is too small for more threads.
    module = systole.lightning.DataModule(
        lambda **share: systole.LocalFeed(
            f"{data}/flowers-train-*.tfrecord", SPECS / "flowers.textproto", **share
        ),
        validation=lambda **share: systole.LocalFeed(
            f"{data}/flowers-validation-*.tfrecord", SPECS / "flowers-eval.textproto", **share
        ),
    )
    folder = f"{data}/lightning"
    trainer = lightning.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        devices=1,
        logger=False,
        callbacks=[ModelCheckpoint(folder, every_n_train_steps=SAVE_STEPS, save_last=True)],
        enable_progress_bar=False,
    )
    saved = Path(folder, "last.ckpt")
    trainer.fit(Net(epochs), module, ckpt_path=str(saved) if saved.exists() else None)
    print(module.feed("train"))
    found = {
        "accuracy": float(trainer.callback_metrics["accuracy"]),
        "step": module.feed("train").step,
    }
    module.close()
    print(f"validation accuracy {found['accuracy']:.3f} after {found['step']} steps")
    return found


if __name__ == "__main__":
    main(*sys.argv[1:2])
