"""Tables of the report, and the table of trials that is written beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from types import NoneType
from typing import Any

import pandas as pd

from mlopt.passes import passes_text, plain
from mlopt.plan import format_seconds
from mlopt.report.history import (
    COMPLETE,
    FAIL,
    PRUNED,
    WAITING,
    TrialRow,
    best_first,
    families_in,
    format_score,
    labels,
    short,
    shown,
)


def frame_of(rows: Sequence[TrialRow]) -> pd.DataFrame:
    """A row a trial: number, family, state, score, ..., ``param_<name>``.

    Whole numbers stay whole where others lack the parameter.
    """
    names = sorted({name for row in rows for name in row.params})
    records = [
        {
            "number": row.number,
            "family": row.family,
            "state": row.state,
            "score": row.score,
            "passes": plain(row.passes),
            "seconds": row.seconds,
            "started": row.started,
            "ended": row.ended,
            "reason": row.reason,
        }
        | {f"param_{name}": row.params.get(name) for name in names}
        for row in rows
    ]
    frame = pd.DataFrame(records)
    for name in names:
        kinds = {type(row.params[name]) for row in rows if name in row.params} - {NoneType}
        if kinds == {int}:
            whole = [row.params.get(name) for row in rows]
            frame[f"param_{name}"] = pd.array(whole, "Int64")
    return frame


def trials_table(rows: Sequence[TrialRow], most: int = 20) -> str:
    """The best trials with their parameters."""
    body = "".join(
        _trial(place, row) for place, row in enumerate(best_first(rows)[:most], 1)
    )
    head = (
        "<tr><th class=n>rank<th class=n>trial<th>family<th class=n>score<th>state"
        "<th class=n>passes<th class=n>time<th>parameters</tr>"
    )
    return _wide(head, body)


def _trial(place: int, row: TrialRow) -> str:
    params = ", ".join(
        f"{short(name)} {shown(value)}" for name, value in row.params.items()
    )
    state = {COMPLETE: "trained", PRUNED: "pruned"}.get(row.state, "unfinished")
    return (
        f"<tr><td class=n>{place}<td class=n>{row.number}<td>{escape(row.family)}"
        f"<td class='n strong'>{row.score:.5g}<td>{state}"
        f"<td class=n>{passes_text(row.passes)}"
        f"<td class=n>{format_seconds(row.seconds)}<td class=params>{escape(params)}</tr>"
    )


def families_table(rows: Sequence[TrialRow]) -> str:
    """A row a family: best score, trials and how they ended, time."""
    body = "".join(
        _family(number, family, [r for r in rows if r.family == family])
        for number, family in enumerate(families_in(rows))
    )
    head = (
        "<tr><th>family<th class=n>best score<th class=n>trials<th class=n>trained"
        "<th class=n>pruned<th class=n>failed<th class=n>unfinished"
        "<th class=n>training time</tr>"
    )
    return _wide(head, body)


def _family(number: int, family: str, own: Sequence[TrialRow]) -> str:
    best = best_first(own)
    states = [row.state for row in own]
    ends = COMPLETE, PRUNED, FAIL, WAITING
    counts = "".join(f"<td class=n>{states.count(s)}" for s in ends)
    score = f"{best[0].score:.5g}" if best else "–"
    return (
        f"<tr><td><i class='chip f{number % 8}'></i>{escape(family) or 'model'}"
        f"<td class='n strong'>{score}<td class=n>{len(own)}{counts}"
        f"<td class=n>{format_seconds(sum(row.seconds for row in own))}</tr>"
    )


def params_table(params: Mapping[str, Any]) -> str:
    """A row a parameter."""
    called = labels(params)
    return _pairs({called[name]: shown(value) for name, value in params.items()})


def scores_table(scores: Mapping[str, float]) -> str:
    """A row a metric; losses, which scorers negate, as they are."""
    rows = {
        name.removeprefix("neg_").replace("_", " "): format_score(
            -value if name.startswith("neg_") else value
        )
        for name, value in scores.items()
    }
    return _pairs(rows)


def failures_table(rows: Sequence[TrialRow], most: int = 10) -> str:
    """Trials that failed, with the reason; nothing when none did."""
    failed = [row for row in rows if row.state == FAIL]
    if not failed:
        return ""
    body = "".join(
        f"<tr><td class=n>{row.number}<td>{escape(row.label)}<td>{escape(row.reason)}</tr>"
        for row in failed[:most]
    )
    head = "<tr><th class=n>trial<th>configuration<th>reason</tr>"
    more = f"<p class=note>{len(failed) - most} more failed.</p>" * (len(failed) > most)
    return f"<h3>Trials that failed</h3>{_wide(head, body)}{more}"


def _wide(head: str, body: str) -> str:
    return (
        f"<div class=wide><table><thead>{head}</thead><tbody>{body}</tbody></table></div>"
    )


def _pairs(values: Mapping[str, str]) -> str:
    body = "".join(
        f"<tr><td>{escape(name)}<td class='n strong'>{escape(value)}</tr>"
        for name, value in values.items()
    )
    return f"<table><tbody>{body}</tbody></table>"
