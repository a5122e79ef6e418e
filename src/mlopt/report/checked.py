"""What the final model does on rows it never saw, in numbers and pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.hearing import unheard
from mlopt.report.history import shown
from mlopt.report.svg import (
    Scale,
    chart,
    element,
    label,
    line,
    scale_over,
    title,
    x_axis,
    y_axis,
)

MOST_CLASSES = 12
MOST_DOTS = 1500
WIDTH, BOTTOM = 360, 300


@dataclass(frozen=True)
class Checked:
    """Results on test rows.

    Parameters
    ----------
    rows : int
    source : str
        Where the rows come from: "a fifth of the rows, set aside", or a file.
    scores : mapping of str to float
        The scoring of the search first.
    confusion : mapping of (true, predicted) label to int
        Of a classification.
    classes : tuple of str
    roc : sequence of (false positive rate, true positive rate)
        Of a binary classification with scores.
    pairs : sequence of (true, predicted)
        Of a regression, a sample.
    without : mapping of str to str
        Why a metric has no value on these rows, as ROC AUC where all are of one class.
    """

    rows: int
    source: str
    scores: Mapping[str, float]
    classes: tuple[str, ...] = ()
    confusion: Mapping[tuple[str, str], int] = field(default_factory=dict)
    roc: Sequence[tuple[float, float]] = ()
    pairs: Sequence[tuple[float, float]] = ()
    without: Mapping[str, str] = field(default_factory=dict)

    def score(self, scoring: str) -> str:
        """What a metric says, or why it says nothing."""
        if scoring in self.scores:
            return f"{self.scores[scoring]:.5g}"
        return f"none, {self.without[scoring]}"


def check_model(
    model: Any, X: Any, y: NDArray[Any], scorers: Mapping[str, Any], source: str
) -> Checked:
    """Score a fitted ``model`` by every scorer, and look where it errs."""
    from sklearn.base import is_classifier

    scores, without = _scores(model, X, y, scorers)
    predicted = np.asarray(model.predict(X))
    if not is_classifier(model):
        every = max(1, len(y) // MOST_DOTS)
        both = np.column_stack([y, predicted])[::every].tolist()
        pairs = [(a, b) for a, b in both]
        return Checked(len(y), source, scores, pairs=pairs, without=without)
    classes = tuple(str(c) for c in model.classes_)
    confusion, roc = _confusion(y, predicted), _roc(model, X, y)
    return Checked(len(y), source, scores, classes, confusion, roc, without=without)


def _scores(
    model: Any, X: Any, y: NDArray[Any], scorers: Mapping[str, Any]
) -> tuple[dict[str, float], dict[str, str]]:
    """What each metric says, and why the others say nothing."""
    from sklearn.exceptions import UndefinedMetricWarning

    scores, without = {}, {}
    with unheard(UndefinedMetricWarning):
        for name, scorer in scorers.items():
            try:
                scores[name] = float(scorer(model, X, y))
            except ValueError as error:
                # The search has done its work: rows that lack a class do not undo it.
                without[name] = str(error).rstrip(".")
    undefined = [name for name, value in scores.items() if math.isnan(value)]
    without |= dict.fromkeys(undefined, "it is not defined for such rows")
    return {n: value for n, value in scores.items() if n not in undefined}, without


def _confusion(y: NDArray[Any], predicted: NDArray[Any]) -> dict[tuple[str, str], int]:
    both = np.column_stack([y.astype(str), predicted.astype(str)])
    cells, counts = np.unique(both, axis=0, return_counts=True)
    return {(str(a), str(b)): int(n) for (a, b), n in zip(cells, counts, strict=True)}


def _roc(model: Any, X: Any, y: NDArray[Any]) -> list[tuple[float, float]]:
    if len(model.classes_) != 2 or len(np.unique(y)) != 2:
        return []
    from sklearn.metrics import roc_curve
    from sklearn.utils._response import _get_response_values_binary

    margins, _ = _get_response_values_binary(
        model, X, ("predict_proba", "decision_function"), pos_label=model.classes_[1]
    )
    false, true, _ = roc_curve(y, margins, pos_label=model.classes_[1])
    every = max(1, len(false) // 300)
    points = [
        *zip(false[::every].tolist(), true[::every].tolist(), strict=True),
        (1.0, 1.0),
    ]
    return [(float(a), float(b)) for a, b in points]


def checked_charts(checked: Checked) -> list[tuple[str, str]]:
    """(caption, picture) of what there is to see."""
    charts = []
    if checked.confusion and len(checked.classes) <= MOST_CLASSES:
        charts.append(("Confusion, share of each true class", confusion_chart(checked)))
    if checked.roc:
        charts.append((f"ROC, positive class {checked.classes[1]}", roc_chart(checked.roc)))
    if checked.pairs:
        charts.append(("Predicted against true", pairs_chart(checked.pairs)))
    return charts


def confusion_chart(checked: Checked) -> str:
    """True classes down, predicted across; the shade is the share of the true class."""
    k, left, top, size = len(checked.classes), 90, 40, 260
    cell = size / k
    parts = [label(left + size / 2, 14, "predicted", class_="caption")]
    for i, true in enumerate(checked.classes):
        total = sum(checked.confusion.get((true, other), 0) for other in checked.classes)
        parts.append(
            label(
                left - 10,
                top + cell * (i + 0.5) + 4,
                true[:16],
                anchor="end",
                class_="name",
            )
        )
        parts.append(label(left + cell * (i + 0.5), top - 8, true[: max(3, 24 // k)]))
        for j, other in enumerate(checked.classes):
            count = checked.confusion.get((true, other), 0)
            place = (left + cell * j, top + cell * i)
            parts.append(_cell(place, cell, count, total, f"{true} as {other}"))
    return chart(WIDTH, top + size + 10, *parts, name="Confusion matrix")


def _cell(
    place: tuple[float, float], size: float, count: int, total: int, text: str
) -> str:
    share = count / total if total else 0.0
    x, y = place
    shade = element(
        "rect", title(f"{text}: {count:,} rows, {share:.1%}"), x=x + 1, y=y + 1,
        width=size - 2, height=size - 2, rx=3, class_="cell",
        style=f"fill-opacity:{0.04 + 0.9 * share:.3f}",
    )  # fmt: skip
    side = "cell-text light" if share > 0.55 else "cell-text"
    percent = label(x + size / 2, y + size / 2 + 4, f"{share:.0%}", class_=side)
    if size < 60:
        return shade + percent
    return (
        shade + percent + label(x + size / 2, y + size / 2 + 22, f"{count:,}", class_=side)
    )


def roc_chart(points: Sequence[tuple[float, float]]) -> str:
    """True positive rate against false positive rate."""
    x, y = Scale(0, 1, 40, 350), Scale(0, 1, BOTTOM, 12)
    path = "M" + "L".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points)
    return chart(
        WIDTH,
        BOTTOM + 42,
        y_axis(y, 40, 350),
        x_axis(x, BOTTOM, 12, "false positive rate", about=5),
        line(x(0), y(0), x(1), y(1), "diagonal"),
        element("path", d=path, class_="curve"),
        name="ROC curve",
    )


def pairs_chart(pairs: Sequence[tuple[float, float]]) -> str:
    """A dot a row; on the diagonal a prediction is right."""
    truth = [a for a, _ in pairs]
    x, y = scale_over(truth, 62, 350), scale_over(truth, BOTTOM, 12)
    dots = [
        element(
            "circle",
            title(f"true {shown(a)}, predicted {shown(b)}"),
            cx=x(a),
            cy=y(b),
            r=2.2,
            class_="dot faint f0",
        )
        for a, b in pairs
    ]
    return chart(
        WIDTH,
        BOTTOM + 42,
        y_axis(y, 62, 350),
        x_axis(x, BOTTOM, 12, "true", about=4),
        line(x(x.low), y(x.low), x(x.high), y(x.high), "diagonal"),
        *dots,
        name="Predicted against true values",
    )
