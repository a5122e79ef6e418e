"""The catalogue is complete, and its page is what is in docs."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from sklearn.base import BaseEstimator
from tests.pipeline.library.catalogue.entry import Entry
from tests.pipeline.library.catalogue.page import EXAMPLE, page
from tests.pipeline.library.catalogue.table import ENTRIES

import mlopt
from mlopt.costs import Cost
from mlopt.gd.least_squares_fit import SOLVERS
from mlopt.gd.pricing import shape_of_stats
from mlopt.pipeline import library
from mlopt.pipeline.library import pca_plan
from mlopt.pipeline.library.image.convolution_ways import WAYS
from mlopt.resources import Calibration, Factors, Resources
from mlopt.stats import Stats

ALL = [entry for entries in ENTRIES.values() for entry in entries]
DATA = (EXAMPLE, Stats(1000, 48, outputs=3, dtype="float32"))
HERE = Path(__file__).parents[3]
VERBS = ("transform", "predict", "sample")
NO_OPERATORS = {
    "Pipeline",
    "ModelSearchCV",
    "MatrixFactorization",
    "LatentDirichletAllocation",
}
"""They hold operators, or take ratings, which no step gives; topics have one way."""


def operators() -> Iterator[type]:
    """Public classes of the library that do something to data."""
    for module in pkgutil.walk_packages(library.__path__, f"{library.__name__}."):
        for name, one in vars(import_module(module.name)).items():
            own = inspect.isclass(one) and one.__module__ == module.name
            if not own or name.startswith("_") or inspect.isabstract(one):
                continue
            works = any(callable(getattr(one, verb, None)) for verb in VERBS)
            if works or (hasattr(one, "of") and hasattr(one, "__add__")):
                yield one


def estimators() -> Iterator[type]:
    """mlopt's own models, wherever they live."""
    for name in mlopt.__all__:
        one = getattr(mlopt, name)
        model = inspect.isclass(one) and issubclass(one, BaseEstimator)
        if model and name not in NO_OPERATORS:
            yield one


def test_every_operator_of_the_library_is_in_the_catalogue() -> None:
    found = {*operators(), *estimators()}
    listed = {entry.operator for entry in ALL if inspect.isclass(entry.operator)}

    assert len(found) > 30
    assert {one.__qualname__ for one in found - listed} == set()
    assert {one.__qualname__ for one in listed - found} == set()


def test_no_operator_is_listed_twice() -> None:
    names = [entry.name for entry in ALL]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("entry", ALL, ids=lambda entry: entry.name)
def test_every_operator_has_a_docstring_a_source_and_costs(entry: Entry) -> None:
    assert inspect.getdoc(entry.operator)
    assert entry.source
    assert entry.ways
    for stats in DATA:
        costs = [way.price(stats, Resources()) for way in entry.ways]
        assert any(isinstance(cost, Cost) and not cost.empty for cost in costs)
        for way, cost in zip(entry.ways, costs, strict=True):
            assert way.formula
            assert cost, f"{way.name} neither costs anything nor says why it cannot be used"


@pytest.mark.parametrize("entry", ALL, ids=lambda entry: entry.name)
def test_more_rows_never_cost_less(entry: Entry) -> None:
    few, many = Stats(1000, 300, outputs=4), Stats(4000, 300, outputs=4)
    for way in entry.ways:
        less, more = way.price(few, Resources()), way.price(many, Resources())
        if isinstance(less, Cost) and isinstance(more, Cost):
            assert more.seconds(Resources()) >= less.seconds(Resources())


def named(name: str) -> dict[str, Any]:
    (entry,) = [one for one in ALL if one.name == name]
    return {way.name: way.price for way in entry.ways}


def test_implementations_are_those_that_there_are() -> None:
    shape = shape_of_stats(EXAMPLE)
    pca = pca_plan.Shape(shape, 10, needs_all=False, oversamples=10, iterations=4)
    assert set(named("Ridge")) == set(SOLVERS)
    assert set(named("PCA")) == set(pca_plan.solver_costs(pca, Resources()))
    assert set(named("Convolver")) == set(WAYS)


def test_costs_are_calibrated_as_choices_are() -> None:
    slow = Calibration((("Ridge/svd", Factors(*[2.0] * 5)),))
    price = named("Ridge")["svd"]
    plain = price(EXAMPLE, Resources()).seconds(Resources())

    found = price(EXAMPLE, Resources(calibration=slow)).seconds(Resources())
    assert found == pytest.approx(2.0 * plain)


def test_the_page_is_what_the_catalogue_says() -> None:
    assert (HERE / "docs/operators.md").read_text() == page(), (
        "docs/operators.md is out of date: write it anew by "
        "`python -m tests.pipeline.library.catalogue.page > docs/operators.md`."
    )
