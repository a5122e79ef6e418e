"""The price list: what measurements say of machines and methods, in `prices.csv`.

Nothing else holds a time, a rate, or operations that stand for a time. A price is of the
machine on which it was measured, at speed 1 (`mlopt.resources.Resources`); what it is on
another one, calibration and experience say. ``benchmarks/prices.py --fit`` measures those
of its own again and prints their new lines.
"""

from __future__ import annotations

import csv
import hashlib
from dataclasses import dataclass
from importlib.resources import files

UNITS = frozenset({
    "Hessians", "bytes", "columns", "directions", "iterations", "loss", "members",
    "models", "multiplications", "operations", "pairs", "passes", "penalties", "penalty",
    "products", "reads", "rows", "s", "samples", "share", "sweeps", "times", "tokens",
    "topics", "values", "vectors", "visits", "weights",
})  # fmt: skip
"""Of prices: "s" are seconds; "operations" those of a large matrix product, in float64;
"multiplications" two of these; "reads" those of a value or row in order; "times" and
"share" are factors, above and below 1."""


@dataclass(frozen=True)
class Price:
    """One measured number.

    Parameters
    ----------
    name : str
        Who pays and for what, with dots: "lbfgs.step".
    value : float
        Positive.
    unit : str
        Of `UNITS`.
    script : str
        Of ``benchmarks``, that measures it or judges what follows from it.
    date : str
        When it was, year-month-day.
    what : str
        The number in words, after its unit.
    """

    name: str
    value: float
    unit: str
    script: str
    date: str
    what: str


_TEXT = files(__name__).joinpath("prices.csv").read_text("utf-8")
PRICES = {
    name: Price(name, float(value), *rest)
    for name, value, *rest in list(csv.reader(_TEXT.splitlines()))[1:]
}
"""Every price by name."""
_PASSES = files(__name__).joinpath("passes")
SCALES = _PASSES.joinpath("scales.csv").read_text("utf-8")
"""What `mlopt.gd.plans.expected` reads: of a method and a loss, how alike problems are that
tell of each other."""
VERSION = hashlib.sha256((_TEXT + SCALES).encode()).hexdigest()[:16]
"""Of the list: what was learnt beside other prices says nothing of these."""


def passes_of(loss: str, stop: str) -> str | None:
    """The lines of the file of problems of a loss and a kind of stop, if there is one."""
    file = _PASSES.joinpath(f"{loss}.{stop}.csv")
    return file.read_text("utf-8") if file.is_file() else None


def price(name: str) -> float:
    """The value of a price.

    Raises
    ------
    KeyError
        When there is none of that name.
    """
    return PRICES[name].value


def count(name: str) -> int:
    """The value of a price that counts whole things."""
    return int(PRICES[name].value)
