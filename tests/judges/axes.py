"""Axes of discriminant analyses have no sign of their own: scikit-learn's, turned as ours.

Two factorizations agree on the axes and not on their signs, and all that is made of the
rows along them has these signs. So scikit-learn's pipeline is fitted with the signs that
mlopt found, and is then compared as any other: lengths and directions have to agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from tests.judges.compare import SOLVED, inside


@contextmanager
def turned_like(fitted: Any) -> Iterator[None]:
    """Within, axes that scikit-learn finds have the signs of equal ones in ``fitted``."""
    known = [axes for axes in _axes(fitted) if axes.ndim == 2]
    fit = LinearDiscriminantAnalysis.fit

    def turned(self: Any, X: Any, y: Any) -> Any:
        fit(self, X, y)
        found = np.asarray(getattr(self, "scalings_", ()))
        for axes in known:
            if axes.shape == found.shape:
                opposite = np.sum(axes * found, axis=0) < 0
                same = np.where(opposite, -found, found)
                top = np.max(np.abs(found), initial=0.0)
                if np.allclose(axes, same, rtol=0.0, atol=SOLVED * top):
                    self.scalings_ = same
                    break
        return self

    with mock.patch.object(LinearDiscriminantAnalysis, "fit", turned):
        yield


def _axes(step: Any) -> Iterator[Any]:
    """Of all discriminant analyses within a step."""
    if isinstance(step, LinearDiscriminantAnalysis):
        yield np.asarray(getattr(step, "scalings_", ()))
    for one in inside(step) or ():
        yield from _axes(one)
