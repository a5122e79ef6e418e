"""The report of a sweep: one self-contained page, readable by day and by night.

Pictures are inline SVG, styled by the page, so that nothing is loaded and a print is sharp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from mlopt.plan import Plan
from mlopt.report.charts import colours_of, history_chart, lanes_chart
from mlopt.report.checked import Checked, checked_charts
from mlopt.report.costs import compared, compared_chart, compared_table
from mlopt.report.history import TrialRow
from mlopt.report.influence import MOST, importance_chart, slices
from mlopt.report.style import STYLE
from mlopt.report.tables import (
    failures_table,
    families_table,
    params_table,
    scores_table,
    trials_table,
)


@dataclass(frozen=True)
class Findings:
    """Everything the report shows.

    Parameters
    ----------
    title : str
    summary : str
        A sentence below the title.
    facts : sequence of (label, value, note)
        The headline numbers.
    trials : sequence of TrialRow
    scoring : str
    best_params : mapping of str to value
    plan : Plan
    importance : mapping of str to float
        Of the parameters of ``family``; empty when there were too few trials.
    family : str or None
    checked : Checked or None
        The final model on test rows; None when the sweep did not get there.
    columns : sequence of str
        What each column was taken for.
    footer : sequence of str
    usage : sequence of str
        A line for the shell and one of Python that predict with the model in FOLDER.
    """

    title: str
    summary: str
    facts: Sequence[tuple[str, str, str]]
    trials: Sequence[TrialRow]
    scoring: str
    best_params: Mapping[str, Any]
    plan: Plan
    importance: Mapping[str, float] = field(default_factory=dict)
    family: str | None = None
    checked: Checked | None = None
    columns: Sequence[str] = ()
    footer: Sequence[str] = ()
    usage: Sequence[str] = ()


def render(findings: Findings) -> str:
    """The page as HTML."""
    sections = [
        _header(findings),
        _search(findings),
        _model(findings),
        _predict(findings),
        _lanes(findings),
        _parameters(findings),
        _plan(findings),
        _trials(findings),
        _data(findings),
    ]
    name = escape(findings.title)
    return (
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
        '<meta name=viewport content="width=device-width, initial-scale=1">\n'
        f"<title>{name}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(section for section in sections if section)
        + "\n</main>\n</body>\n</html>\n"
    )


def _header(findings: Findings) -> str:
    tiles = "".join(
        f"<div class=tile><dt>{escape(name)}</dt>"
        f"<dd{' class=long' * (len(value) > 9)}>{escape(value)}</dd>"
        f"<p>{escape(note)}</p></div>"
        for name, value, note in findings.facts
    )
    return (
        f"<header><p class=kicker>mlopt sweep</p><h1>{escape(findings.title)}</h1>"
        f"<p class=lead>{escape(findings.summary)}</p></header><dl class=tiles>{tiles}</dl>"
    )


def _search(findings: Findings) -> str:
    note = (
        "A dot is a trial at its last score; hollow ones were pruned, pale ones ran out of "
        "time. The line is the best so far."
    )
    return _section(
        "How the search went",
        note,
        _legend(findings.trials),
        _figure(history_chart(findings.trials, findings.scoring)),
        families_table(findings.trials),
    )


def _model(findings: Findings) -> str:
    best = f"<h3>Best configuration</h3>{params_table(findings.best_params)}"
    if findings.checked is None:
        note = "There was no time for a final fit and a test."
        return _section("The model", note, f"<div class=pair><div>{best}</div></div>")
    checked = findings.checked
    scores = f"<h3>On {checked.rows:,} test rows</h3>{scores_table(checked.scores)}"
    scores += "".join(
        f"<p class=note>No {escape(name)}: {escape(why)}.</p>"
        for name, why in checked.without.items()
    )
    pictures = "".join(
        _card(caption, _figure(picture)) for caption, picture in checked_charts(checked)
    )
    inside = (
        f"<div class='pair trio'><div class=card>{scores}<br>{best}</div>{pictures}</div>"
    )
    note = f"Tested on {checked.source}; the search never saw these rows."
    return _section("The model", note, inside)


def _predict(findings: Findings) -> str:
    if not findings.usage:
        return ""
    note = (
        "In the shell and in Python; FOLDER is the one that this page was written to, and "
        "new rows have the columns that were learned from."
    )
    lines = "\n".join(escape(line, quote=False) for line in findings.usage)
    return _section("To predict", note, f"<pre class=card>{lines}</pre>")


def _lanes(findings: Findings) -> str:
    note = (
        "A lane a trial, as long as it was trained; a notch is a look by the bandit. Full "
    )
    note += "ends were trained to the end, hollow ones pruned, crosses failed."
    picture = _figure(lanes_chart(findings.trials))
    return _section("What was pruned, and when", note, _legend(findings.trials), picture)


def _parameters(findings: Findings) -> str:
    if findings.family is None:
        return ""
    shares = findings.importance
    pictures = slices(findings.trials, findings.family, shares)
    if not pictures:
        return ""
    parts = []
    if len(shares) > 1:
        note = (
            "Share of the score's variance that each parameter explains (fANOVA; of more "
            f"than {MOST} trials, by so many spread over the search)."
        )
        parts.append(f"<p class=note>{note}</p>{_figure(importance_chart(shares))}")
    cards = "".join(_figure(picture) for _, picture in pictures)
    parts.append(f"<div class=pair>{cards}</div>")
    return _section(f"What matters in {findings.family}", "", *parts)


def _plan(findings: Findings) -> str:
    html = findings.plan._repr_html_()
    steps = compared(findings.plan)
    if len(steps) < 2:
        return _section("The plan", "", html)
    cards = _card("Measured against predicted seconds", _figure(compared_chart(steps)))
    cards += _card("Step by step", compared_table(steps))
    note = "What was decided, what it was expected to cost, and what it took."
    return _section("The plan", note, html, f"<div class=pair>{cards}</div>")


def _trials(findings: Findings) -> str:
    table = trials_table(findings.trials)
    return _section("The best trials", "", table, failures_table(findings.trials))


def _data(findings: Findings) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in findings.columns)
    footer = "".join(f"<p>{escape(line)}</p>" for line in findings.footer)
    data = _section("The data", "", f"<ul class=columns>{items}</ul>") if items else ""
    return data + f"<footer>{footer}</footer>"


def _legend(trials: Sequence[TrialRow]) -> str:
    items = "".join(
        f"<li><i class=f{number % 8}></i>{escape(family)}</li>"
        for family, number in colours_of(trials).items()
        if family
    )
    return f"<ul class=legend>{items}</ul>"


def _section(title: str, note: str, *inside: str) -> str:
    text = f"<p class=note>{escape(note)}</p>" if note else ""
    return f"<section><h2>{escape(title)}</h2>{text}{''.join(inside)}</section>"


def _card(title: str, inside: str) -> str:
    return f"<div class=card><h3>{escape(title)}</h3>{inside}</div>"


def _figure(picture: str) -> str:
    return f"<figure>{picture}</figure>"
