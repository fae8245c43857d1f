"""Servers on the nodes of a Ray cluster, and feeds for the workers of Ray Train.

servers = systole.ray.serve({"photos": "/data/photos-*.tfrecord"}, cpus=8, insecure=True)
feed = systole.ray.dataset("spec.textproto", servers)
TorchTrainer(train_loop, train_loop_config={"feed": feed}, ..).fit()
"""

from __future__ import annotations

try:
    import ray as _ray  # noqa: F401
except ImportError as error:
    raise ImportError("systole.ray needs Ray: pip install 'ray[default]'") from error

from systole.ray._dataset import Dataset, dataset
from systole.ray._following_feed import Feed
from systole.ray._servers import Servers, serve

__all__ = ["Dataset", "Feed", "Servers", "dataset", "serve"]
