"""How well costs predict measured times, an implementation a line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from mlopt.pipeline.calibration.fitting import Measurement, fit, grouped
from mlopt.pipeline.calibration.running import check_operators, measure
from mlopt.pipeline.calibration.table import DESIGNS
from mlopt.plan import format_seconds
from mlopt.resources import Calibration, Factors, Resources
from mlopt.resources.probe import keep_calibration

_QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)
_HEAD = (
    "predicted / measured seconds: least, quartiles and greatest of the experiments\n"
    f"{'':32}{'runs':>5}{'measured':>22}   {'as counted':<30}   {'calibrated':<30}"
    "   factors"
)


def calibrate(
    machine: Resources,
    operators: Sequence[str],
    tiny: bool,
    *,
    show: Callable[[str], None],
    tell: Callable[[str], None],
) -> None:
    """Measure one operator after the other, all without names, and show what was found:
    what is known of some is kept if the rest is not.
    """
    check_operators(operators)
    for operator in operators or DESIGNS:
        measured = measure(machine, operator, tiny=tiny, tell=tell)
        found = fit(measured, machine)
        show(f"\n{describe_fit(measured, found, machine)}")
        if not keep_calibration(found):
            show("not kept: the cache cannot be written")


def describe_fit(
    measurements: Sequence[Measurement], found: Calibration, resources: Resources
) -> str:
    """A table of residuals and factors.

    Parameters
    ----------
    measurements : sequence of Measurement
    found : Calibration
        What was fitted to them.
    resources : Resources
        Rates of the machine.
    """
    before = replace(resources, calibration=Calibration())
    after = replace(resources, calibration=found)
    lines = [_HEAD]
    for name, group in grouped(measurements).items():
        seconds = sorted(one.seconds for one in group)
        span = f"{format_seconds(seconds[0])} to {format_seconds(seconds[-1])}"
        factors = found.of(group[0].operator, group[0].implementation)
        lines.append(
            f"{name:32}{len(group):5}{span:>22}   {_quantiles(group, before):<30}   "
            f"{_quantiles(group, after):<30}   {_factors(factors)}"
        )
    return "\n".join(lines)


def _quantiles(group: Sequence[Measurement], resources: Resources) -> str:
    ratios = [one.ratio(resources) for one in group]
    return " ".join(f"{value:5.2f}" for value in np.quantile(ratios, _QUANTILES))


def _factors(factors: Factors) -> str:
    changed = {name: getattr(factors, name) for name in Factors.names()}
    return " ".join(f"{name} {value:.2g}" for name, value in changed.items() if value != 1)
