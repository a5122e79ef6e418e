"""Which parameters matter, and how the score depends on them."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from mlopt.hearing import unheard
from mlopt.report.charts import Colours, colours_of, mark, score_scale
from mlopt.report.history import FAIL, PRUNED, TrialRow, best_first, labels, shown
from mlopt.report.svg import chart, element, label, line, scale_over, x_axis, y_axis

ENOUGH = 8
"""Trials of a family below which importance would be made of noise."""

MOST = 128
"""Trials that importance is learnt from, in 2 s on one core. The time grows faster than
they do, to 72 s of 1000, and the outputs of a sweep wait for it."""

A_FEW = 5
"""Trials of a family below which there is nothing to look at."""


def main_family(rows: Sequence[TrialRow], best: str) -> str | None:
    """``best``, the family of the best trial, if it was tried often enough to look at."""
    tried = sum(row.family == best for row in best_first(rows))
    return best if tried >= A_FEW else None


def importance(study: Any, rows: Sequence[TrialRow], family: str) -> dict[str, float]:
    """Share of the score's variance that each parameter of a family explains (fANOVA).

    Empty when there are too few trials to say, or when they are all alike; of more than
    `MOST` those at even distances count, from the first to the last.

    Parameters
    ----------
    study : optuna.Study
        Its distributions are used; its trials may be of several families.
    rows : sequence of TrialRow
    family : str
    """
    import optuna

    from mlopt.tuning.samplers.proposer import quiet

    numbers = {r.number for r in rows if r.family == family and math.isfinite(r.score)}
    scores = {r.number: r.score for r in rows}
    with quiet():
        told = [t for t in study.get_trials(deepcopy=False) if t.number in numbers]
        trials = [_complete(optuna, t, scores[t.number]) for t in _spread(told)]
        return _shares(optuna, trials)


def _spread(trials: Sequence[Any]) -> Sequence[Any]:
    """All of few, else `MOST` at even distances."""
    if len(trials) <= MOST:
        return trials
    return [trials[k * (len(trials) - 1) // (MOST - 1)] for k in range(MOST)]


def _shares(optuna: Any, trials: Sequence[Any]) -> dict[str, float]:
    if len(trials) < ENOUGH:
        return {}
    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.RandomSampler(0)
    )
    study.add_trials(trials)
    with unheard():
        try:
            evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
            found = optuna.importance.get_param_importances(study, evaluator=evaluator)
        except (ValueError, RuntimeError):  # all scores equal, or one value a parameter
            return {}
    plain = {name: name.rpartition(":")[2] for trial in trials for name in trial.params}
    called = labels(dict.fromkeys(plain.values()))
    shares = {called[plain[name]]: float(v) for name, v in found.items()}
    return {name: v for name, v in shares.items() if math.isfinite(v)}


def _complete(optuna: Any, trial: Any, score: float) -> Any:
    kept = {n: d for n, d in trial.distributions.items() if n != "family"}
    return optuna.trial.create_trial(
        params={name: trial.params[name] for name in kept}, distributions=kept, value=score
    )


def importance_chart(shares: Mapping[str, float]) -> str:
    """A bar a parameter, the largest first."""
    ranked = sorted(shares.items(), key=lambda item: -item[1])[:10]
    left, right, pitch = 210, 900, 30
    parts = []
    for k, (name, share) in enumerate(ranked):
        y = 8 + pitch * k
        width = max(2.0, (right - left) * share)
        parts.append(label(left - 12, y + 15, name, class_="name", anchor="end"))
        parts.append(
            element("rect", x=left, y=y + 3, width=width, height=16, rx=3, class_="bar")
        )
        parts.append(label(left + width + 10, y + 16, f"{share:.0%}", anchor="start"))
    return chart(1000, 16 + pitch * len(ranked), *parts, name="Importance of parameters")


def slices(
    rows: Sequence[TrialRow], family: str, shares: Mapping[str, float], most: int = 6
) -> list[tuple[str, str]]:
    """(parameter, picture of score against it) for the main parameters of a family."""
    own = [
        r for r in rows if r.family == family and math.isfinite(r.score) and r.state != FAIL
    ]
    names = list(dict.fromkeys(name for r in own for name in r.params))
    called = labels(names)
    names.sort(key=lambda name: -shares.get(called[name], 0.0))
    varied = [n for n in names if len({str(r.params[n]) for r in own if n in r.params}) > 1]
    colours = colours_of(rows)
    return [
        (called[n], _slice([r for r in own if n in r.params], n, colours))
        for n in varied[:most]
    ]


def _slice(own: Sequence[TrialRow], name: str, colours: Colours) -> str:
    width, height, left, bottom, top = 480, 270, 58, 222, 10
    values = [r.params[name] for r in own]
    y = score_scale(own, bottom, top)
    if all(map(_has_a_place, values)):
        low, high = min(values), max(values)
        log = low > 0 and 30 * low < high
        x = scale_over(map(float, values), left, width - 12, log=log)
        places = [x(float(v)) for v in values]
        axis = x_axis(x, bottom, top, name.rpartition("__")[2], about=5)
    else:
        places, axis = _by_name(values, left, width - 12, bottom)
    # The winners are drawn last, on top.
    order = sorted(range(len(own)), key=lambda k: own[k].state != PRUNED)
    dots = [mark(own[k], places[k], y(own[k].score), colours, 4.0) for k in order]
    return chart(
        width, height, y_axis(y, left, width - 12), axis, *dots, name=f"Score by {name}"
    )


def _has_a_place(value: Any) -> bool:
    """Whether a value is a number on an axis: no switch, no infinity, no NaN."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) <= sys.float_info.max


def _by_name(
    values: Sequence[Any], left: float, right: float, bottom: float
) -> tuple[list[float], str]:
    names = list(dict.fromkeys(str(v) for v in values))
    pitch = (right - left) / len(names)
    centre = {name: left + pitch * (k + 0.5) for k, name in enumerate(names)}
    # Dots of one value stand side by side, so that none hides another.
    shift = {k: pitch * 0.5 * ((k * 0.618) % 1 - 0.5) for k in range(len(values))}
    places = [centre[str(v)] + shift[k] for k, v in enumerate(values)]
    marks = [label(x, bottom + 17, shown(n)[:16]) for n, x in centre.items()]
    return places, line(left, bottom, right, bottom, "grid") + "".join(marks)
