"""One choice among ways by predicted cost, or the one the caller asked for."""

from __future__ import annotations

from collections.abc import Mapping

from mlopt.costs import Cost
from mlopt.plan import Choice, decide
from mlopt.resources import Resources

Options = Mapping[str, Cost | str]
"""Methods by name: the cost of each, or why it cannot be used here."""


def calibrated(
    operator: str, options: Options, resources: Resources
) -> dict[str, Cost | str]:
    """``options`` with the factors that were measured on this machine.

    Parameters
    ----------
    operator : str
        The operator's name in the calibration, such as "Ridge".
    options : mapping of str to Cost or str
    resources : Resources
        With ``calibration``; an implementation that it does not name stays as counted.
    """
    return {
        name: cost.scaled(resources.calibration.of(operator, name))
        if isinstance(cost, Cost)
        else cost
        for name, cost in options.items()
    }


def least(options: Options, resources: Resources) -> Cost | None:
    """The cost that takes the fewest seconds; None where nothing can be used."""
    known = [cost for cost in options.values() if isinstance(cost, Cost)]
    return min(known, key=lambda c: c.seconds(resources, resources.threads), default=None)


def choose(
    operator: str,
    wanted: str,
    options: Options,
    resources: Resources,
    step: str = "fit",
    left_out: Mapping[str, str] | None = None,
) -> Choice:
    """The cheapest method, or ``wanted`` unless that is "auto".

    Parameters
    ----------
    operator : str
        What is fitted, as the user would write it.
    wanted : str
        A name among ``options``, or "auto".
    options : mapping of str to Cost or str
    resources : Resources
    left_out : mapping of str to str, optional
        Names that "auto" takes only where nothing else can be used, and why.

    Raises
    ------
    InputError
        When ``wanted`` is unknown or cannot be used here, or when nothing can.
    """
    costs = {name: cost for name, cost in options.items() if isinstance(cost, Cost)}
    aside = left_out or {}
    if wanted == "auto" and costs.keys() - aside.keys():
        options = {**options, **aside}
        costs = {name: cost for name, cost in costs.items() if name not in aside}
    seconds = {n: cost.seconds(resources, resources.threads) for n, cost in costs.items()}
    why = {name: text for name, text in options.items() if isinstance(text, str)}
    return decide(operator, wanted, seconds, why, step)
