"""Models of many penalties start between neighbours, and end where they would alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlopt.gd import quasi_newton
from mlopt.gd.columns import Model
from mlopt.gd.passes import evaluate
from mlopt.gd.penalty_path import FEWEST, between, trained_first
from mlopt.gd.quasi_newton import QuasiNewton
from mlopt.rows import Rows

PENALTIES = np.logspace(-3, 1, 17)


def rows_of(classes: int = 2) -> Rows:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    codes = (X @ rng.normal(size=(5, classes)) + rng.normal(size=(400, classes))).argmax(1)
    y = 2.0 * codes - 1 if classes == 2 else codes.astype(float)
    weights = (rng.integers(0, 2, 400)[:, None] != np.arange(2)).astype(float)
    given = {"targets": y[:, None], "weights": weights, "score_weights": 1 - weights}
    return Rows.of(X).attach(**given)


def models(loss: str, outputs: int = 1) -> list[Model]:
    return [
        Model(loss, float(l2), rowset=s, outputs=outputs)
        for l2 in PENALTIES[::-1]
        for s in (0, 1)
    ]


def test_every_other_penalty_and_both_ends_come_first() -> None:
    some = models("logistic")
    first = trained_first(some)
    assert {some[i].l2 for i in first} == set(PENALTIES[::2])
    rest = dict(between(some, {i: np.full((6, 1), np.log(some[i].l2)) for i in first}))
    assert sorted([*first, *rest]) == list(range(len(some)))
    for number, weights in rest.items():
        np.testing.assert_allclose(weights, np.log(some[number].l2))


def test_few_penalties_none_and_a_loss_with_corners_are_trained_at_once() -> None:
    few = models("logistic")[: 2 * (FEWEST - 1)]
    free = [Model("logistic", 0.0, rowset=s) for s in (0, 1)] * FEWEST
    for some in (few, free, models("hinge")):
        assert trained_first(some) == list(range(len(some)))


@pytest.mark.parametrize(("loss", "classes"), [("logistic", 2), ("multinomial", 3)])
def test_models_end_where_they_do_alone(loss: str, classes: int) -> None:
    rows, some = rows_of(classes), models(loss, 1 if classes == 2 else classes)
    path = QuasiNewton(rows, some, gtol=1e-9)
    path.advance(100)
    assert path.converged.all()
    scores = path.quality()
    for number in (0, 1, 5, 16, 33):
        alone = QuasiNewton(rows, [some[number]], gtol=1e-9)
        alone.advance(100)
        expected = alone.coefficients(0)[0]
        np.testing.assert_allclose(path.coefficients(number)[0], expected, atol=1e-5)
        assert scores[number] == alone.quality()[0]
        assert path.objective()[number] == pytest.approx(alone.objective()[0])


def test_neighbours_take_fewer_passes_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    widths: list[int] = []

    def counted(rows: Rows, weights: Any, *args: Any, **settings: Any) -> Any:
        widths.append(weights.shape[1])
        return evaluate(rows, weights, *args, **settings)

    monkeypatch.setattr(quasi_newton, "evaluate", counted)
    rows, some = rows_of(), models("logistic")
    counts = []
    for fewest in (FEWEST, 100):
        monkeypatch.setattr("mlopt.gd.penalty_path.FEWEST", fewest)
        widths.clear()
        training = QuasiNewton(rows, some, gtol=1e-6)
        training.advance(100)
        assert training.converged.all()
        counts.append(sum(widths))
    assert counts[0] < counts[1]


def test_few_passes_are_taken_by_each_model_itself() -> None:
    training = QuasiNewton(rows_of(), models("logistic"), gtol=1e-12, max_passes=2)
    training.advance(1)
    assert not training.converged.any()
    training.advance(5)
    assert training.passes == 2
