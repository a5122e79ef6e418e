"""A plan as text.

::

    fit pipeline                predicted 4.1 s   measured 3.8 s   memory 0.4 of 2.0 GiB
    ├─ scale  StandardScaler    one pass, 4 blocks    50 ms   40 ms
    └─ clf    LogisticRegression(C=1)   newton-cholesky, 7 ± 2 passes   0.6 s   0.5 s
                rejected: lbfgs 1.9 s · sgd 4.0 s (tolerance 1e-4)
"""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlopt.plan.units import format_bytes, format_seconds, format_share

if TYPE_CHECKING:
    from mlopt.plan.tree import Alternative, Choice, Plan

WIDTH = 100
"""Columns where nobody's terminal says how many there are."""
LONGEST = {"step": 30, "operator": 40, "chosen": 48}
SHORTEST = {"operator": 3, "chosen": 16}
"""Characters that a text keeps on the narrowest terminal; a step keeps its name."""
GAP = "   "
_MANY = 100.0
"""Times from which on parts of one do not count."""


@dataclass(frozen=True)
class Line:
    """One choice with its place in the tree.

    ``branch`` is drawn before the step, ``trunk`` before the lines that follow it.
    """

    branch: str
    trunk: str
    choice: Choice


def render_text(plan: Plan, *, verbose: bool = False) -> str:
    """See `Plan.explain`."""
    lines = list(_lines(plan.choices, ""))
    width = _terminal()
    cells = [_cells(line, verbose, LONGEST) for line in lines]
    if width and lines and not verbose:
        fitting = _fitting(cells, width)
        cells = [_cells(line, verbose, fitting) for line in lines]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    measured = any(line.choice.measured is not None for line in lines)
    left = sum(widths[:2]) + 2 + len(GAP) if lines else 0
    known = GAP.join(facts(plan))
    if width and not verbose:
        left = min(left, width - len(known))
    out = [GAP.join([_one_line(plan.title).ljust(left - len(GAP)), known]).rstrip()]
    indent = widths[0] + 4 if lines else 0
    for line, row in zip(lines, cells, strict=True):
        out.append(_row(row, widths, measured))
        out += [
            line.trunk.ljust(indent) + text
            for text in _below(line, verbose, (width or WIDTH) - indent)
        ]
    details = plan.details if verbose else ()
    return "\n".join([*out, *foreseen(plan), *map(_one_line, plan.notes), *details])


def facts(plan: Plan) -> list[str]:
    """What is known of the plan as a whole."""
    found = []
    if plan.predicted is not None:
        found.append(f"predicted {format_seconds(plan.predicted)}")
    if plan.measured is not None:
        found.append(f"measured {format_seconds(plan.measured)}")
    if plan.memory is not None and plan.memory_budget is not None:
        found.append(f"memory {format_share(plan.memory, plan.memory_budget)}")
    elif plan.memory is not None:
        found.append(f"memory {format_bytes(plan.memory)}")
    elif plan.memory_budget is not None:
        found.append(f"memory budget {format_bytes(plan.memory_budget)}")
    return found


def foreseen(plan: Plan) -> list[str]:
    """A line for what was foreseen, and one each time that it was corrected."""
    words = ["foreseen", *["corrected"] * len(plan.estimates)]
    return [f"{word}: {one}" for word, one in zip(words, plan.estimates, strict=False)]


def counts(choice: Choice) -> list[str]:
    """How often it is done, or was; nothing where nobody counts."""
    said = [f"{name} {_times(often)}" for name, often in choice.ran.items()]
    if not said:
        planned = [f"{name} {_times(often)}" for name, often in choice.runs.items()]
        return [f"to run: {', '.join(planned)}"] if planned else []
    for number, (name, often) in enumerate(choice.ran.items()):
        expected = choice.runs.get(name, often)
        if _times(expected) != _times(often):
            said[number] += f" ({_times(expected)} predicted)"
    return [f"ran: {', '.join(said)}"]


def _times(often: float) -> str:
    return f"{often:.3g} x" if often < _MANY else f"{often:.0f} x"


