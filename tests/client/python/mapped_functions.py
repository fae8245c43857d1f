"""Functions for systole.map that other processes can import."""

from __future__ import annotations

import os
import signal

import numpy as np


def brighter(batch):
    return {"image": batch["image"].astype(np.float32) * 2, "step": steps_of(batch)}


def steps_as_arrays(batch):
    return {"step": steps_of(batch)}


def steps_of(batch):
    return np.full(len(batch["label"]), batch.step)


def fails_at_step_3(batch):
    if batch.step == 3:
        raise LookupError(f"no such label: {batch['label'][0]}")
    return {"label": batch["label"]}


def dies_at_step_2(batch):
    if batch.step == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"label": batch["label"]}


def mean_of_example(example):
    return {"mean": example["image"].mean(dtype=np.float32), "label": example["label"]}


def adds_in_place(batch):
    batch["label"][...] += 1
    return {"label": batch["label"]}


def grows(batch):
    """Gives a larger array for each batch, although all batches must have the same shape."""
    return {"rows": np.zeros((len(batch["label"]), 1 + batch.step))}


class Unpicklable(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} {two}")


def raises_what_cannot_be_sent(batch):
    raise Unpicklable("one", "two")
