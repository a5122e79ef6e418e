"""What runs do inside, on problems that `foresight.py` draws: shares that prices count.

Printed are, of Newton's runs on squared hinges, the share of the rows that is within the
margin in the mean of all Hessians (`newton.curved`; by the share of the rarer class, and
the geometric mean of all); and of runs that say they are done, by how many times the bound
of their first proof is above the gap that was asked for, method by method (`run.nearly`:
what lies below goes on for a pass or two before a Hessian is made to prove it).

usage: inside.py [--seed 4242] [--problems 60] [--values 1.5e6] [--limit 3]
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from unittest.mock import patch

import foresight
import numpy as np

import mlopt
from mlopt.errors import MloptError
from mlopt.gd import joint_hessian
from mlopt.gd.plans import running

METHODS = ("newton-cholesky", "newton-cg", "lbfgs", "primal-coordinate-descent")
WIDEST = 1500
"""Columns of which Hessians are made in a moment."""


def run(problem, method, limit):
    """(rows within the margin and rows, of all Hessians; the first bound over the gap)."""
    curved, bounds = [], []
    curvatures, prove = joint_hessian._curvatures, running.prove

    def counted(*given):
        found = curvatures(*given)
        curved.append((np.count_nonzero(found), len(found)))
        return found

    def proven(of, coef, intercept, *tolerances):
        bound = prove(of, coef, intercept)
        if bound is not None:
            bounds.append(bound.gap / problem.tolerance)
        return prove(of, coef, intercept, *tolerances)

    X, y = foresight.rows_of(problem)
    plan = mlopt.gd.plan(
        mlopt.gd.Task(problem.loss, l2=problem.l2), X, y, tolerance=problem.tolerance,
        methods=[method], speculation=False, n_jobs=1,
    )  # fmt: skip
    with (
        patch.object(joint_hessian, "_curvatures", counted),
        patch.object(running, "prove", proven),
    ):
        ended = plan.chosen.run(time_limit=limit).converged
    return curved, bounds[0] if bounds and ended else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=4242)
    parser.add_argument("--problems", type=int, default=60)
    parser.add_argument("--values", type=float, default=1.5e6)
    parser.add_argument("--limit", type=float, default=3.0, help="seconds a run")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    shares, bounds = defaultdict(list), defaultdict(list)
    for _ in range(options.problems):
        problem = foresight.draw(rng, options.values)
        if problem.loss == "squared" or problem.d > WIDEST:
            continue
        for method in METHODS:
            try:
                curved, bound = run(problem, method, options.limit)
            except MloptError:
                continue  # not for such rows
            if bound is not None:
                bounds[method].append(bound)
            if curved and method == METHODS[0] and problem.loss == "squared_hinge":
                within, rows = np.sum(curved, axis=0)
                shares[problem.share].append(within / rows)
    for share, found in sorted(shares.items()):
        print(f"rarer class {share:4.2f}: {np.mean(found):.2f} of {len(found)} problems")
    every = np.concatenate([*shares.values()])
    print(f"all: geometric mean {np.exp(np.mean(np.log(every))):.2f}")
    for method, found in bounds.items():
        above = [f"{bound:.2f}" for bound in sorted(found) if bound > 1]
        print(f"{method}: {len(above)} of {len(found)} above: {' '.join(above)}")


if __name__ == "__main__":
    main()
