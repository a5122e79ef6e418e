"""The text of a query, and errors that show a place in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mlopt.errors import QuerySyntaxError

WIDEST = 88
"""Characters of a line that an error shows."""
_INDENT = "    "


@dataclass(frozen=True)
class Span:
    """A place in the text, as offsets: from ``start`` up to, and without, ``end``."""

    start: int = 0
    end: int = 0

    def to(self, other: Span) -> Span:
        """From the beginning of this one to the end of the other."""
        return Span(self.start, max(self.end, other.end))


@dataclass(frozen=True)
class Text:
    """The text of a query.

    Parameters
    ----------
    content : str
    """

    content: str

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1."""
        before = self.content[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1

    def error(self, span: Span, message: str) -> QuerySyntaxError:
        """``message`` with line, column, the line itself, and carets under the place."""
        line, column = self.position(span.start)
        source = self.content.split("\n")[line - 1].rstrip("\r")
        start = column - 1
        length = max(1, min(span.end - span.start, len(source) - start))
        shown, start = _window(source, start, length)
        # Tabs stay tabs, so that the carets stand under the place in any terminal.
        blanks = "".join("\t" if char == "\t" else " " for char in shown[:start])
        carets = "^" * min(length, max(1, len(shown) - start))
        picture = f"{_INDENT}{shown}\n{_INDENT}{blanks}{carets}"
        return QuerySyntaxError(
            f"line {line}, column {column}: {message}\n{picture}", line, column
        )


def alternatives(words: Iterable[str]) -> str:
    """``a, b or c``."""
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def _window(source: str, start: int, length: int) -> tuple[str, int]:
    """The part of a long line around the place, and where in it the place begins."""
    if len(source) <= WIDEST:
        return source, start
    room = WIDEST - 6
    first = max(0, min(start - (room - min(length, room)) // 2, len(source) - room))
    last = first + room
    left = "..." if first else ""
    right = "..." if last < len(source) else ""
    return f"{left}{source[first:last]}{right}", start - first + len(left)
