"""The tests with Debian's PyTorch, with the current one."""

from with_torch.test_tensors import *  # noqa: F403
