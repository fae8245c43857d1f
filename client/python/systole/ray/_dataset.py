"""systole.ray.dataset: each worker of Ray Train gets a feed of its rank's cores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from systole import _errors
from systole._any_feed import Steps
from systole._base_feed import BaseFeed
from systole._batch import Batch
from systole._datasets import Datasets
from systole._feed import LocalFeed, addresses_of
from systole._message import SpecLike, spec_bytes
from systole._serve import serve
from systole._served_feed import Feed
from systole.ray._following_feed import Feed as FollowingFeed
from systole.ray._servers import Servers


class _Spec:
    """A serialized spec, for functions that take a FeedSpec of protobuf."""

    def __init__(self, serialized: bytes) -> None:
        self._serialized = serialized

    def SerializeToString(self) -> bytes:  # noqa: N802
        return self._serialized


class Dataset:
    """A feed that each worker of Ray Train opens for itself. dataset() makes it.

    A Dataset can be pickled, so train_loop_config can pass it to workers. A loop over the Dataset
    gives one epoch, or the rest of an epoch that has begun. len() is the number of steps of an
    epoch. Each worker gets the part of every batch that belongs to its rank. Together the workers
    get the spec's global_batch.
    """

    def __init__(
        self,
        spec: SpecLike,
        servers: Servers | str | Sequence[str] | None,
        datasets: Datasets | None,
        options: Mapping[str, Any],
    ) -> None:
        if (servers is None) == (datasets is None):
            raise _errors.InvalidSpec(
                "give servers, or datasets=.. for feeds that the workers make themselves: "
                'dataset(spec, datasets="/data/*.tfrecord")'
            )
        if isinstance(servers, serve):
            raise _errors.InvalidSpec(
                "systole.serve() serves this machine alone: give the servers of systole.ray.serve()"
            )
        # Keeps the spec's content, because workers on other nodes may not have the spec's file.
        self._spec = _Spec(spec_bytes(spec))
        self._servers = (
            servers if servers is None or isinstance(servers, Servers) else addresses_of(servers)
        )
        self._datasets = datasets
        self._options = dict(options)
        self._feed: BaseFeed | None = None
        self._state: Mapping[str, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        # The feed itself is not pickled. Each worker opens a feed of its own.
        return {**self.__dict__, "_feed": None}

    @property
    def feed(self) -> BaseFeed:
        """The feed of this process, opened at the first use.

        If dataset() got process_index and process_count, or cores, any process can use the feed.
        Otherwise raises FailedPrecondition if this process is not a worker of Ray Train.
        """
        if self._feed is None:
            feed = self._open()
            try:
                if self._state is not None:
                    feed.load_state_dict(self._state)
            except BaseException:
                feed.close()
                raise
            self._feed = feed
        return self._feed

    def _open(self) -> BaseFeed:
        options = dict(self._options)
        if not {"cores", "process_index", "process_count"} & options.keys():
            options["process_index"], options["process_count"] = _rank_and_world_size()
        if isinstance(self._servers, Servers):
            return FollowingFeed(self._servers, self._spec, **options)
        if self._servers is not None:
            return Feed(self._servers, self._spec, **options)
        assert self._datasets is not None
        return LocalFeed(self._datasets, self._spec, **options)

    def __iter__(self) -> Iterator[Batch]:
        return iter(self.feed)

    def __len__(self) -> int:
        """Steps of an epoch."""
        return len(self.feed)

    def steps(self) -> Steps[Batch]:
        """The rest of the feed, over all epochs. For a training that counts steps."""
        return self.feed.steps()

    def state_dict(self) -> dict[str, Any]:
        """The feed's state after the last batch that was taken. All workers have the same state, so
        one worker saves it. Any number of workers can load it.
        """
        return self.feed.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Goes on from the state, which state_dict() gave."""
        self._state = dict(state_dict)
        if self._feed is not None:
            self._feed.load_state_dict(state_dict)

    def close(self) -> None:
        """Ends the feed of this process. Without this call, the feed ends with the process."""
        if self._feed is not None:
            self._feed.close()


def dataset(
    spec: SpecLike,
    servers: Servers | str | Sequence[str] | None = None,
    *,
    datasets: Datasets | None = None,
    **options: Any,
) -> Dataset:
    """Hands a feed to the workers of Ray Train:

        feed = systole.ray.dataset("spec.textproto", servers)
        trainer = TorchTrainer(train_loop, train_loop_config={"feed": feed}, ..)

    spec:     a path (textproto, or .json), a dict, systole.FeedSpec, or the message. Its num_cores
              is a multiple of the number of workers
    servers:  the result of systole.ray.serve(), or addresses as for systole.Feed
    datasets: shards that each worker reads by itself, as systole.LocalFeed does
    options:  those of systole.Feed or systole.LocalFeed. Paths in options are paths on the
              workers' nodes
    """
    return Dataset(spec, servers, datasets, options)


def _rank_and_world_size() -> tuple[int, int]:
    try:
        import ray.train
    except ImportError as error:
        raise _errors.FailedPrecondition(
            f"systole.ray.dataset needs Ray Train for the rank, and cannot import it: {error}"
        ) from error
    try:
        context = ray.train.get_context()
        # Outside of workers, version 1 of Ray Train's API gives rank 0 and no experiment name.
        # Version 2 raises RuntimeError.
        if context.get_experiment_name() is not None:
            return context.get_world_rank(), context.get_world_size()
    except (RuntimeError, AttributeError, DeprecationWarning):
        pass
    raise _errors.FailedPrecondition(
        "this process is not a worker of Ray Train, so it has no rank: use the dataset in "
        "train_loop_per_worker, or give dataset() process_index=.. and process_count=.."
    )
