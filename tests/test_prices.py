"""One price list: what holds a time, a rate or operations is there, and nowhere else."""

from __future__ import annotations

import ast
import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mlopt.prices import PRICES, UNITS

ROOT = Path(__file__).parent.parent
GD = ROOT / "src/mlopt/gd"
MOST = 80
"""Numbers that may be constants of a module in `mlopt.gd`."""
TIME = re.compile(
    r"\b(milli)?seconds\b|\bns\b|\bms\b|\boperations\b|\bmultiplications\b|\bflops\b"
    r"|times slower|times longer|\bin whose time\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Constant:
    """An assignment of numbers at the top of a module."""

    place: str
    names: int
    numbers: int
    text: str


def is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def numbers(node: ast.expr) -> int:
    """How many numbers are written out, in a tuple or a dict too."""
    parts = list(getattr(node, "elts", [])) + list(getattr(node, "values", []))
    return sum(map(numbers, parts)) if parts else int(is_number(node))


def is_chosen(node: ast.expr) -> bool:
    """Whether a number is in it that somebody chose, be it a table's or a factor.

    What a method is told when it is made, and names that are counted through, are none.
    """
    makes = isinstance(node, ast.Call) and ast.unparse(node.func) in (
        "Method", "least_squares", "range",
    )  # fmt: skip
    return not makes and any(
        isinstance(part, ast.Constant) and type(part.value) in (int, float)
        for part in ast.walk(node)
    )


def constants(path: Path) -> Iterator[Constant]:
    source = path.read_text()
    lines, body = source.splitlines(), ast.parse(source).body
    for here, after in zip(body, [*body[1:], None], strict=True):
        if not isinstance(here, ast.Assign | ast.AnnAssign) or here.value is None:
            continue
        found = numbers(here.value)
        if not found:
            continue
        target = here.targets[0] if isinstance(here, ast.Assign) else here.target
        text = ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            text = str(after.value.value)
        above = here.lineno - 2
        while lines[above].startswith("#"):
            text = f"{lines[above]} {text}"
            above -= 1
        yield Constant(
            f"{path.relative_to(ROOT)}:{here.lineno}: {ast.unparse(target)}",
            len(getattr(target, "elts", [target])), found,
            text,
        )  # fmt: skip


FILES = sorted(GD.rglob("*.py"))
ALL = [one for path in FILES for one in constants(path)]


def test_few_numbers_are_constants_of_modules() -> None:
    """Also those that are made of others, as a part of a cache, and tables, each as one."""
    found = [
        f"{path.name}: {ast.unparse(one)}"
        for path in FILES
        for one in ast.parse(path.read_text()).body
        if isinstance(one, ast.Assign | ast.AnnAssign)
        and one.value
        and is_chosen(one.value)
    ]
    assert len(found) <= MOST, found


def test_every_constant_has_a_line_and_says_what_it_is() -> None:
    assert not [one.place for one in ALL if one.names != 1 or len(one.text.split()) < 4]


PATIENT = {
    "cluster", "detached", "serving", "server", "streaming", "interrupts.py", "__main__.py",
    "resources", "kernels", "tuning/storage",
}  # fmt: skip
"""Rooms whose seconds are patience with networks, processes, files and who waits, or how
long one measures: no plan rests on them."""


def test_no_constant_is_a_time_or_stands_for_one() -> None:
    """By what it says or is called, in all rooms whose plans would rest on it."""
    home = ROOT / "src/mlopt"
    patient = {
        path for room in PATIENT for path in (home / room, *(home / room).rglob("*"))
    }
    paths = sorted(set(home.rglob("*.py")) - patient)
    found = [one for path in paths for one in constants(path)]
    assert len(found) > len(ALL)
    assert not [
        one.place for one in found if TIME.search(one.text) or "SECONDS" in one.place
    ]


def test_no_cost_is_made_of_a_number_of_seconds() -> None:
    """As in ``Cost(python=2e-4)``: seconds come from the list."""
    found = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Cost":
                found += [
                    f"{path.relative_to(ROOT)}:{node.lineno}"
                    for word in node.keywords
                    if word.arg in ("python", "fixed")
                    and any(
                        isinstance(part, ast.Constant) and type(part.value) is float
                        and 0 < part.value < 0.5
                        for part in ast.walk(word.value)
                    )
                ]  # fmt: skip
    assert not found


@pytest.mark.parametrize("name", sorted(PRICES))
def test_a_price_says_what_it_is_of_and_where_it_comes_from(name: str) -> None:
    one = PRICES[name]
    assert one.name == name
    assert one.value > 0
    assert one.unit in UNITS
    assert (ROOT / "benchmarks" / one.script).is_file()
    assert datetime.date.fromisoformat(one.date) <= datetime.date.today()
    assert len(one.what.split()) > 1


def test_every_price_is_paid_somewhere() -> None:
    texts = (path.read_text() for path in (ROOT / "src").rglob("*.py"))
    source = "".join(text for text in texts if "from mlopt.prices import" in text)
    asked = set(re.findall(r'(?<![\w.])(?:price|count)\(\s*"([^"]+)"', source))
    made = re.findall(r'(?<![\w.])(?:price|count)\(\s*f"([^"]+)"', source)
    patterns = [re.compile(re.sub(r"\\{.*?\\}", "[^.]+", re.escape(one))) for one in made]
    unused = [
        name
        for name in PRICES
        if name not in asked and not any(p.fullmatch(name) for p in patterns)
    ]
    assert not unused
    assert asked <= set(PRICES)


def test_names_are_given_once() -> None:
    lines = (ROOT / "src/mlopt/prices/prices.csv").read_text().splitlines()
    assert len(lines) == 1 + len(PRICES)
