"""Predicted against measured: how well the plan knew what its steps would take."""

from __future__ import annotations

from html import escape

from mlopt.plan import Plan, format_seconds
from mlopt.report.svg import chart, element, label, line, scale_over, title, x_axis, y_axis

Compared = list[tuple[str, float, float]]
"""(step, predicted seconds, measured seconds)."""


def compared(plan: Plan) -> Compared:
    """The steps of a plan for which both are known."""
    return [
        (path, choice.predicted, choice.measured)
        for path, choice in plan.walk()
        if choice.predicted is not None and choice.measured is not None
    ]


def compared_chart(steps: Compared) -> str:
    """Measured over predicted seconds, both logarithmic; on the diagonal both agree."""
    shown = [(name, max(p, 1e-4), max(m, 1e-4)) for name, p, m in steps]
    both = [v for _, p, m in shown for v in (p, m)]
    x = scale_over(both, 74, 466, log=True, pad=0.12)
    y = scale_over(both, 322, 12, log=True, pad=0.12)
    parts = [line(x(x.low), y(y.low), x(x.high), y(y.high), "diagonal")]
    for name, predicted, measured in shown:
        told = (format_seconds(predicted), format_seconds(measured))
        hint = title(f"{name}\npredicted {told[0]}, measured {told[1]}")
        where = {"cx": x(predicted), "cy": y(measured), "r": 5.5}
        parts.append(element("circle", hint, class_="dot f0", **where))
        side = ("end", -10) if x(predicted) > 300 else ("start", 10)
        short = name.rpartition("/")[2]
        parts.append(label(x(predicted) + side[1], y(measured) + 4, short, anchor=side[0]))
    axes = y_axis(y, 74, 466) + x_axis(x, 322, 12, "predicted seconds", about=4)
    return chart(480, 364, axes, *parts, name="Measured against predicted seconds")


def compared_table(steps: Compared) -> str:
    """The same as rows of a table."""
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td class=n>{format_seconds(p)}</td>"
        f"<td class=n>{format_seconds(m)}</td><td class=n>{_factor(p, m)}</td></tr>"
        for name, p, m in steps
    )
    head = "<tr><th>step<th class=n>predicted<th class=n>measured<th class=n>off by</tr>"
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _factor(predicted: float, measured: float) -> str:
    if predicted <= 0 or measured <= 0:
        return ""
    return f"{max(predicted / measured, measured / predicted):.1f}×"
