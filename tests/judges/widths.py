"""How many columns a recipe gives: squares of squares of squares are no case to judge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.judges.tables import TEXTS, Table

WIDEST = 500
"""Columns of a case at any step: beyond, scikit-learn itself takes minutes and many GB."""

_WORDS, _PAIRS = 26, 110
"""Terms that documents have: words or letters, and pairs of words with the words."""

_WIDTHS: dict[str, Callable[[int], int]] = (
    {
        "squares": lambda d: d * (d + 3) // 2,
        "splines": lambda d: 5 * d,
        "bins": lambda d: 3 * d,
        "impute median, indicate": lambda d: 2 * d,
        "target": lambda d: 3 * d,
        "one-hot": lambda d: 5 * d,
        "one-hot dense": lambda d: 5 * d,
        "one-hot strict": lambda d: 5 * d,
        "one-hot frequent": lambda d: 5 * d,
        "fill and one-hot": lambda d: 5 * d,
        "dummies": lambda d: 5 * d,
        "leaves": lambda d: 12,
        "random leaves": lambda d: 12,
        "voting": lambda d: 6,
        "forest voting": lambda d: 3,
        "stacking": lambda d: 3,
        "pairs": lambda d: _PAIRS,
    }
    | dict.fromkeys(["terms", "letters", "tfidf", "hashed", "own words"], lambda d: _WORDS)
    | dict.fromkeys(["pca", "discriminant", "projection", "distances"], lambda d: 2)
    | dict.fromkeys(["agglomerate", "random projection"], lambda d: 2)
    | dict.fromkeys(["fourier", "nystroem", "random fourier", "tfidf few"], lambda d: 5)
    | dict.fromkeys(["svd", "best", "select by forest"], lambda d: 1)
)
"""At most, of parts that give another number of columns than they are given."""


def widest(table: Table, steps: tuple[Any, ...]) -> int:
    """The most columns that any step of a pipeline has before or behind it."""
    given = 1 if table.container in TEXTS else len(table.columns)
    return _through(("chain", *steps), given)[1]


def _through(recipe: Any, given: int) -> tuple[int, int]:
    """Columns behind a recipe, and the most within it."""
    if isinstance(recipe, str):
        behind = _WIDTHS[recipe](given) if recipe in _WIDTHS else given
        return behind, max(given, behind)
    if recipe[0] == "chain":
        most = given
        for one in recipe[1:]:
            given, within = _through(one, given)
            most = max(most, within)
        return given, most
    inner = [
        _through(one[0], len(one[1])) if recipe[0] == "columns" else _through(one, given)
        for one in recipe[1:]
    ]
    behind = sum(width for width, _ in inner)
    return behind, max(behind, *(most for _, most in inner))
