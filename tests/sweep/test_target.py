"""The target sets the task; what cannot be predicted is refused with a reason."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mlopt.errors import InputError
from mlopt.sweep.target import align, check_counts, splitter, target_of

N = 300
RANDOM = np.random.default_rng(1)


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (RANDOM.choice(["yes", "no"], N), "classification"),
        (RANDOM.integers(0, 2, N).astype(bool), "classification"),
        (RANDOM.integers(1, 8, N), "classification"),
        (RANDOM.integers(0, 2, N).astype(float), "classification"),
        (RANDOM.choice([0.5, 1.5], N), "regression"),  # scikit-learn's word for it, too
        (pd.Categorical(RANDOM.integers(0, 99, N)), "classification"),
        (RANDOM.integers(0, 500, N).astype(object), "regression"),
        (RANDOM.integers(0, 2, N).astype(object), "classification"),
        (RANDOM.normal(size=N), "regression"),
        (RANDOM.integers(0, 500, N), "regression"),
        (np.round(RANDOM.normal(size=N), 1), "regression"),
        ([Decimal(f"{n}.99") for n in RANDOM.integers(0, 9, N)], "regression"),
        ([Decimal(n) for n in RANDOM.integers(0, 2, N).tolist()], "classification"),
    ],
)
def test_the_task_is_found_out(values: Any, task: str) -> None:
    assert target_of(pd.Series(values, name="y"))[0].task == task


@pytest.mark.parametrize("kind", ["category", object])
@pytest.mark.parametrize("values", [[3, 1, 2], [True, False], [2.0, 1.0], ["b", "a"]])
def test_labels_are_what_they_were_as_objects_and_categories(
    kind: Any, values: Any
) -> None:
    plain = pd.Series(values * 30)
    expected = target_of(plain)[1]
    found = target_of(plain.astype(kind))[1]
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()


def test_categories_may_be_fractions() -> None:
    target, y = target_of(pd.Series([0.5, 1.5] * 30, dtype="category"))
    assert target.classes.tolist() == ["0.5", "1.5"]
    assert set(y) == {"0.5", "1.5"}


def test_what_is_asked_for_wins() -> None:
    target, y = target_of(pd.Series(RANDOM.integers(0, 5, N)), "regression")
    assert target.task == "regression"
    assert y.dtype == float


@pytest.mark.parametrize(
    ("values", "task", "says"),
    [
        (["a"] * 50, "auto", "at least two classes"),
        ([f"n{i}" for i in range(2000)], "auto", "identifier or free text"),
        (["a", "b"] * 30, "regression", "needs numbers"),
        ([1.0, np.inf] * 30, "regression", "finite"),
        ([1.0, None] * 30, "auto", "no missing values"),
        ([0.5, 1.5] * 30, "classification", "whole numbers or texts as classes"),
        ([0.5] * 60, "auto", "whole numbers or texts as classes"),
    ],
)
def test_a_hopeless_target_is_refused(values: Any, task: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        target_of(pd.Series(values, name="y"), task)


def test_labels_of_a_test_file_may_end_in_a_full_stop() -> None:
    target, _ = target_of(pd.Series(["<=50K", ">50K"] * 30, name="income"))
    found, said = align(pd.Series(["<=50K.", " >50K. "]), target)
    assert "full stop" in said
    assert found.tolist() == ["<=50K", ">50K"]


def test_labels_that_training_never_saw_are_named() -> None:
    target, _ = target_of(pd.Series(["a", "b"] * 30, name="y"))
    with pytest.raises(InputError, match=r"\['c'\]"):
        align(pd.Series(["a", "c"]), target)


@pytest.mark.parametrize(("rows", "splits"), [(5_000, 5), (20_000, 3), (200_000, 1)])
def test_the_more_rows_the_fewer_splits(rows: int, splits: int) -> None:
    target, _ = target_of(pd.Series([0, 1] * 30))
    assert splitter("auto", target, rows, 0)[0].get_n_splits() == splits


def test_folds_are_stratified_shuffled_and_seeded() -> None:
    target, y = target_of(pd.Series(["a"] * 90 + ["b"] * 10))
    cv, _ = splitter(5, target, len(y), seed=3)
    tests = [test for _, test in cv.split(y, y)]
    assert all((y[test] == "b").sum() == 2 for test in tests)
    again, _ = splitter(5, target, len(y), seed=3)
    assert np.array_equal(tests[0], next(iter(again.split(y, y)))[1])


def test_a_class_that_is_too_rare_is_named_with_its_rows() -> None:
    target, y = target_of(pd.Series(["a"] * 50 + ["b"] * 2, name="y"))
    with pytest.raises(InputError, match=r"at least 5 rows.*'b': 2"):
        check_counts(y, target, 5)
