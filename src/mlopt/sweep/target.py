"""What is to be predicted: classes or numbers, and whether that can work at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import get_scorer
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)

from mlopt.errors import InputError
from mlopt.readers.table import as_integers

FEW_CLASSES = 20
"""Whole numbers with at most so many values are taken as classes."""

MOST_CLASSES = 1000
"""More are names, or numbers, and no classes."""
ONE_SPLIT_ROWS = 50_000
THREE_FOLDS_ROWS = 10_000
"""Above which three folds, and then one split, judge as surely as five of few rows."""


@dataclass(frozen=True)
class Target:
    """The task that a target column sets.

    Parameters
    ----------
    name : str
    task : str
        "classification" or "regression".
    why : str
        How that was found out.
    classes : ndarray
        The labels in order; empty for regression.
    """

    name: str
    task: str
    why: str
    classes: NDArray[Any] = field(default_factory=lambda: np.empty(0))

    @property
    def classifies(self) -> bool:
        """Whether labels are predicted, not numbers."""
        return self.task == "classification"

    @property
    def kind(self) -> str:
        """scikit-learn's word for it: "binary", "multiclass" or "continuous"."""
        if not self.classifies:
            return "continuous"
        return "binary" if len(self.classes) == 2 else "multiclass"

    @property
    def scoring(self) -> str:
        """The metric when the user names none."""
        return "accuracy" if self.classifies else "r2"

    def score_of_same_answer(
        self,
        scoring: str,
        y: NDArray[Any],
        tested: NDArray[Any],
        weight: NDArray[Any] | None = None,
        scored: Mapping[str, Any] | None = None,
    ) -> float:
        """What a metric says of always the same answer, learnt from ``y`` (n,); ``scored``
        is what it is given beside.
        """
        model = DummyClassifier() if self.classifies else DummyRegressor()
        model.fit(np.zeros((len(y), 1)), y, sample_weight=weight)
        scorer, zeros = get_scorer(scoring), np.zeros((len(tested), 1))
        return float(scorer(model, zeros, tested, **(scored or {})))


def target_of(y: pd.Series, task: str = "auto") -> tuple[Target, NDArray[Any]]:
    """Infer the task, and the target as an array without missing values.

    Raises
    ------
    InputError
        Missing values, a single class, too many classes, or text for a regression.
    """
    name = str(y.name or "target")
    if y.isna().any():
        raise InputError(f"The target {name!r} must have no missing values here.")
    task, why = (task, "as asked") if task != "auto" else infer(y)
    if task == "regression":
        return Target(name, task, why), _numbers(y, name)
    labels = as_labels(y)
    classes = np.unique(labels)
    if labels.dtype.kind == "f":
        raise InputError(
            f"The target {name!r} must have whole numbers or texts as classes, as "
            f"scikit-learn's classifiers need; it has {classes[classes % 1 != 0][0]:g}. "
            "Make texts of them, or set `task` to regression."
        )
    if len(classes) < 2:
        raise InputError(
            f"The target {name!r} must have at least two classes; every row has "
            f"{classes[0].item()!r}. Check the column, or the rows."
        )
    if len(classes) > MOST_CLASSES:
        raise InputError(
            f"The target {name!r} must have at most {MOST_CLASSES} classes, it has "
            f"{len(classes)}: that is an identifier or free text. Choose another column."
        )
    return Target(name, task, why, classes), labels


def infer(y: pd.Series) -> tuple[str, str]:
    """(task, the reason in words) of a column without missing values."""
    levels = y.nunique()
    # Numbers as categories are said to be classes, however many there are.
    said = isinstance(y.dtype, pd.CategoricalDtype)
    y = _unboxed(y)
    if said or not types.is_numeric_dtype(y.dtype) or types.is_bool_dtype(y.dtype):
        return "classification", f"{levels} labels"
    whole = bool((np.asarray(y, dtype=float) % 1 == 0).all())
    if levels < 2 or (whole and levels == 2):
        return "classification", f"{levels} values"
    if whole and levels <= FEW_CLASSES and levels < len(y) / 5:
        return "classification", f"{levels} whole numbers"
    return "regression", f"{levels} different numbers"


def as_labels(y: pd.Series | Sequence[Any]) -> NDArray[Any]:
    """Labels as bool, integer, or text of fixed width."""
    given = pd.Series(y)
    column = _unboxed(given)
    if types.is_bool_dtype(column.dtype):
        return np.asarray(column, dtype=bool)
    if types.is_numeric_dtype(column.dtype):
        values = np.asarray(column, dtype=float)
        whole = bool((values % 1 == 0).all())
        if whole or not isinstance(given.dtype, pd.CategoricalDtype):
            return as_integers(np.asarray(column)) if whole else values
    return np.asarray(given.astype(str).to_numpy(dtype=object), dtype=str)


