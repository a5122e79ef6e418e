"""What a query says, as frozen values. Places in the text do not count in comparisons.

``str`` of a script is a query again: ``parse(str(script)) == script``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mlopt.query.text import Span

_NOWHERE = Span()


@dataclass(frozen=True, kw_only=True)
class Node:
    """Something that stands at a place."""

    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Name(Node):
    """A name of the user's, or of a task, an algorithm, a parser."""

    value: str


@dataclass(frozen=True)
class Call(Node):
    """A name with parentheses: ``my_gradient()``."""

    name: str


@dataclass(frozen=True)
class Path(Node):
    """The name of a file."""

    value: str


@dataclass(frozen=True)
class Columns(Node):
    """Columns ``first`` to ``last`` of a file, from 1, both included."""

    first: int
    last: int


@dataclass(frozen=True)
class Source(Node):
    """A file, perhaps some columns of it, perhaps read by a named parser."""

    path: Path
    columns: Columns | None = None
    parser: Name | None = None


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
class Run(Node):
    """``[name =] RUN task ON sources [HAVING ...] [USING ...]``."""

    task: Name | Call
    sources: tuple[Source, ...]
    having: Having = Having()
    using: Using = Using()
    name: Name | None = None


@dataclass(frozen=True)
class Persist(Node):
    """``PERSIST name ON path``."""

    name: Name
    path: Path


@dataclass(frozen=True)
class Predict(Node):
    """``[name =] PREDICT ON sources WITH model``; a model is a file, or a name."""

    sources: tuple[Source, ...]
    model: Path
    name: Name | None = None


Statement = Run | Persist | Predict


@dataclass(frozen=True)
class Script:
    """Statements in their order."""

    statements: tuple[Statement, ...]

    def __str__(self) -> str:
        from mlopt.query.format import format_script

        return format_script(self)
