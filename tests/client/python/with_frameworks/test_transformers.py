"""systole.transformers: Hugging Face's Trainer over feeds, and runs that are resumed."""

from __future__ import annotations

import json

import pytest
import systole
import systole.transformers
import torch
import transformers
from conftest import RECORDS

STEPS = 5  # A step has 20 examples. In the last step 4 of them are padding.


def spec(**options):
    return systole.FeedSpec(
        **{
            "dataset": "flowers",
            "seed": 5,
            "shuffle": systole.Shuffle("global"),
            "global_batch": 20,
            "num_cores": 4,
            "tail": "pad",
            "outputs": {
                "pixel_values": systole.Image(
                    "image", resize=(8, 8), normalize={"scale": 1 / 255}, layout="nchw"
                ),
                "labels": systole.Output(feature="label", dtype="int64"),
                "number": systole.Output(feature="record_id", dtype="int64"),
            },
            **options,
        }
    )


class Net(torch.nn.Module):
    """A linear model that remembers the ids of the batches that it got."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layer = torch.nn.Linear(192, 5)
        self.trained, self.tested = [], []

    def forward(self, pixel_values, labels, number):
        (self.trained if self.training else self.tested).append(number.tolist())
        scores = self.layer(pixel_values.flatten(1))
        return {"loss": torch.nn.functional.cross_entropy(scores, labels), "logits": scores}


class Killed(Exception):
    pass


class Kill(transformers.TrainerCallback):
    """Ends a training after a number of updates."""

    def __init__(self, after):
        self.after = after

    def on_step_begin(self, args, state, control, **_):
        if state.global_step == self.after:
            raise Killed


@pytest.fixture
def open_feed(shards):
    feeds = []

    def open_it(**options):
        feeds.append(systole.LocalFeed(shards, spec(**options), threads=1))
        return feeds[-1]

    yield open_it
    for feed in feeds:
        feed.close()


def real_ids(batches):
    return [batch["number"][batch["valid"] != 0].tolist() for batch in batches]


@pytest.fixture
def wanted(open_feed):
    feed = open_feed()
    return [ids for _ in range(3) for ids in real_ids(feed)]


@pytest.fixture
def new_trainer(tmp_path):
    def new(model, *callbacks, feed=None, folder="run", evaluated=None, **options):
        args = transformers.TrainingArguments(
            **{
                "output_dir": str(tmp_path / folder),
                "num_train_epochs": 3,
                "save_strategy": "steps",
                "save_steps": 1,
                "report_to": [],
                "use_cpu": True,
                "disable_tqdm": True,
                "learning_rate": 0.01,
                "logging_strategy": "no",
                **options,
            }
        )
        return systole.transformers.Trainer(
            model, args, train_dataset=feed, eval_dataset=evaluated, callbacks=list(callbacks)
        )

    return new


def test_train_gets_every_example_once_and_in_order(open_feed, wanted, new_trainer):
    net = Net()
    trainer = new_trainer(
        net, feed=open_feed(), evaluated=open_feed(), eval_strategy="epoch", save_strategy="no"
    )
    trainer.train()
    assert net.trained == wanted
    assert net.tested == wanted[:STEPS] * 3
    assert sum(map(len, wanted[:STEPS])) == RECORDS
    found = trainer.predict(open_feed())
    assert found.predictions.shape == (RECORDS, 5)
    assert net.tested[3 * STEPS :] == wanted[:STEPS]


@pytest.mark.parametrize("killed", [2, STEPS, STEPS + 1, 13])
def test_a_killed_training_goes_on_with_the_next_batch(killed, open_feed, wanted, new_trainer):
    whole = Net()
    new_trainer(whole, feed=open_feed(), save_strategy="no", folder="whole").train()
    net = Net()
    with pytest.raises(Killed):
        new_trainer(net, Kill(killed), feed=open_feed()).train()
    assert net.trained == wanted[:killed]
    again = Net()
    new_trainer(again, feed=open_feed()).train(resume_from_checkpoint=True)
    assert again.trained == wanted[killed:]
    for one, other in zip(whole.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)


def test_gradient_accumulation_resumes_with_the_next_batch(open_feed, new_trainer):
    batch = {"global_batch": 16}  # Six steps.
    options = {"gradient_accumulation_steps": 2, "restore_callback_states_from_checkpoint": True}
    feed = open_feed(**batch)
    wanted = [ids for _ in range(3) for ids in real_ids(feed)]
    net = Net()
    with pytest.raises(Killed):
        new_trainer(net, Kill(4), feed=open_feed(**batch), **options).train()
    again = Net()
    new_trainer(again, feed=open_feed(**batch), **options).train(resume_from_checkpoint=True)
    assert net.trained == wanted[:8] and again.trained == wanted[8:]
    with pytest.raises(systole.InvalidSpec, match="6 steps, which is not a multiple"):
        new_trainer(Net(), feed=open_feed(**batch), gradient_accumulation_steps=4)


def test_a_mapped_feed_is_taken(open_feed, wanted, new_trainer):
    def halve(batch):
        return {name: batch[name] for name in batch} | {"pixel_values": batch["pixel_values"] / 2}

    net = Net()
    with systole.map(open_feed(), halve, workers=2) as feed:
        new_trainer(net, feed=feed, num_train_epochs=1, save_strategy="no").train()
    assert net.trained == wanted[:STEPS]


def test_a_checkpoint_that_does_not_match_the_feed_is_refused(open_feed, new_trainer, tmp_path):
    with pytest.raises(Killed):
        new_trainer(Net(), Kill(2), feed=open_feed()).train()
    with pytest.raises(systole.FailedPrecondition):
        new_trainer(Net(), feed=open_feed(seed=6)).train(resume_from_checkpoint=True)
    path = tmp_path / "run/checkpoint-2/trainer_state.json"
    state = json.loads(path.read_text())
    path.write_text(json.dumps({**state, "global_step": 1}))
    with pytest.raises(systole.FailedPrecondition, match="1 updates, so 1 batches, but its feed"):
        new_trainer(Net(), feed=open_feed()).train(resume_from_checkpoint=True)


def test_several_processes_need_batches_of_one_size(open_feed, new_trainer, monkeypatch):
    trainer = new_trainer(Net(), feed=open_feed())
    monkeypatch.setattr(transformers.TrainingArguments, "world_size", 2)
    with pytest.raises(systole.FailedPrecondition, match="step 4 has padding"):
        list(trainer.get_train_dataloader())


def test_datasets_that_are_not_feeds_still_work(new_trainer):
    rows = [{"pixel_values": torch.ones(3, 8, 8), "labels": 1, "number": i} for i in range(16)]
    net = Net()
    trainer = new_trainer(net, feed=rows, evaluated=rows, num_train_epochs=1, save_strategy="no")
    trainer.train()
    trainer.evaluate()
    trainer.predict(rows)
    assert sorted(sum(net.trained, [])) == list(range(16))
    assert sum(net.tested, []) == list(range(16)) * 2
