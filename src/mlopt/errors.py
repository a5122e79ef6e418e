"""The errors of mlopt: few, and each says what must hold, what was given, what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches

_PASSWORD = re.compile(r"""([a-z][\w+.-]*://[^/\s:@'"?]*):\S+@""", re.IGNORECASE)
_SECRET = re.compile(
    r"""([?&;]\w*(?:password|passwd|pwd|token|secret|key)=)[^&\s'"#]+""", re.IGNORECASE
)


def masked(text: str) -> str:
    """``text`` without the passwords of the addresses in it, for all that is shown."""
    return _SECRET.sub(r"\1***", _PASSWORD.sub(r"\1:***@", text))


def did_you_mean(
    wanted: str, names: Iterable[str], part: Callable[[str], str] = str
) -> str:
    """A sentence that proposes the name whose ``part`` is closest, or nothing."""
    lower = {part(name).lower(): name for name in reversed([*names])}
    close = get_close_matches(wanted.lower(), lower, n=3)
    if not close:
        return ""
    # "SDG" is as close to "svd" as to "SGD", whose letters it has.
    same = [name for name in close if sorted(name) == sorted(wanted.lower())]
    return f" Did you mean `{lower[[*same, *close][0]]}`?"


class MloptError(Exception):
    """Base of every error that mlopt raises on purpose."""


class InputError(MloptError, ValueError):
    """Data or arguments that cannot work."""


class ArgumentError(InputError, TypeError):
    """An argument that a method does not take: of Python's kind for it, too."""


class MissingColumnError(InputError):
    """A table without columns that a model was trained on.

    Attributes
    ----------
    columns : tuple of str
    """

    def __init__(self, message: str, columns: tuple[str, ...]) -> None:
        super().__init__(message)
        self.columns = columns

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.columns)


class InputWarning(UserWarning):
    """Data that can be used, but hardly as they were meant."""


class QuerySyntaxError(InputError):
    """A query that cannot be understood; its text shows the place.

    Attributes
    ----------
    line, column : int
        Where, both from 1.
    """

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.line = line
        self.column = column

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.line, self.column)


class ConstraintError(InputError):
    """A constraint of a query that cannot be met; its text names the one to revisit."""


class UnsupportedError(InputError):
    """Something that can be said, but that mlopt cannot do; its text names it."""


class ConfigError(MloptError, ValueError):
    """A configuration file or command line that cannot work: exit status 2."""


class StudyError(MloptError, RuntimeError):
    """A stored study that cannot be opened, or that belongs to another search."""


class TaskError(MloptError, RuntimeError):
    """One task failed for good; the others are not affected."""


class TaskKilledError(TaskError):
    """A task whose worker died each time it was tried."""


class ClusterError(MloptError, RuntimeError):
    """The cluster lost what a run needs: all workers, or its scheduler."""


class MemberLostError(ClusterError):
    """A member of a mesh is gone; what it was asked last may or may not be done."""


class StaleEpochError(ClusterError):
    """A message from before the members were given another service."""


class WireError(ClusterError):
    """What came over a line is no message of this mesh, or from somebody else."""


class RequestError(MloptError):
    """A request of a stream was not answered.

    Attributes
    ----------
    request : object
        As it was submitted, where a stream raises this.
    """

    request: object = None


class StageError(RequestError, RuntimeError):
    """A stage of a stream failed a request; others are not affected.

    Attributes
    ----------
    stage : str
    """

    def __init__(self, message: str, stage: str) -> None:
        super().__init__(message)
        self.stage = stage

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.stage)


class DeadlineError(RequestError, TimeoutError):
    """A request was not answered in its time."""


class TooLargeError(RequestError, InputError):
    """A request that cannot fit into the memory that it may take."""


class StreamClosedError(RequestError, RuntimeError):
    """A stream that takes no more requests, or that ended before one was answered."""
