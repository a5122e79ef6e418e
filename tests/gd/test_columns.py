"""Models as columns: every column has one owner, and selections keep it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlopt.errors import InputError
from mlopt.gd.columns import Layout, Model, layout

MODELS = st.lists(
    st.builds(
        Model,
        loss=st.sampled_from(["logistic", "hinge", "multinomial", "squared_hinge"]),
        l2=st.sampled_from([0.0, 0.1]),
        rowset=st.integers(0, 2),
        outputs=st.integers(2, 3),
        target=st.integers(0, 1),
    ),
    min_size=1,
    max_size=12,
)


@given(MODELS)
def test_every_column_belongs_to_one_model(models: list[Model]) -> None:
    plan = layout(models)
    for number, model in enumerate(models):
        own = plan.columns(number)
        assert own.stop - own.start == model.outputs
        assert (plan.owner[own] == number).all()
    assert plan.width == sum(model.outputs for model in models)


@given(MODELS)
def test_segments_cover_all_columns_and_agree_with_the_models(models: list[Model]) -> None:
    plan = layout(models)
    stop = 0
    for start, end, _, target, rowset, outputs in plan.segments:
        assert start == stop
        stop = end
        owners = {plan.models[i] for i in plan.owner[start:end]}
        assert {(m.target, m.rowset, m.outputs) for m in owners} == {
            (target, rowset, outputs)
        }
        assert len({m.loss for m in owners}) == 1
    assert stop == plan.width


@given(MODELS, st.data())
def test_a_selection_takes_each_model_its_own_columns(
    models: list[Model], data: st.DataObject
) -> None:
    plan = layout(models)
    numbers = data.draw(st.lists(st.integers(0, len(models) - 1), unique=True, min_size=1))
    chosen, columns = plan.select(numbers)
    for place, number in enumerate(numbers):
        assert chosen.models[place] == models[number]
        assert (plan.owner[columns[chosen.columns(place)]] == number).all()


@given(MODELS)
def test_softmax_columns_step_together_and_others_alone(models: list[Model]) -> None:
    plan = layout(models)
    expected = sum(1 if m.loss == "multinomial" else m.outputs for m in models)
    assert len(plan.units) == expected
    ones = plan.unit_sum(np.ones(plan.width))
    assert plan.model_sum(ones).tolist() == [m.outputs for m in models]
    assert (plan.spread(plan.unit_owner) == plan.owner).all()


@given(MODELS, st.integers(1, 8))
def test_lanes_hold_every_model_once(models: list[Model], width: int) -> None:
    plan: Layout = layout(models)
    lanes = plan.lanes(range(len(models)), width)
    assert sorted(number for lane in lanes for number in lane) == list(range(len(models)))


def test_an_unknown_loss_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="`loss` must be one of"):
        Model("absolute", 0.1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"loss": "multinomial", "l2": 0.1},
        {"loss": "squared", "l2": 0.1, "outputs": 3},
        {"loss": "logistic", "l2": -1.0},
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: dict) -> None:
    with pytest.raises(InputError):
        Model(**wrong)
