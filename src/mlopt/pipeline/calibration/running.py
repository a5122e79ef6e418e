"""Measuring the implementations of operators on this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mlopt.errors import InputError
from mlopt.pipeline.calibration.fitting import Measurement
from mlopt.pipeline.calibration.table import DESIGNS
from mlopt.prices import price
from mlopt.resources import Resources

_LIMIT = price("calibration.limit")


def warm_up(operator: str, resources: Resources) -> None:
    """Run all implementations once on tiny problems: what is compiled, is compiled now."""
    for case in DESIGNS[operator](resources, tiny=True):
        for name in case.options:
            if case.seconds(name, resources) is not None:
                case.run(name)


def measure(
    resources: Resources,
    operator: str,
    *,
    tiny: bool = False,
    tell: Callable[[str], None] = lambda label: None,
) -> list[Measurement]:
    """Run the experiments with one operator, in about 20 seconds on an idle machine.

    Parameters
    ----------
    resources : Resources
        The rates of this machine.
    operator : str
        A key of `mlopt.pipeline.calibration.table.DESIGNS`.
    tiny : bool, default=False
        A few small problems, in about a second: to see that all is in place.
    tell : callable, optional
        Is told the label of each problem before it is run.

    Raises
    ------
    InputError
        When there are no experiments with the operator.
    """
    check_operators([operator])
    alone = replace(resources, threads=1)
    found: list[Measurement] = []
    warm_up(operator, alone)
    for case in DESIGNS[operator](alone, tiny=tiny):
        tell(f"{operator}: {case.label}")
        found += case.measure(alone, _LIMIT, repeat=2)
    return found


def check_operators(names: Sequence[str]) -> None:
    """Refuse what there are no experiments with, before any of them takes its time."""
    if unknown := sorted(set(names) - set(DESIGNS)):
        raise InputError(
            f"There are no experiments with {unknown}. Operators: {sorted(DESIGNS)}."
        )
