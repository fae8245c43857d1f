"""The exceptions of feeds. Every message says what is wrong, where, and what to do."""

from __future__ import annotations

from systole import _systole


class Error(RuntimeError):
    """The base of all exceptions of a feed."""


class InvalidSpec(Error, ValueError):
    """The spec or an option is wrong. The message names the field."""


class WrongType(InvalidSpec, TypeError):
    """An argument has a type that does not fit. The message names the argument."""


class WrongName(WrongType, AttributeError):
    """There is no argument, field or method of this name. The message names a similar one."""


class NotFound(Error, LookupError):
    """There is no such dataset, shard or file."""


class DataLoss(Error):
    """A record is damaged. The message names shard, record and cause.

    With `on_corrupt: MASK` a feed goes on without the record.
    """


class FailedPrecondition(Error):
    """The data are not those expected, the state is another feed's, or the feed is closed."""


class Unavailable(Error, ConnectionError):
    """No server answers, or a file cannot be read now. Trying again may help."""


class ResourceExhausted(Error):
    """A limit, such as max_step_bytes, is exceeded. The message names the limit."""


class PermissionDenied(Error, PermissionError):
    """The file or the server refuses this user."""


class Cancelled(Error):
    """The feed was closed while a call waited for it."""


class FunctionError(Error):
    """A function of the user's own failed. The message names the step; __cause__ is its error."""


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
