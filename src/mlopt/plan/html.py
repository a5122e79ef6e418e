"""A plan as HTML for notebooks and reports: no script, no file, no style from elsewhere."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from mlopt.plan.text import by_seconds, counts, facts, foreseen
from mlopt.plan.units import format_seconds

if TYPE_CHECKING:
    from mlopt.plan.tree import Alternative, Choice, Plan

# Every rule is under .mlopt-plan, so that two plans on one page and the page itself do not
# disturb one another; colours are mixed from the page's own, for dark themes.
STYLE = """
.mlopt-plan {font: 13px/1.5 system-ui, sans-serif; max-width: 62em; color: inherit;
  border: 1px solid #8884; border-radius: 6px; padding: .6em .8em; margin: .3em 0}
.mlopt-plan .head {display: flex; gap: 1.5em; flex-wrap: wrap; align-items: baseline}
.mlopt-plan .title {font-weight: 600; font-size: 1.1em; margin-right: auto}
.mlopt-plan details {margin: .1em 0 .1em .4em; padding-left: .6em;
  border-left: 2px solid #8883}
.mlopt-plan summary {display: grid; gap: 0 1em; align-items: center; cursor: pointer;
  grid-template-columns: 9em minmax(9em, 1fr) minmax(10em, 1.3fr) 5em 5em 7em}
.mlopt-plan summary.leaf {cursor: default}
.mlopt-plan summary:hover {background: #8881}
.mlopt-plan .step {font-weight: 600; overflow-wrap: anywhere}
.mlopt-plan .step::before {content: "\\25B8\\00A0"; opacity: .5}
.mlopt-plan details[open] > summary .step::before {content: "\\25BE\\00A0"}
.mlopt-plan summary.leaf .step::before {content: "\\00B7\\00A0" !important}
.mlopt-plan .operator {font-family: ui-monospace, monospace; font-size: .92em;
  overflow-wrap: anywhere}
.mlopt-plan .chosen {color: #16985f; font-weight: 600; overflow-wrap: anywhere}
.mlopt-plan .time {text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap}
.mlopt-plan .names {opacity: .6}
.mlopt-plan .names span {font-size: .85em}
.mlopt-plan .head .bars {width: 7em}
.mlopt-plan .names span:nth-child(n+4) {text-align: right}
.mlopt-plan .bars i {display: block; height: 4px; margin: 2px 0; border-radius: 2px;
  min-width: 1px; background: #8889}
.mlopt-plan .bars i.measured {background: #16985f}
.mlopt-plan ul {margin: .1em 0 .3em 1.2em; padding: 0; list-style: none}
.mlopt-plan .rejected li, .mlopt-plan .rejected::before {opacity: .6}
.mlopt-plan .rejected::before {content: "rejected"; font-size: .85em}
.mlopt-plan .rejected s {text-decoration-thickness: 1px}
.mlopt-plan .notes li::before {content: "\\2013\\00A0"}
"""


def render_html(plan: Plan) -> str:
    """See `Plan`; everything that came from a user is escaped."""
    longest = max((_longer(choice) for _, choice in plan.walk()), default=0.0)
    head = "".join(f'<span class="fact">{escape(fact)}</span>' for fact in facts(plan))
    return (
        f'<div class="mlopt-plan"><style>{STYLE}</style>'
        f'<div class="head"><span class="title">{escape(plan.title)}</span>{head}'
        f"{_bars(plan.predicted, plan.measured, _longer(plan))}"
        f"</div>{_names(plan)}"
        + "".join(_choice(choice, longest) for choice in plan.choices)
        + _list("notes", [escape(note) for note in (*foreseen(plan), *plan.notes)])
        + "</div>"
    )


def _names(plan: Plan) -> str:
    if not plan.choices:
        return ""
    names = ("step", "operator", "chosen", "predicted", "measured", "")
    cells = "".join(f"<span>{name}</span>" for name in names)
    return f'<details open><summary class="leaf names">{cells}</summary></details>'


def _choice(choice: Choice, longest: float) -> str:
    within = (
        _list("rejected", [_alternative(a) for a in by_seconds(choice.rejected)])
        + _list("notes", [escape(note) for note in (*counts(choice), *choice.notes)])
        + "".join(_choice(child, longest) for child in choice.children)
    )
    leaf = "" if within else ' class="leaf"'
    # The tree is open where it branches; what was rejected is one click away.
    opened = " open" if choice.children else ""
    summary = f"<summary{leaf}>{_cells(choice, longest)}</summary>"
    return f"<details{opened}>{summary}{within}</details>"


def _cells(choice: Choice, longest: float) -> str:
    return (
        f'<span class="step">{escape(choice.step)}</span>'
        f'<span class="operator">{escape(choice.operator)}</span>'
        f'<span class="chosen">{escape(choice.chosen)}</span>'
        f'<span class="time">{_time(choice.predicted)}</span>'
        f'<span class="time">{_time(choice.measured)}</span>'
        f"{_bars(choice.predicted, choice.measured, longest)}"
    )


def _longer(record: Plan | Choice) -> float:
    return max(record.predicted or 0.0, record.measured or 0.0)


def _time(seconds: float | None) -> str:
    return "" if seconds is None else format_seconds(seconds)


def _bars(predicted: float | None, measured: float | None, longest: float) -> str:
    """Two thin bars: predicted above, measured below, in proportion to ``longest``."""
    bars = "".join(
        f'<i class="{name}" title="{name} {format_seconds(value)}"'
        f' style="width:{100 * value / longest:.0f}%"></i>'
        for name, value in (("predicted", predicted), ("measured", measured))
        if value is not None and longest > 0
    )
    return f'<span class="bars">{bars}</span>'


def _alternative(alternative: Alternative) -> str:
    name, reason = escape(alternative.name), escape(alternative.reason)
    if alternative.seconds is None:
        return f"<s>{name}</s> {reason}".rstrip()
    return f"{name} <b>{format_seconds(alternative.seconds)}</b> {reason}".rstrip()


def _list(name: str, items: list[str]) -> str:
    if not items:
        return ""
    return f'<ul class="{name}">' + "".join(f"<li>{item}</li>" for item in items) + "</ul>"
