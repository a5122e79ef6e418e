"""Which warnings of steps reach the user: those of scikit-learn's own run, as often.

Filters are those of the process, and whoever puts back what was there before may put back
what another thread has set: here each context takes out what it put in, nothing else.
"""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

_here = threading.local()
_ALL, _NONE = "", "(?!)"
"""Regular expressions, for who wants one: scikit-learn hands filters on to its tasks."""


class _Matcher:
    """What a filter asks, until its block is over, wherever others put it back later."""

    over = False


class _Thread(_Matcher):
    """Matches all that one thread warns of."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()

    def match(self, text: str) -> bool:
        del text
        return threading.get_ident() == self.thread and not self.over

    @property
    def pattern(self) -> str:
        """For filters of the thread that asks."""
        return _ALL if self.match("") else _NONE


class _All(_Matcher):
    """Matches what begins so, whoever says it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def match(self, text: str) -> bool:
        return text.startswith(self.text) and not self.over

    @property
    def pattern(self) -> str:
        """For other filters."""
        return _NONE if self.over else re.escape(self.text)


class _Again(_Matcher):
    """Matches what an operator has warned of before, of another block."""

    pattern = _NONE

    def __init__(self) -> None:
        self.heard: set[tuple[str, str]] = set()

    def match(self, text: str) -> bool:
        if self.over or not (token := getattr(_here, "token", "")):
            return False
        before = (token, text) in self.heard
        self.heard.add((token, text))
        return before


@contextmanager
def unheard(category: type[Warning] = Warning) -> Iterator[None]:
    """What this thread warns of within the block nobody hears: it is of samples, or said
    otherwise.
    """
    with _filtered("ignore", _Thread(), category):
        yield


@contextmanager
def unheard_by_all(category: type[Warning] = Warning, text: str = "") -> Iterator[None]:
    """The same of what all threads warn of, if it begins with ``text``.

    What scikit-learn's own threads put back by turns is undone at the end.
    """
    with warnings.catch_warnings(), _filtered("ignore", _All(text), category):
        yield


@contextmanager
def raised(*categories: type[Warning]) -> Iterator[None]:
    """What this thread warns of within the block is an error."""
    with ExitStack() as filters:
        for category in categories:
            filters.enter_context(_filtered("error", _Thread(), category))
        yield


@contextmanager
def heard_once() -> Iterator[None]:
    """What an operator warns of within the block is heard once, however rows are cut."""
    with _filtered("ignore", _Again()):
        yield


@contextmanager
def of_block(token: str) -> Iterator[None]:
    """What is warned of within the block is that of an operator's work on one of many."""
    before, _here.token = getattr(_here, "token", ""), token
    try:
        yield
    finally:
        _here.token = before


@contextmanager
def _filtered(
    action: str, which: _Matcher, category: type[Warning] = Warning
) -> Iterator[None]:
    # A filter asks its pattern, whatever that is: Python's own are regular expressions.
    entry: Any = (action, which, category, None, 0)
    filters: Any = warnings.filters
    filters.insert(0, entry)
    try:
        yield
    finally:
        which.over = True
        now: Any = warnings.filters
        for one in (filters, now):
            with suppress(ValueError):
                one.remove(entry)
