"""From what a user gives to a `Problem`: every check that needs no training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import assert_all_finite, check_array, column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _num_samples

from mlopt.cluster import Executor
from mlopt.errors import InputError
from mlopt.rows import Rows
from mlopt.tuning.crews.linear_task import ADAPTERS
from mlopt.tuning.crews.problem import Problem
from mlopt.tuning.crews.scoring import metrics_of
from mlopt.tuning.crews.splits import make_splits


def problem_of(
    search: Any,
    executor: Executor,
    X: Any,
    y: Any,
    groups: Any,
    sample_weight: Any,
    fit_params: Mapping[str, Any],
) -> Problem:
    """Check data and settings of a `ModelSearchCV` and cut the splits.

    Raises
    ------
    InputError
        X and y of different length, one class only, NaN in y, NaN in an X that nobody
        imputes, a split without rows or without a class.
    """
    estimators = [estimator for estimator, _ in families_of(search).values()]
    classifier = _one_kind(estimators)
    X = _features(X, executor, estimators)
    n = X.n if isinstance(X, Rows) else _num_samples(X)
    labels = _labels(y, n, classifier)
    if not isinstance(X, Rows):
        _check_finite(X, estimators)
    return Problem(
        X=X,
        y=labels,
        splits=make_splits(search.cv, labels, _local(groups), classifier=classifier),
        metrics=metrics_of(search.scoring, estimators[0], search.refit),
        classifier=classifier,
        executor=executor,
        sample_weight=_weights(sample_weight, n),
        fit_params={name: _local(value) for name, value in fit_params.items()},
        seed=search.random_state or 0,
        supervised=y is not None,
        weighted_scores=search.weighted_scores,
        train_scores=search.return_train_score,
    )


def families_of(search: Any) -> dict[str, tuple[Any, Any]]:
    """{name: (estimator, space)} of a search over one estimator or several families."""
    if isinstance(search.estimator, Mapping):
        if search.space is not None:
            raise InputError(
                "`space` must be None when `estimator` names several families: each family "
                "brings its own, {'name': (estimator, space)}."
            )
        if not search.estimator:
            raise InputError("`estimator` must name at least one family, it is empty.")
        return {name: _pair(name, value) for name, value in search.estimator.items()}
    if not hasattr(search.estimator, "fit"):
        raise InputError(
            f"`estimator` must have a method fit, got {search.estimator!r}. For several "
            "families give {'name': (estimator, space)}."
        )
    return {"": (search.estimator, search.space or {})}


def _pair(name: str, value: Any) -> tuple[Any, Any]:
    if not (isinstance(value, tuple) and len(value) == 2 and hasattr(value[0], "fit")):
        raise InputError(
            f"Family {name!r} must be a pair (estimator, space) whose estimator has a "
            f"method fit; got {value!r}."
        )
    return value


def _one_kind(estimators: list[Any]) -> bool:
    kinds = {is_classifier(estimator) for estimator in estimators}
    if len(kinds) > 1:
        raise InputError("All families must be classifiers, or none of them; got both.")
    return bool(kinds.pop())


def _features(X: Any, executor: Executor, estimators: list[Any]) -> Any:
    """X as scikit-learn can index it; dask data stay where they are when all can batch."""
    plain = not any(isinstance(estimator, Pipeline) for estimator in estimators)
    if _is_dask(X):
        batched = plain and all(type(estimator) in ADAPTERS for estimator in estimators)
        return Rows.of(X, executor=executor) if batched else X.compute()
    if type(X).__module__.startswith("pyarrow"):
        X = X.to_pandas()
    if sparse.issparse(X):
        X = X.tocsr()
    elif not hasattr(X, "shape"):
        X = np.asarray(X)
    if X.ndim != 2 or 0 in X.shape or (plain and isinstance(X, np.ndarray)):
        # Numbers of a kind, 2-D, and not empty: in scikit-learn's own words.
        return check_array(X, accept_sparse=True, ensure_all_finite=False)
    return X


def _is_dask(value: Any) -> bool:
    return type(value).__module__.startswith("dask")


def _local(value: Any) -> Any:
    return value.compute() if _is_dask(value) else value


def _labels(y: Any, n: int, classifier: bool) -> NDArray[Any]:
    if y is None:
        if classifier:
            raise InputError(
                "A classifier requires y to be passed, but the target y is None."
            )
        return np.zeros(n)
    labels: NDArray[Any] = np.asarray(_local(y))
    if len(labels) != n:
        raise InputError(
            "X and y must have as many rows as each other (found input variables with "
            f"inconsistent numbers of samples): X has {n}, y has {len(labels)}."
        )
    if labels.ndim == 1 or labels.shape[1] == 1:
        labels = np.asarray(column_or_1d(labels, warn=True))
    if labels.dtype.kind in "fc":
        assert_all_finite(labels, input_name="y")
    if classifier:
        _check_classes(labels)
    return labels


def _check_classes(y: NDArray[Any]) -> None:
    check_classification_targets(y)
    if y.ndim == 1 and len(classes := np.unique(y)) < 2:
        raise InputError(
            "y must hold at least two classes, got one class only: "
            f"{classes[0] if len(classes) else 'no rows'!r}. Check the target column."
        )


def _weights(sample_weight: Any, n: int) -> NDArray[Any] | None:
    if sample_weight is None:
        return None
    weight: NDArray[Any] = _check_sample_weight(
        _local(sample_weight), np.empty((n, 0)), dtype=np.float64, ensure_non_negative=True
    )
    return weight


def _check_finite(X: Any, estimators: list[Any]) -> None:
    """NaN is for an imputer or a tree; said here once, not by every trial."""
    if any(isinstance(estimator, Pipeline) for estimator in estimators):
        return
    allow_nan = any(get_tags(estimator).input_tags.allow_nan for estimator in estimators)
    values = X.data if sparse.issparse(X) else X
    if isinstance(values, np.ndarray) and values.dtype.kind == "f":
        assert_all_finite(values, allow_nan=allow_nan, input_name="X")
