"""What is searched on: rows, labels, splits, metrics, and where the work runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from mlopt.cluster import Executor, Handle
from mlopt.rows import Rows
from mlopt.tuning.crews.scoring import Metrics
from mlopt.tuning.crews.splits import Split, row_sets


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything about a search that its trials share.

    ``X`` is anything that scikit-learn can index by rows, or `Rows` when the data live on
    a cluster; ``y`` is ``(n,)`` or ``(n, outputs)``, here in the driver.
    """

    X: Any
    y: NDArray[Any]
    splits: tuple[Split, ...]
    metrics: Metrics
    classifier: bool
    executor: Executor
    sample_weight: NDArray[Any] | None = None
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    supervised: bool = True
    weighted_scores: bool = False
    train_scores: bool = False

    @cached_property
    def classes(self) -> NDArray[Any]:
        """The labels in order; empty for regression."""
        return np.unique(self.y) if self.classifier else np.empty(0)

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """The labels as 0, 1, ..."""
        return np.searchsorted(self.classes, self.y)

    @property
    def outputs(self) -> int:
        """Columns of one linear model: one, or one for each of three or more classes."""
        return len(self.classes) if len(self.classes) > 2 else 1

    @cached_property
    def features(self) -> Handle:
        """A handle on X, sent once."""
        return self.executor.put(self.X.collect() if isinstance(self.X, Rows) else self.X)

    @cached_property
    def labels(self) -> Handle:
        """A handle on what goes with X: (y, sample_weight, fit_params, rows), sent once."""
        y = self.y if self.supervised else None
        return self.executor.put(
            (y, self.sample_weight, dict(self.fit_params), len(self.y))
        )

    def targets(self, dtype: Any) -> NDArray[Any]:
        """What a linear model is to predict, (n, 1): -1 and 1, class codes, or y."""
        if not self.classifier:
            return self.y.reshape(len(self.y), -1).astype(dtype)
        if self.outputs == 1:
            return (2.0 * self.codes - 1.0).astype(dtype)[:, None]
        return self.codes.astype(dtype)[:, None]

    def row_weights(
        self, splits: tuple[int, ...], class_weight: Any, dtype: Any
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Training and scoring weights, (n, splits), for some of the splits."""
        chosen = [self.splits[s] for s in splits]
        weights, judged = row_sets(chosen, len(self.y), self.sample_weight, dtype)
        if class_weight is not None:
            for column, split in enumerate(chosen):
                weights[:, column] *= self._class_factor(class_weight, split)
        if self.weighted_scores and self.sample_weight is not None:
            judged *= self.sample_weight[:, None].astype(dtype)
        return weights, judged

    def _class_factor(self, class_weight: Any, split: Split) -> NDArray[Any]:
        factor = compute_class_weight(
            class_weight, classes=self.classes, y=self.y[split.train]
        )
        return np.asarray(factor)[self.codes]


@dataclass(frozen=True, eq=False)
class View:
    """The rows as a final estimator sees them, for the splits that see the same.

    Row ``i`` of the view is row ``order[i]`` of the data (``order`` None: the same row).
    """

    rows: Rows
    splits: tuple[int, ...]
    order: NDArray[np.int64] | None = None

    def arrange(self, values: NDArray[Any]) -> NDArray[Any]:
        """Per-row values of the data, in the order of the view."""
        return values if self.order is None else values[self.order]


def whole_view(problem: Problem) -> View:
    """Without preprocessing, all splits see one and the same matrix."""
    rows = problem.X if isinstance(problem.X, Rows) else Rows.of(
        problem.X, executor=problem.executor
    )  # fmt: skip
    return View(rows, tuple(range(len(problem.splits))))
