"""From documents to words and n-grams: transformers that learn nothing.

A document is a str; words are a list of str, n-grams a list of tuples of str. X is a list
of documents, and so is what comes out: one entry a document.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

from sklearn.base import BaseEstimator, TransformerMixin

from mlopt.errors import InputError


class _EachDocument(TransformerMixin, BaseEstimator):
    """A function of one document at a time."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn nothing."""
        del X, y
        return self

    def transform(self, X: Iterable[Any]) -> list[Any]:
        """One result for each document."""
        return [self._one(document) for document in _documents(X)]

    @abstractmethod
    def _one(self, document: Any) -> Any:
        """The result for one document."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags


class Trim(_EachDocument):
    """Without white space at both ends."""

    def _one(self, document: str) -> str:
        return document.strip()


class LowerCase(_EachDocument):
    """In lower case."""

    def _one(self, document: str) -> str:
        return document.lower()


class Tokenizer(_EachDocument):
    r"""Words: what stands between separators.

    Parameters
    ----------
    separators : str, default=r"[\W_]+"
        A regular expression; by default punctuation and white space (KeystoneML).
    """

    def __init__(self, separators: str = r"[\W_]+") -> None:
        self.separators = separators

    def _one(self, document: str) -> list[str]:
        separators = re.compile(self.separators)
        # Between two pieces stands what each group has matched.
        pieces = separators.split(document)[:: separators.groups + 1]
        return [piece for piece in pieces if piece]


class NGrams(_EachDocument):
    """Runs of neighbouring words, as tuples.

    Parameters
    ----------
    orders : sequence of int, default=(1, 2)
        Lengths of the runs: neighbours, such as 1, 2, 3.
    """

    def __init__(self, orders: Sequence[int] = (1, 2)) -> None:
        self.orders = orders

    def _one(self, document: Sequence[str]) -> list[tuple[str, ...]]:
        shortest, longest = check_orders(self.orders)
        return list(runs(document, shortest, longest))


def runs(words: Sequence[str], shortest: int, longest: int) -> Iterable[tuple[str, ...]]:
    """The n-grams of a document: from each word on, the short ones first."""
    for start in range(len(words)):
        for order in range(shortest, longest + 1):
            if start + order <= len(words):
                yield tuple(words[start : start + order])


def check_orders(orders: Sequence[int]) -> tuple[int, int]:
    """The least and the greatest of ``orders``, which must be neighbours."""
    whole = isinstance(orders, Iterable) and all(isinstance(n, Integral) for n in orders)
    found = sorted(orders) if whole else []
    if not found or found[0] < 1 or found != list(range(found[0], found[-1] + 1)):
        raise InputError(
            "`orders` must be neighbouring numbers of at least 1, as in (1, 2), got "
            f"{orders}."
        )
    return found[0], found[-1]


def _documents(X: Iterable[Any]) -> Iterable[Any]:
    if isinstance(X, str):
        raise InputError("X must be a list of documents, got one string: give [document].")
    return X
