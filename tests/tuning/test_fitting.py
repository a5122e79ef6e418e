"""One by one: ensembles that grow, epochs, and everything else in one go."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from mlopt.tuning.crews.chain import Names
from mlopt.tuning.crews.fitting import Step, fit_until, make_fold, train_step
from mlopt.tuning.crews.prefixes import cut_rows, transform
from mlopt.tuning.crews.scoring import metrics_of
from mlopt.tuning.crews.splits import Split

X, y = make_classification(300, 6, random_state=0)
SPLIT = Split(np.arange(200), np.arange(200, 300))
LABELS: tuple[Any, ...] = (y, None, {}, len(y))
ALONE: Names = ((), "")


def fold() -> Any:
    rows = transform(cut_rows(X, SPLIT), LABELS, "scale", StandardScaler(), SPLIT)
    return make_fold(rows, LABELS, ALONE, SPLIT, np.unique(y))


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(n_estimators=20, random_state=0),
        HistGradientBoostingClassifier(max_iter=20, early_stopping=False, random_state=0),
    ],
)
def test_growing_in_steps_equals_growing_at_once(model: Any) -> None:
    data, stepped = fold(), clone(model)
    assert not fit_until(stepped, model, data, Step(0, 3, 10, True, 0))
    assert fit_until(stepped, model, data, Step(3, 10, 10, True, 0))
    at_once = clone(model).fit(data.X, data.y)

    np.testing.assert_allclose(
        stepped.predict_proba(data.X_test), at_once.predict_proba(data.X_test)
    )


def test_parts_of_epochs_make_whole_ones() -> None:
    data, template = fold(), SGDClassifier(max_iter=6, random_state=0)
    stepped, at_once = clone(template), clone(template)
    third = Fraction(1, 3)
    for start, stop in ((0, third), (third, 1), (1, 7 * third), (7 * third, 6)):
        done = fit_until(stepped, template, data, Step(start, stop, 6, True, 0))
        assert done == (stop == 6)
    assert fit_until(at_once, template, data, Step(0, 6, 6, True, 0))
    # The same rows in the same order; scikit-learn shuffles each part once more.
    assert stepped.t_ == at_once.t_ == 1 + 6 * len(data.y)
    assert abs(stepped.score(data.X, data.y) - at_once.score(data.X, data.y)) < 0.05


def test_a_part_of_few_rows_has_one() -> None:
    data, template = fold(), SGDClassifier(max_iter=6, random_state=0)
    model = clone(template)
    fit_until(model, template, data, Step(0, Fraction(1, 1000), 6, True, 0))
    fit_until(model, template, data, Step(Fraction(1, 1000), Fraction(1, 900), 6, True, 0))
    assert model.t_ == 2


def test_epochs_go_on_from_where_they_were() -> None:
    data, model = fold(), MLPClassifier((4,), max_iter=6, random_state=0)
    stepped, at_once = clone(model), clone(model)
    assert not fit_until(stepped, model, data, Step(0, 2, 6, True, 0))
    assert fit_until(stepped, model, data, Step(2, 6, 6, True, 0))
    assert fit_until(at_once, model, data, Step(0, 6, 6, True, 0))

    np.testing.assert_allclose(stepped.coefs_[0], at_once.coefs_[0])


@pytest.mark.parametrize("model", [GaussianNB(), LogisticRegression()])
def test_what_cannot_go_on_is_fitted_in_one_go(model: Any) -> None:
    assert fit_until(clone(model), model, fold(), Step(0, 1, 10, True, 0))


def test_an_error_becomes_a_reason() -> None:
    broken = LogisticRegression(C=-1)
    report, model = train_step(
        fold(), None, broken, Step(0, 1, 1, False, 0), metrics_of(None, broken, True),
        frozenset(),
    )  # fmt: skip

    assert report.reason is not None
    assert report.reason.startswith("InvalidParameterError")
    assert model is None


def test_weights_go_to_the_final_fit_or_are_refused() -> None:
    from sklearn.neighbors import KNeighborsClassifier

    labels: tuple[Any, ...] = (y, np.ones(300), {}, len(y))
    weighted = make_fold(cut_rows(X, SPLIT), labels, ALONE, SPLIT, np.unique(y))
    model = KNeighborsClassifier()
    with pytest.raises(ValueError, match=r"KNeighborsClassifier\.fit does not take it"):
        fit_until(model, model, weighted, Step(0, 1, 1, False, 0))
