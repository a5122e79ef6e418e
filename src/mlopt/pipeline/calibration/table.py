"""The operators that are calibrated: one entry each, and nothing else knows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from mlopt.gd.plans import closed, method
from mlopt.pipeline.calibration import components, convolution, linear, methods
from mlopt.pipeline.calibration.cases import Case
from mlopt.pipeline.library import pca_plan
from mlopt.pipeline.library.image import convolution_plan
from mlopt.resources import Resources


class Design(Protocol):
    """From a machine to experiments with one operator."""

    def __call__(self, resources: Resources, *, tiny: bool = False) -> Iterator[Case]:
        """The experiments, smallest first; ``tiny`` ones only show that all is in place."""
        ...


DESIGNS: dict[str, Design] = {
    closed.OPERATOR: linear.cases,
    method.OPERATOR: methods.cases,
    pca_plan.OPERATOR: components.cases,
    convolution_plan.OPERATOR: convolution.cases,
}
"""From an operator's name in the calibration to its experiments."""
