"""How long a step takes, by a few of them on copies: nothing that is kept is changed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlopt.cluster import single_threaded
from mlopt.prices import price
from mlopt.resources.queued import queued
from mlopt.server.program import Part, Program, Step

_ENOUGH = price("layout.timed")
MOST = 5
"""Steps at most, of which the quickest counts: others may have held up the rest."""


def timed(program: Program, passes: int = 0) -> float:
    """Seconds of a step on one thread, of the process that has the rows.

    Steps of the first stratum are taken on copies of their parts, two at least, since the
    first may have to compile something, until they have taken long enough to tell.

    Parameters
    ----------
    program : Program
    passes : int
        Behind its model.

    Raises
    ------
    InputError
        A step returned what cannot be added to the model.
    """
    cells, state = program.cells[0], program.states[0] if program.states else {}
    # Several parts are several cells; of one part, several strata.
    if len(program.parts) > 1:
        pairs = list(zip(cells[:MOST], program.parts[:MOST], strict=True))
    else:
        pairs = [(row[0], program.parts[0]) for row in program.cells[:MOST]]
    if program.executor is None:
        return _timed(program.step, pairs, state, passes)
    # All steps are on the worker that has the first cell: no others are sent there.
    given = program.step, [pairs[0]], state, passes
    found = program.executor.submit(_timed, *given)
    return float(program.executor.result(found))


def _timed(
    step: Step, pairs: Sequence[tuple[Any, Part]], state: Part, passes: int
) -> float:
    found = list[float]()
    with single_threaded():
        for at in range(MOST):
            cell, part = pairs[at % len(pairs)]
            own, kept = _copied(part), _copied(state)
            began = _clock()
            step.visit(cell, own, kept, passes)
            found.append(_clock() - began)
            if sum(found[1:]) > _ENOUGH:
                break
    # What a core was waited for is counted coarsely: more, at times, than a step took.
    return min((seconds for seconds in found if seconds > 0), default=0.0)


def _clock() -> float:
    """Seconds that stand still while others have the core."""
    return time.perf_counter() - queued()


def _copied(part: Part) -> Part:
    return {name: np.array(array) for name, array in part.items()}
