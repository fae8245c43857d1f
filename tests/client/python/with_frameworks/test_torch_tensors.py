"""Runs the tests of with_torch with the current PyTorch."""

from with_torch.test_tensors import *  # noqa: F403
