"""An operator of the library with its implementations, and short ways to write one down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mlopt.costs import Cost
from mlopt.gd.pricing import arithmetic
from mlopt.resources import Resources
from mlopt.stats import Stats

Price = Callable[[Stats, Resources], Cost | str]
"""What an implementation costs on data of this shape, or why it cannot be used."""


@dataclass(frozen=True)
class Way:
    """One implementation.

    Parameters
    ----------
    name : str
        As in ``solver=``; "rows" where there is but one, for each row by itself.
    formula : str
        The cost in n rows, d columns, k outputs or components, for people.
    price : callable
    """

    name: str
    formula: str
    price: Price


@dataclass(frozen=True)
class Entry:
    """One logical operator.

    Parameters
    ----------
    operator : class or function
        With a docstring.
    ways : tuple of Way
    source : str
        The section, table or method that it is from.
    """

    operator: Any
    ways: tuple[Way, ...]
    source: str

    @property
    def name(self) -> str:
        """The operator's own name."""
        return str(self.operator.__name__)


def per_value(
    operator: Any, operations: float, source: str, *, written: float = 1.0
) -> Entry:
    """An operator on numbers, a row at a time.

    Parameters
    ----------
    operator : class or function
    operations : float
        For each value read, in operations of a matrix product that take as long.
    source : str
    written : float, default=1.0
        Values written for each value read.
    """

    def price(stats: Stats, resources: Resources) -> Cost:
        del resources
        count = float(stats.rows * stats.columns)
        moved = stats.bytes * (1.0 + written)
        return arithmetic(stats, operations * count) | Cost(memory=moved)

    formula = f"{operations:g} n d" if operations else "memory"
    return Entry(
        operator, (Way("rows", f"{formula}; {written:g} n d written", price),), source
    )


def per_byte(operator: Any, nanoseconds: float, source: str) -> Entry:
    """An operator on documents in the interpreter: so long for each byte of text."""

    def price(stats: Stats, resources: Resources) -> Cost:
        del resources
        return Cost(fixed=1e-9 * nanoseconds * stats.bytes)

    return Entry(operator, (Way("rows", f"{nanoseconds:g} ns a byte", price),), source)


def several(
    operator: Any,
    options: Callable[[Stats, Resources], Mapping[str, Cost | str]],
    formulas: Mapping[str, str],
    source: str,
) -> Entry:
    """An operator with several implementations, priced by the function that chooses.

    Parameters
    ----------
    operator : class or function
    options : callable
        The costs that the operator itself chooses by.
    formulas : mapping of str to str
        For each name among the options.
    source : str
    """

    def of(name: str) -> Price:
        return lambda stats, resources: options(stats, resources)[name]

    ways = tuple(Way(name, formula, of(name)) for name, formula in formulas.items())
    return Entry(operator, ways, source)
