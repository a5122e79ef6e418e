"""One choice among methods by predicted cost, or the one the caller asked for."""

from __future__ import annotations

import time
from collections.abc import Mapping

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.kernels.compiling import notes as notes_of_compiling
from mlopt.kernels.compiling import worked
from mlopt.plan import Alternative, Choice, Plan
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


def decide(
    operator: str,
    wanted: str,
    seconds: Mapping[str, float],
    why: Mapping[str, str],
    step: str = "fit",
) -> Choice:
    """As `choose`, from predicted seconds, and the reasons of those that have none."""
    if not seconds:
        reasons = "; ".join(f"`{name}`: {text}" for name, text in why.items())
        raise InputError(f"No solver can fit {operator} here. {reasons}.")
    chosen = min(seconds, key=seconds.__getitem__) if wanted == "auto" else wanted
    if chosen not in seconds:
        raise InputError(
            f"`solver` must be one of {sorted(seconds)} or 'auto' for {operator}, got "
            f"{wanted!r} ({why.get(chosen, 'unknown')})."
        )
    others = [Alternative(n, value) for n, value in seconds.items() if n != chosen]
    others += [Alternative(name, None, text) for name, text in why.items()]
    return Choice(step, operator, chosen, seconds[chosen], rejected=tuple(others))


def plan_after(estimator: object, choice: Choice, started: float) -> Plan:
    """The plan of a fit that has run since ``started``; kernels' compilation apart."""
    seconds, notes = worked(started), notes_of_compiling(started)
    plan = Plan(f"fit {estimator}", (choice,), choice.predicted, notes=notes)
    total = time.perf_counter() - started
    return plan.with_measured({choice.step: seconds}, total=total)


def plan_before(estimator: object, choice: Choice) -> Plan:
    """The plan of a fit that has not run."""
    return Plan(f"fit {estimator}", (choice,), choice.predicted)