def by_seconds(rejected: Sequence[Alternative]) -> list[Alternative]:
    """Cheapest first; what cannot be comes last."""
    return sorted(rejected, key=lambda a: math.inf if a.seconds is None else a.seconds)


def _lines(choices: Sequence[Choice], prefix: str) -> Iterator[Line]:
    for number, choice in enumerate(choices, 1):
        last = number == len(choices)
        below = prefix + ("   " if last else "│  ")
        trunk = below + "│" if choice.children else below
        yield Line(prefix + ("└─ " if last else "├─ "), trunk.rstrip(), choice)
        yield from _lines(choice.children, below)


def _terminal() -> int | None:
    """Columns of the terminal that is written to; None where it is none."""
    try:
        shown = sys.stdout.isatty()
    except (AttributeError, ValueError):  # none, or closed
        return None
    return shutil.get_terminal_size((WIDTH, 24)).columns if shown else None


def _fitting(cells: Sequence[Sequence[str]], width: int) -> dict[str, int]:
    """How long operators and choices may be in rows of ``width``; longer give first."""
    step, operator, chosen, predicted, measured = (
        max(map(len, column)) for column in zip(*cells, strict=True)
    )
    rest = len(GAP) + predicted + (len(GAP) + measured if measured else 0)
    over = step + 2 + operator + len(GAP) + chosen + rest - width
    while over > 0 and (operator > SHORTEST["operator"] or chosen > SHORTEST["chosen"]):
        spare = operator - SHORTEST["operator"], chosen - SHORTEST["chosen"]
        if spare[0] >= spare[1]:
            operator -= 1
        else:
            chosen -= 1
        over -= 1
    return {**LONGEST, "operator": operator, "chosen": chosen}


def _cells(
    line: Line, verbose: bool, longest: Mapping[str, int]
) -> tuple[str, str, str, str, str]:
    choice = line.choice
    texts = {"step": choice.step, "operator": choice.operator, "chosen": choice.chosen}
    step, operator, chosen = (
        _one_line(text) if verbose else _shorten(_one_line(text), longest[name])
        for name, text in texts.items()
    )
    times = (choice.predicted, choice.measured)
    predicted, measured = ("" if t is None else format_seconds(t) for t in times)
    return line.branch + step, operator, chosen, predicted, measured


def _row(cells: Sequence[str], widths: Sequence[int], measured: bool) -> str:
    left = [cells[0].ljust(widths[0]) + "  " + cells[1].ljust(widths[1])]
    right = [cells[3].rjust(widths[3])]
    if measured:
        right.append(cells[4].rjust(widths[4]))
    return GAP.join([*left, cells[2].ljust(widths[2]), *right]).rstrip()


def _below(line: Line, verbose: bool, width: int) -> list[str]:
    """The lines under a choice: what was rejected, then the notes."""
    notes = [_one_line(note) for note in (*counts(line.choice), *line.choice.notes)]
    found = [_alternative(a) for a in by_seconds(line.choice.rejected)]
    if not found:
        return notes
    if verbose:
        return [f"rejected: {text}" for text in found] + notes
    return ["rejected: " + _fill(found, width - len("rejected: ")), *notes]


def _alternative(alternative: Alternative) -> str:
    time = "" if alternative.seconds is None else f" {format_seconds(alternative.seconds)}"
    reason = f" ({_one_line(alternative.reason)})" if alternative.reason else ""
    return f"{_one_line(alternative.name)}{time}{reason}"


def _fill(texts: Sequence[str], width: int) -> str:
    """As many of ``texts`` as fit, at least one, and how many there are beyond."""
    taken = len(texts)
    while taken > 1 and len(_joined(texts, taken)) > width:
        taken -= 1
    return _joined(texts, taken)


def _joined(texts: Sequence[str], taken: int) -> str:
    more = [f"{len(texts) - taken} more"] if taken < len(texts) else []
    return " · ".join([*texts[:taken], *more])


def _one_line(text: str) -> str:
    """Without line breaks, which the ``repr`` of an estimator may have."""
    return " ".join(text.split())


def _shorten(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
