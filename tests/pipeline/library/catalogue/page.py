"""The catalogue as a page of docs/, written from the table and nothing else.

``python -m tests.pipeline.library.catalogue.page > docs/operators.md`` writes it.
"""

from __future__ import annotations

import inspect
import sys

from tests.pipeline.library.catalogue.entry import Entry, Way
from tests.pipeline.library.catalogue.table import ENTRIES

from mlopt.costs import Cost
from mlopt.plan import format_seconds
from mlopt.resources import Resources
from mlopt.stats import Stats

MACHINE = Resources()
"""One thread of a modest machine, the same wherever the page is written."""
EXAMPLE = Stats(rows=10_000, columns=300, outputs=10)

_HEAD = f"""\
# Operators

Every logical operator of the library, the implementations that it can run by, and what they
cost. This page is written by `python -m tests.pipeline.library.catalogue.page`; a test
compares the two.

n rows (documents, images), d columns (values of an image), k targets, components, filters
or features. "Example" is the predicted time of {EXAMPLE.rows} x {EXAMPLE.columns} in
float64 and k = {EXAMPLE.outputs} on the default `Resources()`, one thread; for text, of as
many bytes.

Costs of operators with several implementations are those that they choose by; `mlopt
resources --calibrate` fits them to a machine ([cost model](cost-model.md)).
"""


def page() -> str:
    """The page in Markdown."""
    parts = [_HEAD]
    for domain, entries in ENTRIES.items():
        parts.append(f"\n## {domain}\n\n")
        parts.append("| logical | does | physical | cost | example | source |\n")
        parts.append("|---|---|---|---|---|---|\n")
        parts.extend(_rows(entry) for entry in entries)
    return "".join(parts)


def _rows(entry: Entry) -> str:
    first = f"| `{entry.name}` | {summary(entry.operator)} |"
    lines = []
    for number, way in enumerate(entry.ways):
        start, source = (first, "| |")[number > 0], ("", entry.source)[number == 0]
        lines.append(
            f"{start} {way.name} | {_formula(way)} | {_example(way)} | {source} |\n"
        )
    return "".join(lines)


def summary(operator: object) -> str:
    """The first sentence of the docstring."""
    text = inspect.cleandoc(getattr(operator, "__doc__", None) or "")
    return " ".join(text.partition("\n\n")[0].split()).rstrip(".").replace("|", "\\|")


def _formula(way: Way) -> str:
    return way.formula.replace("|", "\\|")


def _example(way: Way) -> str:
    cost = way.price(EXAMPLE, MACHINE)
    return format_seconds(cost.seconds(MACHINE)) if isinstance(cost, Cost) else "-"


if __name__ == "__main__":
    sys.stdout.write(page())
