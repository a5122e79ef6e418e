"""Lockstep that drags on is taken over by Newton's method, to the same minima."""

from __future__ import annotations

import math
import time
from typing import Any

import dask
import numpy as np
import pytest
from sklearn.datasets import load_wine
from tests.gd.laws import obeys_the_laws

from mlopt.cluster import Threads
from mlopt.gd.columns import Model
from mlopt.gd.lockstep_then_newton import LockstepThenNewton, Patience
from mlopt.gd.newton_training import NewtonTraining
from mlopt.gd.plans.newton_cholesky import Newton
from mlopt.gd.quasi_newton import QuasiNewton
from mlopt.rows import Rows

GTOL, MOST = 1e-6, 3000


def of_pass(columns: int) -> float:
    return 1.0 + 0.1 * columns


def separable() -> tuple[Rows, list[Model]]:
    """Classes of wine, which planes separate, and penalties from large to small."""
    X, y = load_wine(return_X_y=True)
    rows = Rows.of(X / X.std(axis=0)).attach(
        targets=y[:, None].astype(float), weights=np.ones((len(y), 1))
    )
    return rows, [
        Model("squared_hinge", l2, outputs=3, intercept_l2=l2)
        for l2 in (1.0, 1e-2, 1e-4, 1e-6)
    ]


def training(seconds: float, most: int = MOST) -> LockstepThenNewton:
    rows, models = separable()
    patience = Patience(of_pass, lambda model: seconds)
    return LockstepThenNewton(rows, models, gtol=GTOL, max_passes=most, patience=patience)


def test_lockstep_is_given_up_when_it_has_taken_as_long_as_newton() -> None:
    rows, models = separable()
    dragging = QuasiNewton(rows, models, gtol=GTOL, max_passes=MOST)
    dragging.advance(MOST)
    one = training(10.0)
    one.advance(MOST)
    assert one.converged.all()
    assert one.passes <= 40 < dragging.passes
    alone = NewtonTraining(rows, models, gtol=GTOL, max_iter=MOST)
    alone.advance(1)
    np.testing.assert_allclose(one.objective(), alone.objective(), rtol=1e-6)


def test_each_model_counts_its_own_passes() -> None:
    rows, models = separable()
    found = NewtonTraining(rows, models[:1], gtol=GTOL, max_iter=MOST)
    found.advance(1)
    # Newton's steps from zero weights to a strong penalty's minimum; all count as one pass.
    assert 1 < found.learnt(0)["n_iter_"] < 20
    assert found.passes == 1


def test_newton_trains_no_more_models_at_a_time_than_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, models = separable()
    rows = rows.moved(Threads(4))
    one, at_work = NewtonTraining(rows, models, gtol=GTOL, max_iter=MOST), [0]
    one.advance(1)
    advance = Newton.advance

    def counted(newton: Newton, passes: int) -> None:
        running.append(newton)
        at_work.append(len(running))
        time.sleep(0.01)  # others would begin meanwhile
        advance(newton, passes)
        running.remove(newton)

    running: list[Newton] = []
    monkeypatch.setattr(Newton, "advance", counted)
    hessian = 8 * (rows.d + 1) ** 2
    # Of half of the memory: what a sum on one thread takes, and not that of two.
    with dask.config.set({"mlopt.resources.memory": 2 * 5 * hessian}):
        small = NewtonTraining(rows, models, gtol=GTOL, max_iter=MOST)
        small.advance(1)
    assert max(at_work) == 1
    np.testing.assert_array_equal(small.objective(), one.objective())


def test_where_newton_cannot_lockstep_goes_on() -> None:
    rows, models = separable()
    plain = QuasiNewton(rows, models, gtol=GTOL, max_passes=100)
    one = training(math.inf, 100)
    for each in (plain, one):
        each.advance(100)
    np.testing.assert_array_equal(one._weights, plain._weights)


class Whole(LockstepThenNewton):
    """With the weights of all models as one answer."""

    def coefficients(self, number: int | None = None) -> Any:
        return (self._weights,) if number is None else super().coefficients(number)


@pytest.mark.parametrize("seconds", [0.0, 5.0])
def test_it_obeys_the_laws_of_a_training(seconds: float) -> None:
    def made() -> Whole:
        rows, models = separable()
        patience = Patience(of_pass, lambda model: seconds)
        return Whole(rows, models, gtol=GTOL, max_passes=MOST, patience=patience)

    whole = obeys_the_laws(made, 2, 30)
    assert whole.finished.all()
