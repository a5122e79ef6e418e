"""Row-wise steps run as one task a block."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from sklearn.linear_model import LogisticRegression
from tests.pipeline.graphs import DATA, ranged, scaled, text, union
from tests.pipeline.rules.test_share_work import graphs, shared

from mlopt.pipeline.graph.operators import Apply, Fused, Given, Learn
from mlopt.pipeline.graph.walking import show, walk
from mlopt.pipeline.rules.base import Context, Draft
from mlopt.pipeline.rules.fuse_rows import fuse_rows

CONTEXT = Context(None, 0)


def fitted(step: Any, x: Any) -> Any:
    return Apply(step, Given(step, f"<{step}>", step), x)


def fused(*sinks: Any, kept: frozenset[str] = frozenset()) -> Any:
    return fuse_rows(Draft(sinks, kept), CONTEXT)


def test_a_chain_becomes_one_operator() -> None:
    draft = fused(fitted("c", fitted("b", fitted("a", DATA))))

    assert show(draft.sinks) == text(
        """
        #0 Given a '<a>'
        #1 Source X
        #2 Given b '<b>'
        #3 Given c '<c>'
        #4 Fused a+b+c #0 #1 #2 #3
        """
    )


def test_a_model_in_between_ends_a_task() -> None:
    last = Learn("clf", LogisticRegression(), ranged("b", fitted("a", DATA)))
    draft = fused(last)
    steps = [op.step for op in walk(draft.sinks) if op.gives_rows and op is not DATA]

    assert steps == ["a", "b"]


def test_what_is_kept_ends_a_task() -> None:
    middle = fitted("b", fitted("a", DATA))
    draft = fused(fitted("d", fitted("c", middle)), kept=frozenset({middle.token}))

    assert [op.step for op in walk(draft.sinks) if isinstance(op, Fused)] == ["a+b", "c+d"]


def test_branches_that_meet_again_are_one_task() -> None:
    first = fitted("a", DATA)
    draft = fused(union(fitted("b", first), fitted("c", first)))

    assert [op.step for op in walk(draft.sinks) if isinstance(op, Fused)] == ["a+b+c+union"]


def test_single_steps_stay_as_they_are() -> None:
    draft = Draft((fitted("a", DATA),))

    assert fuse_rows(draft, CONTEXT) is draft


def test_steps_that_look_at_all_rows_stay_alone() -> None:
    whole = Apply("w", Given("w", "<w>", "w"), fitted("a", DATA), scope="all")
    draft = fused(fitted("b", whole))

    assert not any(isinstance(op, Fused) for op in walk(draft.sinks))


@given(graphs())
def test_the_meaning_stays_and_every_operator_still_has_its_inputs(root: Any) -> None:
    before = shared(root)
    after = fuse_rows(before, CONTEXT)

    assert after.sinks[0].token == root.token
    inside = {op.token for op in walk(before.sinks)}
    for op in walk(after.sinks):
        assert op.token in inside


def test_scalers_keep_their_models_apart() -> None:
    draft = fused(scaled("b", scaled("a", DATA)))

    assert [op.step for op in walk(draft.sinks) if isinstance(op, Learn)] == ["a", "b"]
