"""Tests that a dataset finds out whether the DataLoader that reads it makes batches. The tests use
copies of PyTorch's fetchers."""

from __future__ import annotations

import sys

from systole._caller import makes_batches


class FeedLike:
    def __init__(self) -> None:
        self.taken = 0
        self.refused = False

    def __iter__(self):
        self.refused = makes_batches(sys._getframe(1))
        return self

    def __next__(self):
        self.taken += 1
        return self.taken


# The two classes are copies of those in torch.utils.data._utils.fetch.
class _BaseDatasetFetcher:
    def __init__(self, dataset, auto_collation):
        self.dataset = dataset
        self.auto_collation = auto_collation


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    def __init__(self, dataset, auto_collation):
        super().__init__(dataset, auto_collation)
        self.dataset_iter = iter(dataset)


def test_auto_collation_is_detected_before_the_fetcher_takes_a_batch():
    for auto_collation in (False, True):
        dataset = FeedLike()
        _IterableDatasetFetcher(dataset, auto_collation)
        assert dataset.refused == auto_collation
        assert dataset.taken == 0


def test_plain_loops_and_unrelated_classes_do_not_count_as_batching():
    dataset = FeedLike()
    for _ in dataset:
        break
    assert not dataset.refused

    class Trainer:
        auto_collation = True

        def train(self):
            next(iter(dataset))

    Trainer().train()
    assert not dataset.refused
