"""How a search went, as pictures: scores over time, and how far each trial was trained."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from mlopt.passes import passes_text
from mlopt.plan import format_seconds
from mlopt.report.history import (
    COMPLETE,
    FAIL,
    PRUNED,
    TrialRow,
    best_first,
    best_so_far,
    families_in,
    shown,
)
from mlopt.report.svg import (
    Scale,
    chart,
    element,
    label,
    line,
    scale_over,
    steps,
    title,
    x_axis,
    y_axis,
)

WIDTH = 1000
MOST_LANES = 240

Colours = Mapping[str, int]
"""Family name to the number of its colour."""


def colours_of(rows: Sequence[TrialRow]) -> Colours:
    """The families in order of appearance."""
    return {family: number for number, family in enumerate(families_in(rows))}


def describe(row: TrialRow) -> str:
    """What a trial is and what became of it, for the pointer."""
    ends = {COMPLETE: "fully trained", PRUNED: "pruned", FAIL: "failed"}
    end = ends.get(row.state, "not finished")
    score = f"score {shown(row.score)}, " if math.isfinite(row.score) else ""
    took = format_seconds(row.seconds)
    text = f"{row.label}\n{score}{end} after {passes_text(row.passes)} passes, {took}"
    return f"{text}\n{row.reason}" if row.reason else text


def mark(row: TrialRow, x: float, y: float, colours: Colours, size: float = 4.5) -> str:
    """A trial as a dot: full when fully trained, pale when not, hollow when pruned."""
    kind = {COMPLETE: "dot", PRUNED: "dot hollow"}.get(row.state, "dot pale")
    colour = f"f{colours[row.family] % 8}"
    return element(
        "circle", title(describe(row)), cx=x, cy=y, r=size, class_=f"{kind} {colour}"
    )


def score_scale(rows: Sequence[TrialRow], start: float, stop: float) -> Scale:
    """A scale that tells good trials apart; far worse ones sit on the edge."""
    scores = np.array([r.score for r in rows if math.isfinite(r.score) and r.state != FAIL])
    if not len(scores):
        return scale_over([], start, stop)
    best, median = scores.max(), np.median(scores)
    floor = max(scores.min(), best - 2.5 * max(best - median, 1e-3 * abs(best)))
    return scale_over([floor, best], start, stop, pad=0.06)


def history_chart(rows: Sequence[TrialRow], scoring: str) -> str:
    """Every trial's score when it ended, and the best so far."""
    height, left, bottom, top = 380, 64, 330, 14
    colours = colours_of(rows)
    scored = [r for r in rows if r.looks and math.isfinite(r.score) and r.state != FAIL]
    ends = {r.number: _end(r) for r in scored}
    x = Scale(0.0, max([*ends.values(), 1e-3]) * 1.02, left, WIDTH - 16)
    y = score_scale(scored, bottom, top)
    rise = [(x(t), y(score)) for t, score in best_so_far(rows)]
    if rise:
        rise.append((float(WIDTH - 16), rise[-1][1]))
    marks = [mark(r, x(ends[r.number]), y(r.score), colours) for r in reversed(scored)]
    return chart(
        WIDTH,
        height,
        y_axis(y, left, WIDTH - 16),
        x_axis(x, bottom, top, "seconds into the search"),
        steps(rise, "best"),
        *marks,
        label(left, top - 2, scoring, class_="caption", anchor="start"),
        name=f"Score of each trial over time; the best reaches {_best(rows)}",
    )


def lanes_chart(rows: Sequence[TrialRow]) -> str:
    """A lane a trial: how many passes it was given, and how it ended."""
    rows = [r for r in rows if r.looks or r.state == FAIL]
    hidden, rows = len(rows) - MOST_LANES, rows[:MOST_LANES]
    colours = colours_of(rows)
    pitch = max(5.0, min(18.0, 640 / max(1, len(rows))))
    left, top = 64, 10
    bottom = top + pitch * max(1, len(rows))
    x = Scale(0.0, float(max([r.passes for r in rows] or [1])), left, WIDTH - 24)
    best = {r.number for r in best_first(rows)[:1]}
    lanes = [
        _lane(row, top + pitch * (k + 0.5), pitch, x, colours, best=row.number in best)
        for k, row in enumerate(rows)
    ]
    every = max(1, math.ceil(24 / pitch))
    numbers = [
        label(left - 10, top + pitch * (k + 0.5) + 4, f"#{row.number}", anchor="end")
        for k, row in enumerate(rows)
        if k % every == 0
    ]
    caption = "passes over the rows" + (f" ({hidden} more trials not shown)" * (hidden > 0))
    return chart(
        WIDTH,
        round(bottom + 46),
        x_axis(x, bottom, top, caption),
        *numbers,
        *lanes,
        name="Passes that each trial was trained for",
    )


def _lane(
    row: TrialRow, y: float, pitch: float, x: Scale, colours: Colours, *, best: bool
) -> str:
    colour = f"f{colours[row.family] % 8}"
    thick = min(8.0, pitch * 0.55)
    bar = element(
        "rect",
        title(describe(row)),
        x=x(0),
        y=y - thick / 2,
        width=max(1.0, x(float(row.passes)) - x(0)),
        height=thick,
        rx=thick / 2,
        class_=f"lane {colour}" + (" strong" if best else ""),
    )
    looks = [
        line(at, y - thick / 2, at, y + thick / 2, "look")
        for at in (x(float(look.passes)) for look in row.looks[:-1])
    ]
    return (
        bar
        + "".join(looks)
        + _ending(row, x(float(row.passes)), y, min(4.5, pitch * 0.36), colours)
    )


def _ending(row: TrialRow, x: float, y: float, size: float, colours: Colours) -> str:
    if row.state != FAIL:
        return mark(row, x, y, colours, size)
    cross = (
        f"M{x - size:.1f},{y - size:.1f}l{2 * size:.1f},{2 * size:.1f}m0,{-2 * size:.1f}"
    )
    stroke = f"{cross}l{-2 * size:.1f},{2 * size:.1f}"
    return element("path", title(describe(row)), d=stroke, class_="cross")


def _end(row: TrialRow) -> float:
    # Verdicts on a whole rung come at once; the look that led there is more telling.
    return row.looks[-1].elapsed


def _best(rows: Sequence[TrialRow]) -> str:
    best = best_first(rows)
    return shown(best[0].score) if best else "nothing"
