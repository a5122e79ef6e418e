"""Common work is done once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.graphs import DATA, OTHER, ranged, scaled, text, union

from mlopt.pipeline.graph.operators import Operator
from mlopt.pipeline.graph.walking import show, walk
from mlopt.pipeline.rules.base import Context, Draft
from mlopt.pipeline.rules.share_work import share_work

CONTEXT = Context(None, 0)


def shared(*sinks: Operator) -> Draft:
    return share_work(Draft(sinks), CONTEXT)


def test_a_repeated_fit_is_done_once() -> None:
    draft = shared(union(scaled("scale", DATA), scaled("scale", DATA)))

    assert show(draft.sinks) == text(
        """
        #0 Source X
        #1 Learn scale StandardScaler() #0
        #2 Apply scale #1 #0
        #3 Join union #2 #2
        """
    )


def test_whole_branches_that_are_equal_become_one() -> None:
    branches = [ranged("b", scaled("a", DATA)) for _ in range(3)]

    assert len(list(walk(shared(union(*branches)).sinks))) == 6


@pytest.mark.parametrize("other", [scaled("a", OTHER), ranged("a", DATA)])
def test_what_differs_stays_apart(other: Any) -> None:
    draft = Draft((union(scaled("a", DATA), other),))

    assert share_work(draft, CONTEXT) is draft


def test_a_note_says_which_steps_share() -> None:
    draft = shared(union(scaled("left/scale", DATA), scaled("right/scale", DATA)))

    assert any("left/scale and right/scale" in text for _, text in draft.notes)


def graphs() -> st.SearchStrategy[Operator]:
    def grow(inner: st.SearchStrategy[Operator]) -> st.SearchStrategy[Operator]:
        steps = st.sampled_from([scaled, ranged])
        one = st.builds(lambda step, x: step("s", x), steps, inner)
        return one | st.builds(union, inner, inner)

    return st.recursive(st.sampled_from([DATA, OTHER]), grow, max_leaves=12)


@given(graphs())
def test_tokens_are_unique_afterwards_and_the_meaning_stays(root: Any) -> None:
    draft = shared(root)
    tokens = [op.token for op in walk(draft.sinks)]

    assert len(tokens) == len(set(tokens))
    assert draft.sinks[0].token == root.token


@given(graphs())
def test_a_second_application_changes_nothing(root: Any) -> None:
    draft = shared(root)

    assert share_work(draft, CONTEXT) is draft
