"""systole.lightning: epochs, validation, and runs that are resumed from a checkpoint."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys

import lightning
import pytest
import systole
import systole.lightning
import torch
from conftest import LONGEST_WAIT, image, spec_text
from lightning.pytorch.callbacks import Callback, ModelCheckpoint

STEPS = 6  # The steps of an epoch.


class Net(lightning.LightningModule):
    """A linear model that remembers the ids of the batches that it got."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layer = torch.nn.Linear(3, 5)
        self.trained, self.validated, self.tested = [], [], []

    def training_step(self, batch, index):
        self.trained.append(batch["id"].tolist())
        scores = self.layer(batch["image"].mean(dim=(1, 2)))
        return torch.nn.functional.cross_entropy(scores, batch["label"].long())

    def validation_step(self, batch, index):
        self.validated.append(batch["id"].tolist())

    def test_step(self, batch, index):
        self.tested.append(batch["id"].tolist())

    def predict_step(self, batch, index):
        return batch["id"]

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1, momentum=0.9)


class Killed(Exception):
    pass


class Kill(Callback):
    """Ends a fit() after a number of batches."""

    def __init__(self, after):
        self.left = after

    def on_train_batch_end(self, *_):
        self.left -= 1
        if self.left == 0:
            raise Killed


@pytest.fixture(autouse=True)
def quiet():
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


@pytest.fixture
def open_feed(shards, write_spec):
    spec = write_spec(spec_text(image("image", "FLOAT32", "NHWC"), "tail: PAD"))
    return lambda **share: systole.LocalFeed(shards, spec, threads=1, **share)


@pytest.fixture
def wanted(open_feed):
    with open_feed() as feed:
        return [batch["id"].tolist() for _ in range(3) for batch in feed]


@pytest.fixture
def trainer(tmp_path):
    def new(*callbacks, **options):
        return lightning.Trainer(
            accelerator="cpu",
            devices=1,
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=tmp_path,
            callbacks=list(callbacks),
            **options,
        )

    return new


def saver(folder, every=1):
    return ModelCheckpoint(folder, filename="{step}", every_n_train_steps=every, save_top_k=-1)


def test_fit_gets_every_batch_once_and_in_order(open_feed, wanted, trainer):
    net = Net()
    data = systole.lightning.DataModule(open_feed, validation=open_feed)
    trainer(max_epochs=3, enable_checkpointing=False).fit(net, datamodule=data)
    assert net.trained == wanted
    # Lightning validates with two batches before the first epoch, and with all batches after each
    # epoch.
    assert net.validated == wanted[:2] + wanted[:STEPS] * 3
    assert data.feed().step == 3 * STEPS
    data.close()


def test_lightning_epochs_may_be_shorter_than_feed_epochs(open_feed, wanted, trainer):
    net, data = Net(), systole.lightning.DataModule(open_feed)
    run = trainer(max_epochs=4, limit_train_batches=4, enable_checkpointing=False)
    run.fit(net, datamodule=data)
    assert net.trained == wanted[:16]


def test_test_and_predict_begin_with_the_first_step(open_feed, wanted, trainer):
    net, data = Net(), systole.lightning.DataModule(test=open_feed, predict=open_feed)
    run = trainer(enable_checkpointing=False)
    for _ in range(2):
        run.test(net, datamodule=data, verbose=False)
        assert [ids.tolist() for ids in run.predict(net, datamodule=data)] == wanted[:STEPS]
    assert net.tested == wanted[:STEPS] * 2


@pytest.mark.parametrize("killed", [2, STEPS, STEPS + 1, 11, 2 * STEPS])
def test_a_killed_fit_goes_on_with_the_next_batch(killed, open_feed, wanted, trainer, tmp_path):
    whole = Net()
    run = trainer(max_epochs=3, enable_checkpointing=False)
    run.fit(whole, datamodule=systole.lightning.DataModule(open_feed))

    net, data = Net(), systole.lightning.DataModule(open_feed, validation=open_feed)
    folder = tmp_path / "checkpoints"
    with pytest.raises(Killed):
        trainer(saver(folder), Kill(killed), max_epochs=3).fit(net, datamodule=data)
    assert net.trained == wanted[:killed]
    # The callback that ends the run is called before the callback that saves. So the last batch has
    # no checkpoint.
    saved = killed - 1
    again, data = Net(), systole.lightning.DataModule(open_feed, validation=open_feed)
    run = trainer(max_epochs=3, enable_checkpointing=False)
    run.fit(again, datamodule=data, ckpt_path=str(folder / f"step={saved}.ckpt"))
    assert again.trained == wanted[saved:]
    for one, other in zip(whole.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_mapped_feed_resumes_from_a_checkpoint(open_feed, wanted, trainer, tmp_path):
    def halve(batch):
        return {name: batch[name] / 2 if name == "image" else batch[name] for name in batch}

    def mapped(**share):
        return systole.map(open_feed(**share), halve, workers=2)

    net, folder = Net(), tmp_path / "checkpoints"
    run = trainer(saver(folder), max_epochs=1)
    run.fit(net, datamodule=systole.lightning.DataModule(mapped))
    assert net.trained == wanted[:STEPS]
    again = Net()
    run = trainer(max_epochs=2, enable_checkpointing=False)
    data = systole.lightning.DataModule(mapped)
    run.fit(again, datamodule=data, ckpt_path=str(folder / "step=4.ckpt"))
    assert again.trained == wanted[4 : 2 * STEPS]
    data.close()


TWO_PROCESSES = """
import json, sys
import lightning, systole, systole.lightning
from test_lightning import Net
shards, spec, folder = sys.argv[1:]
data = systole.lightning.DataModule(
    lambda **share: systole.LocalFeed(shards, spec, threads=1, **share)
)
net = Net()
run = lightning.Trainer(
    accelerator="cpu", devices=2, strategy="ddp", max_epochs=1, logger=False,
    enable_checkpointing=False, enable_progress_bar=False,
)
run.fit(net, datamodule=data)
with open(f"{folder}/rank-{run.global_rank}", "w") as file:
    json.dump(net.trained, file)
"""


def test_processes_share_each_batch(shards, open_feed, wanted, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(TWO_PROCESSES)
    spec = str(tmp_path / "spec.textproto")
    done = subprocess.run(
        [sys.executable, str(script), shards, spec, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=LONGEST_WAIT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    first, second = (json.loads((tmp_path / f"rank-{rank}").read_text()) for rank in range(2))
    assert [one + other for one, other in zip(first, second, strict=True)] == wanted[:STEPS]


def test_a_missing_feed_or_wrong_argument_is_refused_with_an_explanation(open_feed):
    with pytest.raises(systole.InvalidSpec, match="no feed for 'test': give"):
        systole.lightning.DataModule(open_feed).test_dataloader()
    with open_feed() as feed:
        with pytest.raises(TypeError, match="train is a LocalFeed; want a function"):
            systole.lightning.DataModule(feed)
    with pytest.raises(TypeError, match="did you mean 'validation'"):
        systole.lightning.DataModule(validatoin=open_feed)