def _unboxed(y: pd.Series) -> pd.Series:
    """Numbers and truths that are held as objects, decimals or categories as such."""
    if y.dtype != object and not isinstance(y.dtype, pd.CategoricalDtype):
        return y
    found = y.astype(object).infer_objects()
    if types.infer_dtype(found) == "decimal":  # as databases write prices
        found = found.astype(float)
    return found if types.is_numeric_dtype(found.dtype) else y


def align(y: pd.Series, target: Target) -> tuple[NDArray[Any], str]:
    """The target of a test file with labels as the training file writes them, and a
    sentence if they had to be changed.

    Raises
    ------
    InputError
        Labels that training never saw, even without spaces around; or without the full
        stop behind every label, as in UCI's adult.test.
    """
    if not target.classifies:
        return _numbers(y, target.name), ""
    labels = as_labels(y)
    if set(np.unique(labels)) <= set(target.classes):
        return labels, ""
    if labels.dtype.kind == "U":
        plain = np.char.strip(labels)
        if set(np.unique(plain)) <= set(target.classes):
            return np.asarray(plain), ""
        stopped = bool(np.char.endswith(plain, ".").all())
        plain = np.array([label[:-1] for label in plain.tolist()])
        if stopped and set(np.unique(plain)) <= set(target.classes):
            return plain, (
                "every label of the test file has a full stop behind one of the training "
                "labels: it is left out"
            )
    unknown = sorted(set(np.unique(labels).tolist()) - set(target.classes.tolist()))
    raise InputError(
        f"The test file must have labels that the training file has; it has {unknown[:5]}, "
        f"training has {target.classes[:5].tolist()}."
    )


def splitter(
    cv: int | str,
    target: Target,
    rows: int,
    seed: int,
    *,
    group: str | None = None,
    time: str | None = None,
) -> tuple[Any, str]:
    """The cross-validation and its name: one split when rows are many, folds otherwise; of
    whole groups, or of rows in the order of their time, where columns of such are named.
    """
    classifies = target.classifies
    folds = cv if isinstance(cv, int) else (3 if rows > THREE_FOLDS_ROWS else 5)
    if time is not None:
        return TimeSeriesSplit(folds), f"{folds} folds, later ones by {time!r} judge"
    if cv == "auto" and rows > ONE_SPLIT_ROWS:
        if group is not None:
            whole = GroupShuffleSplit(n_splits=1, test_size=0.2, random_state=seed)
            return whole, f"one split, a fifth of the groups of {group!r} judges"
        single = StratifiedShuffleSplit if classifies else ShuffleSplit
        return single(
            n_splits=1, test_size=0.2, random_state=seed
        ), "one split, a fifth judges"
    if group is not None:
        grouped = (
            StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
            if classifies
            else GroupKFold(folds)
        )
        return grouped, f"{folds} folds of whole groups of {group!r}"
    many = StratifiedKFold if classifies else KFold
    return many(folds, shuffle=True, random_state=seed), f"{folds} folds"


def check_counts(labels: NDArray[Any], target: Target, least: int) -> None:
    """Every class must reach every part of the data.

    Raises
    ------
    InputError
        A class with fewer than ``least`` rows.
    """
    if not target.classifies:
        return
    values, counts = np.unique(labels, return_counts=True)
    rare = {str(v): int(n) for v, n in zip(values, counts, strict=True) if n < least}
    if rare:
        shown = ", ".join(f"{v!r}: {n}" for v, n in list(rare.items())[:5])
        raise InputError(
            f"Every class of {target.name!r} must have at least {least} rows, so that each "
            f"part of the data holds one; these have fewer: {shown}. Set `rare_classes` to "
            "drop or merge (`--rare-classes`), or ask for fewer folds."
        )


def _numbers(y: pd.Series, name: str) -> NDArray[Any]:
    try:
        values = np.asarray(pd.to_numeric(y), dtype=float)
    except (ValueError, TypeError):
        raise InputError(
            f"A regression needs numbers; the target {name!r} has texts such as "
            f'{str(y.iloc[0])!r}. Use `task = "classification"`.'
        ) from None
    if not np.isfinite(values).all():
        raise InputError(f"The target {name!r} must be finite; it has infinite values.")
    return values
