"""The laws of a training: parts make the whole, and a state goes on where it was taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlopt.training import Training


def obeys_the_laws(make: Callable[[], Any], before: int, passes: int) -> Any:
    """The training that ran in one go, beside one in two parts and one from a state."""
    whole, parts, resumed = (make() for _ in range(3))
    assert all(isinstance(one, Training) for one in (whole, parts, resumed))
    whole.advance(passes)
    parts.advance(before)
    resumed.restore(parts.state())
    for other in (parts, resumed):
        other.advance(passes - before)
        assert other.passes == whole.passes
        np.testing.assert_array_equal(other.coefficients()[0], whole.coefficients()[0])
    return whole
