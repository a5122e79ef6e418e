"""Roles of machines of many kinds as integer programs, for HiGHS: one a number of workers.

What workers do in a second, x, and what servers send in one, y, are sums over machines;
the seconds of a mini-batch fall with both: about ``1 / x + 1 / y`` in lockstep, the larger
of the two elsewhere. Both are convex, so tangents stand for them. What such sums do not say
(messages, pulls slower than the servers) is left to those who improve what is proposed.

Cruise, section III-C, multiplies roles with shares of the model in its program, which took
37 s for two kinds of 32 machines; shares follow from roles, so these take 10 ms each.
"""

from __future__ import annotations

import math
import time

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from mlopt.server.model import Floats, Work, balance, capacity

STEP = 1.1
"""Between places of tangents: they are off by .1% at most, (1.1 - 1)^2 / 8."""


def propose(
    kinds: Floats, sizes: Floats, work: Work, least_servers: int, limit: float
) -> list[tuple[Floats, Floats]]:
    """Numbers of workers and servers of each kind, ``(k,)`` each: many proposals.

    Parameters
    ----------
    kinds : ndarray of shape (k, 2)
        Seconds of a mini-batch, bytes a second.
    sizes : ndarray of shape (k,)
        Machines of each.
    work : Work
    least_servers : int
    limit : float
        Seconds that it may take.
    """
    k, most = len(kinds), int(sizes.sum())
    compute, pull = kinds[:, 0], work.pulled / kinds[:, 1]
    serving = capacity(kinds, work) / max(work.pulled, 1e-9)
    each = np.maximum(compute, pull) if work.mode == "prefetch" else compute + pull
    shapes = [(False, 1 / each)]
    if work.ahead < math.inf:  # mini-batches of other sizes: more of either side helps
        shapes.append((True, 1 / compute))
    typical = np.average(kinds, axis=0, weights=sizes)
    middle = balance(most, typical[0], work.pulled / typical[1], work)
    numbers = sorted(range(1, most - least_servers + 1), key=lambda w: abs(w - middle))
    end = time.monotonic() + limit
    proposals: list[tuple[Floats, Floats]] = []
    for apart, speed in shapes:
        rows, above = _tangents([speed, serving], sizes, apart)
        once = np.hstack([np.eye(k), np.eye(k), np.zeros((k, 2))])
        count = np.zeros((2, 2 * k + 2))
        count[0, :k] = count[1, k : 2 * k] = 1.0
        for w in numbers:
            left = end - time.monotonic()
            if left <= 0:
                return proposals
            found = milp(
                np.concatenate([np.zeros(2 * k), [1.0, 1.0]]),
                integrality=np.concatenate([np.ones(2 * k), [0, 0]]),
                bounds=Bounds(0, np.concatenate([sizes, sizes, [np.inf, np.inf]])),
                constraints=[
                    LinearConstraint(rows, above, np.inf),
                    LinearConstraint(once, 0, sizes),
                    LinearConstraint(count, [w, least_servers], [w, np.inf]),
                ],
                options={"time_limit": left, "mip_rel_gap": 1e-3},
            )
            if found.x is not None:
                roles = np.round(found.x[: 2 * k])
                proposals.append((roles[:k], roles[k:]))
    return proposals


def _tangents(rates: list[Floats], sizes: Floats, apart: bool) -> tuple[Floats, Floats]:
    """Rows and bounds: ``1 / x >= 2 / at - x / at^2`` for both sides, at many places."""
    k = len(sizes)
    rows, above = [], []
    for side, rate in enumerate(rates):
        least, most = float(rate.min()), float(rate @ sizes)
        for at in np.geomspace(least, most, 2 + int(np.log(most / least) / np.log(STEP))):
            row = np.zeros(2 * k + 2)
            row[side * k : (side + 1) * k] = rate / at
            row[2 * k + (side if apart else 0)] = at
            rows.append(row)
            above.append(2.0)
    return np.array(rows), np.array(above)
