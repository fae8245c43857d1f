"""Runs the tests of with_torch with the current PyTorch."""

from with_torch.test_dataset import *  # noqa: F403
