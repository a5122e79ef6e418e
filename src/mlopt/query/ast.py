"""What a query says, as frozen values. Places in the text do not count in comparisons.

``str`` of a script is a query again: ``parse(str(script)) == script``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mlopt.query.text import Span


def _place() -> Any:
    return field(default=Span(), compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Name:
    """A name of the user's, or of a task, an algorithm, a parser."""

    value: str
    span: Span = _place()


@dataclass(frozen=True)
class Call:
    """A name with parentheses: ``my_gradient()``."""

    name: str
    span: Span = _place()


@dataclass(frozen=True)
class Path:
    """The name of a file."""

    value: str
    span: Span = _place()


@dataclass(frozen=True)
class Columns:
    """Columns ``first`` to ``last`` of a file, from 1, both included."""

    first: int
    last: int
    span: Span = _place()


@dataclass(frozen=True)
class Source:
    """A file, perhaps some columns of it, perhaps read by a named parser."""

    path: Path
    columns: Columns | None = None
    parser: Name | None = None
    span: Span = _place()


@dataclass(frozen=True)
class Having:
    """Constraints.

    Parameters
    ----------
    time : float, optional
        Seconds.
    epsilon : float, optional
        Tolerance.
    max_iter : int, optional
        Iterations.
    """

    time: float | None = None
    epsilon: float | None = None
    max_iter: int | None = None


@dataclass(frozen=True)
class Using:
    """How the user wants it done."""

    algorithm: Name | None = None
    convergence: Call | None = None
    step: float | Call | None = None
    sampler: Name | Call | None = None


@dataclass(frozen=True)
class Run:
    """``[name =] RUN task ON sources [HAVING ...] [USING ...]``."""

    task: Name | Call
    sources: tuple[Source, ...]
    having: Having = Having()
    using: Using = Using()
    name: Name | None = None
    span: Span = _place()


@dataclass(frozen=True)
class Persist:
    """``PERSIST name ON path``."""

    name: Name
    path: Path
    span: Span = _place()


@dataclass(frozen=True)
class Predict:
    """``[name =] PREDICT ON sources WITH model``; a model is a file, or a name."""

    sources: tuple[Source, ...]
    model: Path
    name: Name | None = None
    span: Span = _place()


Statement = Run | Persist | Predict


@dataclass(frozen=True)
class Script:
    """Statements in their order."""

    statements: tuple[Statement, ...]

    def __str__(self) -> str:
        from mlopt.query.format import format_script

        return format_script(self)
