"""Starts the server that the wheel contains, trains a linear model on its feed, and checks that
the model learns.

usage: wheel_training.py SHARDS    (it needs only NumPy)
"""

from __future__ import annotations

import sys

import numpy as np
import systole


def main(shards: str) -> None:
    spec = systole.FeedSpec(
        dataset="flowers",
        global_batch=20,
        num_cores=2,
        outputs={
            "image": systole.Image(
                "image", resize=(8, 8), normalize={"mean": 127.5, "stddev": 63.75}
            ),
            "label": systole.Output(feature="label", dtype="int64"),
        },
    )
    weights = np.zeros((8 * 8 * 3, 5), np.float32)
    losses = []
    with systole.serve({"flowers": shards}, threads=1) as server:
        feed = systole.Feed(server.address, spec)
        for _ in range(40):
            for batch in feed:
                image = np.asarray(batch["image"]).reshape(20, -1)
                logits = image @ weights
                likely = np.exp(logits - logits.max(axis=1, keepdims=True))
                likely /= likely.sum(axis=1, keepdims=True)
                wanted = np.eye(5, dtype=np.float32)[batch["label"]]
                losses.append(-np.log(likely[wanted == 1]).mean())
                weights -= 0.05 * image.T @ (likely - wanted) / 20
            feed.skip_to(0)
        feed.close()
    assert losses[-1] < losses[0] / 2, losses
    print(f"loss {losses[0]:.2f} -> {losses[-1]:.2f} in {len(losses)} steps")


if __name__ == "__main__":
    main(sys.argv[1])
