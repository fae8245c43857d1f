"""A trainer's loop that resumes where it was interrupted. Replace the sum of `valid` by your
training step."""

from __future__ import annotations

import json
import os
from pathlib import Path

import systole

STATE = Path(os.environ["STATE"])
SPEC = systole.FeedSpec(
    dataset="flowers",
    seed=7,
    epochs=2,
    shuffle=systole.Shuffle("global"),
    global_batch=64,
    outputs={
        "image": systole.Image("image", random_resized_crop=(64, 64), dtype="bfloat16"),
        "label": systole.Output("label", dtype="int32"),
    },
)

# The servers may still be reading their indexes.
with systole.Feed(os.environ["SERVERS"], SPEC, connect_timeout="5m") as feed:
    if STATE.exists():
        feed.load_state_dict(json.loads(STATE.read_text()))
    print(f"begins at step {feed.step}", flush=True)
    examples = 0
    for batch in feed.steps():
        examples += int(batch["valid"].sum())  # train_step(batch["image"], batch["label"])
        if feed.step % 5 == 0:
            new = STATE.with_suffix(".new")
            new.write_text(json.dumps(feed.state_dict()))
            new.replace(STATE)
    print(f"{examples} examples; {feed}")
