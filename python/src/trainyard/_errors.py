"""What may come of a request."""

from typing import Dict, Type


class TrainyardError(Exception):
    """A request came to nothing. ``code`` is that of the problem (docs/reference/problems.md), ``status`` of HTTP."""

    code, status = "", 0


class NoManager(TrainyardError):
    """No manager answered, and nothing was sent."""


class Unknown(TrainyardError):
    """It is not known whether the jobs were submitted. Ask again by ``submit(..., key=error.key)``."""

    key = ""


class NotFound(TrainyardError):
    """There is no such job, GPU, node or event."""


class Conflict(TrainyardError):
    """It cannot be done as things are: the job is done, several have that name, the key was used for other jobs."""


class Refused(TrainyardError):
    """The manager does not take that: a mistake in the jobs, or no room on the disk."""


class Forbidden(TrainyardError):
    """You may not do that."""


class Busy(TrainyardError):
    """The manager is too busy, stops, or does not lead."""


class NotHere(TrainyardError):
    """This kind of host does not serve that."""


_OF_CODE: Dict[str, Type[TrainyardError]] = {
    "no-job": NotFound, "no-gpu": NotFound, "no-node": NotFound, "no-event": NotFound, "gone": NotFound,
    "done": Conflict, "ambiguous": Conflict, "early": Conflict, "fixed": Conflict, "key-used": Conflict,
    "in-use": Conflict, "no-decision": Conflict, "other-system": Conflict, "refused": Refused, "malformed": Refused,
    "full": Refused, "forbidden": Forbidden, "stopped": Busy, "busy": Busy, "timeout": Busy, "not-leading": Busy,
    "not-here": NotHere,
}


def of(code: str, status: int, detail: str) -> TrainyardError:
    """The error of a problem."""
    error = _OF_CODE.get(code, TrainyardError)(detail)
    error.code, error.status = code, status
    return error
