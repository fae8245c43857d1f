"""The tests with Debian's PyTorch, with the current one."""

from with_torch.test_dataset import *  # noqa: F403
