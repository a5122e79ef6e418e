"""Code is told apart by what it does: its instructions, and all that they refer to."""

from __future__ import annotations

import copy
import functools
import importlib
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from mlopt.identity import identified, token_of

FACTOR = 2.0


def times(X: Any) -> Any:
    return X * FACTOR


def through(X: Any) -> Any:
    return times(X)


def even(n: int) -> bool:
    return n == 0 or odd(n - 1)


def odd(n: int) -> bool:
    return n != 0 and even(n - 1)


class Shift(TransformerMixin, BaseEstimator):
    by = 1.0

    def __init__(self, times: float = 1.0) -> None:
        self.times = times

    def fit(self, X: Any, y: Any = None) -> Shift:
        return self

    def transform(self, X: Any) -> Any:
        return X + self.by * self.times


def scaler_by(factor: float) -> type:
    class Scaler(Shift):
        def transform(self, X: Any) -> Any:
            return X * factor

    return Scaler


def powers(n: int) -> Callable[[float], float]:
    return lambda x: x**n


def test_a_global_that_a_function_reads_is_part_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = identified(times), identified(through)
    assert None not in before
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    after = identified(times), identified(through)
    assert before[0] != after[0]
    assert before[1] != after[1]


def test_a_class_attribute_is_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = identified(Shift())
    assert before is not None
    monkeypatch.setattr(Shift, "by", 2.0)
    assert identified(Shift()) != before


def test_two_classes_of_one_factory_are_two() -> None:
    assert identified(scaler_by(2.0)()) is not None
    assert identified(scaler_by(2.0)()) == identified(scaler_by(2.0)())
    assert identified(scaler_by(2.0)()) != identified(scaler_by(3.0)())


def test_what_is_set_outside_the_constructor_counts() -> None:
    changed = Shift()
    changed.by = 5.0
    assert token_of(changed) != token_of(Shift())


def test_a_closure_and_defaults_are_part_of_a_function() -> None:
    assert identified(powers(2)) == identified(powers(2))
    assert identified(powers(2)) != identified(powers(3))
    assert identified(lambda x, n=1: x + n) != identified(lambda x, n=2: x + n)


def test_functions_that_call_each_other_end() -> None:
    assert identified(even) is not None
    assert identified(even) != identified(odd)


def test_partials_and_methods_count_with_what_they_hold() -> None:
    assert identified(functools.partial(pow, 2)) != identified(functools.partial(pow, 3))
    assert identified(Shift(1.0).transform) != identified(Shift(2.0).transform)
    assert identified(np.sin) != identified(np.cos)
    assert identified(len) is not None


def test_an_edited_module_that_is_loaded_again_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "steps_of_a_user.py"
    text = "FACTOR = 2\nclass Step:\n    def transform(self, X):\n        return X * {}\n"
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    path.write_text(text.format("FACTOR"))
    module = importlib.import_module("steps_of_a_user")
    try:
        before = identified(module.Step())
        whole = identified(lambda X: module.Step().transform(X))
        path.write_text(text.format("FACTOR * 15"))
        importlib.invalidate_caches()
        importlib.reload(module)
        assert before is not None
        assert identified(module.Step()) != before
        assert identified(lambda X: module.Step().transform(X)) != whole
    finally:
        sys.modules.pop("steps_of_a_user")


@pytest.mark.parametrize(
    "lines",
    [
        "return helped(steps_of_another, X)",
        "same = steps_of_another; return same.by_factor(X)",
        "import steps_of_another as mine; return helped(mine, X)",
        "def inner():\n        return helped(steps_of_another, X)\n    return inner()",
    ],
)
def test_a_module_that_a_function_hands_on_counts_with_all_it_holds(
    lines: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = "FACTOR = 2\ndef by_factor(X):\n    return X * FACTOR\n"
    (tmp_path / "steps_of_another.py").write_text(own)
    text = (
        "import steps_of_another\ndef helped(module, X):\n    return module.by_factor(X)\n"
    )
    (tmp_path / "steps_that_hand_on.py").write_text(f"{text}def step(X):\n    {lines}\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    step = importlib.import_module("steps_that_hand_on").step
    try:
        before = identified(step)
        monkeypatch.setattr(sys.modules["steps_of_another"], "FACTOR", 3)
        assert before is not None
        assert step(2) == 6
        assert identified(step) != before
    finally:
        for name in ("steps_of_another", "steps_that_hand_on"):
            sys.modules.pop(name)


def test_what_a_model_has_learnt_counts_where_code_uses_it() -> None:
    X = np.arange(6.0).reshape(3, 2)
    one, two = StandardScaler().fit(X), StandardScaler().fit(2 * X)

    def using(model: Any) -> Callable[[Any], Any]:
        return lambda rows: model.transform(rows)

    assert identified(using(one)) == identified(using(copy.deepcopy(one)))
    assert identified(using(one)) != identified(using(two))
    assert identified(one.transform) != identified(two.transform)
    assert identified(functools.partial(using, one)) != identified(
        functools.partial(using, two)
    )
    held, other = Shift(), Shift()
    held.model, other.model = one, two
    assert identified(held) != identified(other)


def test_an_installed_class_counts_by_name_and_parameters() -> None:
    assert identified(StandardScaler()) == identified(StandardScaler())
    assert identified(StandardScaler()) != identified(StandardScaler(with_mean=False))
    assert identified(StandardScaler()) != identified(MinMaxScaler())
    frames = StandardScaler().set_output(transform="pandas")
    assert identified(StandardScaler()) != identified(frames)


def test_parts_of_an_ensemble_are_told_apart() -> None:
    def voting(trees: int) -> VotingClassifier:
        return VotingClassifier([("rf", RandomForestClassifier(trees, random_state=0))])

    assert identified(voting(5)) == identified(voting(5))
    assert identified(voting(5)) != identified(voting(6))


def test_what_was_learnt_counts_where_it_is_asked_for() -> None:
    X = np.arange(6.0).reshape(3, 2)
    one, two = StandardScaler().fit(X), StandardScaler().fit(2 * X)
    assert token_of(one) == token_of(two)
    assert token_of(one, fitted=True) != token_of(two, fitted=True)
    assert token_of(FrozenEstimator(one)) != token_of(FrozenEstimator(two))


def test_a_class_that_claims_to_be_scikit_learns_is_told_from_it() -> None:
    class StandardScaler(Shift):
        pass

    StandardScaler.__module__ = "sklearn.preprocessing._data"
    StandardScaler.__qualname__ = "StandardScaler"
    original = importlib.import_module("sklearn.preprocessing").StandardScaler
    assert token_of(StandardScaler) != token_of(original)


@pytest.mark.parametrize(
    "value",
    [
        threading.Lock(),
        (i for i in range(3)),
        lambda text: eval(text),
        lambda: globals()["FACTOR"],
        [1, {"deep": threading.Lock()}],
    ],
    ids=["lock", "generator", "eval", "globals", "within"],
)
def test_what_cannot_be_identified_is_like_nothing_else(value: Any) -> None:
    assert identified(value) is None
    assert token_of(value) != token_of(value)


def test_a_container_within_itself_ends() -> None:
    one: list[Any] = [1]
    one.append(one)
    assert identified(one) is not None
