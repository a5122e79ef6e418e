"""The laws of a training: parts make the whole, and a state goes on where it was taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlopt.gd.plans.stop import RelativeGap
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


def stops_and_goes_on(
    make: Callable[[RelativeGap, int], Any], far: float, most: int
) -> None:
    """It stops at its own limit of passes, and goes on to another gap."""
    training = make(RelativeGap(far), most)
    training.advance(50)
    assert (training.passes, training.done, training.converged) == (most, True, False)
    training = make(RelativeGap(1e-2), 1000)
    training.advance(1000)
    first = training.gap
    training.ask(1e-9)
    assert not training.done
    training.advance(1000)
    assert training.converged
    assert training.gap <= 1e-9 < first
