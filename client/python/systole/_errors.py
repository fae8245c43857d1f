"""The exceptions of feeds. Every message says what is wrong, where, and what to do."""

from __future__ import annotations

from systole import _systole


class Error(RuntimeError):
    """The base of all exceptions of a feed."""


class InvalidSpec(Error, ValueError):
    """The spec or an option is wrong; names the field."""


class WrongType(InvalidSpec, TypeError):
    """An argument is of a type that does not fit; names it."""


class WrongName(WrongType, AttributeError):
    """There is no argument, field or method of this name; names a similar one."""


class NotFound(Error, LookupError):
    """There is no such dataset, shard or file."""


class DataLoss(Error):
    """A record is damaged; names shard, record and cause. `on_corrupt: MASK` goes on without it."""


class FailedPrecondition(Error):
    """Other data than the feed began with, a state of another feed, or a feed that is closed."""


class Unavailable(Error, ConnectionError):
    """No server answers, or a file cannot be read now. Trying again may help."""


class ResourceExhausted(Error):
    """A limit, such as max_step_bytes, is exceeded; names the limit."""


class PermissionDenied(Error, PermissionError):
    """The file or the server refuses this user."""


class Cancelled(Error):
    """The feed was closed during a wait for it."""


class Internal(Error):
    """A bug, here or in a server."""


_systole.set_errors(
    {
        "": Error,
        "INVALID_ARGUMENT": InvalidSpec,
        "OUT_OF_RANGE": InvalidSpec,
        "NOT_FOUND": NotFound,
        "DATA_LOSS": DataLoss,
        "FAILED_PRECONDITION": FailedPrecondition,
        "UNAVAILABLE": Unavailable,
        "DEADLINE_EXCEEDED": Unavailable,
        "RESOURCE_EXHAUSTED": ResourceExhausted,
        "PERMISSION_DENIED": PermissionDenied,
        "UNAUTHENTICATED": PermissionDenied,
        "CANCELLED": Cancelled,
        "INTERNAL": Internal,
    }
)
