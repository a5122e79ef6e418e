"""Measuring the implementations of operators on this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mlopt.errors import InputError
from mlopt.pipeline.calibration.fitting import Measurement
from mlopt.pipeline.calibration.table import DESIGNS
from mlopt.resources import Resources

LIMIT = 1.5
"""Seconds: an implementation that is predicted to take longer is left out of a case."""


def warm_up(operator: str, resources: Resources) -> None:
    """Run all implementations once on tiny problems: what is compiled, is compiled now."""
    for case in DESIGNS[operator](resources, tiny=True):
        for name in case.options:
            if case.seconds(name, resources) is not None:
                case.run(name)


def measure(
    resources: Resources,
    operators: Sequence[str] = (),
    *,
    tiny: bool = False,
    tell: Callable[[str], None] = lambda label: None,
) -> list[Measurement]:
    """Run the experiments, in about a minute on an idle machine.

    Parameters
    ----------
    resources : Resources
        The rates of this machine.
    operators : sequence of str, optional
        Keys of `mlopt.pipeline.calibration.table.DESIGNS`; all by default.
    tiny : bool, default=False
        Two small problems an operator, in about a second: to see that all is in place.
    tell : callable, optional
        Is told the label of each problem before it is run.

    Raises
    ------
    InputError
        When there are no experiments with an operator.
    """
    if unknown := sorted(set(operators) - set(DESIGNS)):
        raise InputError(
            f"There are no experiments with {unknown}. Operators: {sorted(DESIGNS)}."
        )
    alone = replace(resources, threads=1)
    found: list[Measurement] = []
    for operator in operators or DESIGNS:
        warm_up(operator, alone)
        for case in DESIGNS[operator](alone, tiny=tiny):
            tell(f"{operator}: {case.label}")
            found += case.measure(alone, LIMIT, repeat=2)
    return found
