"""Rules run in order, by name, and any of them can be left out."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler
from tests.pipeline.graphs import DATA, OTHER, ranged, scaled, union

import mlopt
from mlopt.errors import InputError
from mlopt.pipeline.graph.operators import Source
from mlopt.pipeline.graph.walking import rebuild
from mlopt.pipeline.planning import making
from mlopt.pipeline.planning.optimizer import (
    RULES,
    describe,
    history,
    left_out,
    optimize,
)
from mlopt.pipeline.rules.base import Context, Draft

CONTEXT = Context(None, 0)
PAGE = Path(__file__).parents[3] / "docs/pipelines.md"
NAMES = re.findall(r"^   \| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)


def test_the_page_names_the_rules_in_their_order() -> None:
    assert list(RULES) == NAMES


def test_each_rule_is_logged_with_the_plan_before_and_after() -> None:
    root = union(scaled("a", DATA), scaled("b", DATA))
    draft, log = optimize(Draft((root,)), CONTEXT)
    sharing = next(one for one in log if one.rule == "share_work")

    assert sharing.changed
    assert describe(sharing.before).count("StandardScaler") == 2
    assert describe(sharing.after).count("StandardScaler") == 1
    assert sharing.seconds >= 0
    assert draft.sinks[0].token == root.token


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_can_be_left_out(name: Any) -> None:
    root = union(scaled("a", DATA), ranged("b", scaled("a", DATA)))
    _, log = optimize(Draft((root,)), CONTEXT, without={name})

    assert name not in [one.rule for one in log]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (True, set()),
        (False, set(NAMES)),
        ({"without": ["fuse_rows"]}, {"fuse_rows"}),
        (["fuse_rows", "share_work"], {"fuse_rows", "share_work"}),
        ("fuse_rows", {"fuse_rows"}),
    ],
)
def test_what_optimize_means(given: Any, expected: Any) -> None:
    assert left_out(given) == expected


@pytest.mark.parametrize("given", [{"without": ["cse"]}, ["cse"], "cse"])
def test_an_unknown_name_says_which_there_are(given: Any) -> None:
    with pytest.raises(InputError, match="Rules: count_terms, drop_unused"):
        left_out(given)


@pytest.mark.parametrize("given", [3, {"only": ["x"]}, {"without": ["x"], "only": []}])
def test_anything_else_is_refused(given: Any) -> None:
    with pytest.raises(InputError, match="`optimize` must be"):
        left_out(given)


def wrong(draft: Any, context: Any) -> Any:
    """A rule that computes something else."""
    sinks = rebuild(draft.sinks, lambda op: OTHER if type(op) is Source else op)
    return replace(draft, sinks=sinks)


def test_a_rule_that_changes_the_meaning_is_left_out_and_noted() -> None:
    draft = Draft((scaled("a", DATA),))
    with dask.config.set({"mlopt.strict": False}):
        found, log = optimize(draft, CONTEXT, {"wrong": wrong})
    assert found is draft
    assert [one.broken for one in log] == [True]
    assert "left out, since it would change" in history(log)[-1]


def test_a_fit_survives_a_broken_rule_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "optimize", partial(optimize, rules={"wrong": wrong}))
    X = np.arange(8.0).reshape(4, 2)
    with dask.config.set({"mlopt.strict": False}):
        found = mlopt.make_pipeline(StandardScaler()).fit(X)
    np.testing.assert_allclose(found[0].mean_, X.mean(axis=0))
    assert "rule `wrong` was left out" in found.plan_.explain()


def test_a_rule_that_changes_the_meaning_is_caught() -> None:
    with pytest.raises(AssertionError, match="Rule `wrong` changed"):
        optimize(Draft((scaled("a", DATA),)), CONTEXT, {"wrong": wrong})
