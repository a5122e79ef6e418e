"""What is exported knows nothing of mlopt, wherever ensembles keep their members."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler

import mlopt
from mlopt.pipeline.steps.copies import private_copy

X, Y = make_classification(200, 5, random_state=0)


def inner() -> Any:
    return mlopt.Pipeline([("scale", StandardScaler()), ("bayes", GaussianNB())])


def modules(value: Any, seen: set[int] | None = None) -> set[str]:
    """Where the classes of all objects within are from."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return set()
    seen.add(id(value))
    parts: list[Any] = list(value) if isinstance(value, list | tuple) else []
    if isinstance(value, dict):
        parts = list(value.values())
    parts += list(getattr(value, "__dict__", {}).values())
    return {type(value).__module__}.union(*(modules(part, seen) for part in parts))


@pytest.mark.parametrize(
    "ensemble",
    [
        VotingClassifier([("p", inner())]),
        StackingClassifier([("p", inner())], cv=2),
        CalibratedClassifierCV(inner(), cv=2),
    ],
    ids=lambda one: type(one).__name__,
)
def test_no_member_is_ours(ensemble: Any) -> None:
    ours = mlopt.Pipeline([("ensemble", ensemble)]).fit(X, Y)
    found = ours.export()
    assert not any(name.startswith("mlopt") for name in modules(found))
    np.testing.assert_array_equal(found.predict(X), ours.predict(X))
    assert any(name.startswith("mlopt") for name in modules(ours[-1]))


def test_members_that_are_named_twice_are_one_object_in_copies_too() -> None:
    fitted = VotingClassifier([("p", GaussianNB())]).fit(X, Y)
    copied = private_copy(fitted)
    assert copied.named_estimators_["p"] is copied.estimators_[0]
    assert copied.estimators_[0] is not fitted.estimators_[0]
