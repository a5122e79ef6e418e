"""Plans as text, HTML and JSON, before a run and after."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plans import choice_of, plan_of

from mlopt.errors import InputError
from mlopt.plan import Alternative, Choice, Plan, format_bytes, format_seconds
from mlopt.plan.units import format_share

names = st.text(max_size=20)
seconds = st.none() | st.floats(0, 1e9)
alternatives = st.builds(Alternative, names, seconds, names)
notes = st.lists(names, max_size=2).map(tuple)


def choices(children: st.SearchStrategy[tuple[Choice, ...]]) -> st.SearchStrategy[Choice]:
    rejected = st.lists(alternatives, max_size=6).map(tuple)
    return st.builds(
        Choice, names, names, names, seconds, seconds, rejected, notes, children
    )


trees = st.recursive(
    choices(st.just(())),
    lambda inner: choices(st.lists(inner, max_size=2).map(tuple)),
    max_leaves=5,
)
counts = st.none() | st.integers(0, 2**50)
plans = st.builds(
    Plan,
    names,
    st.lists(trees, max_size=3).map(tuple),
    seconds,
    seconds,
    counts,
    counts,
    notes,
)

PIPELINE = Plan(
    "fit pipeline",
    (
        Choice("scale", "StandardScaler", "one pass, 4 blocks", 0.05),
        Choice(
            "pca",
            "PCA(50)",
            "covariance-eigh",
            0.31,
            rejected=(Alternative("full-svd", 6.2), Alternative("randomized", 0.9)),
            notes=("kept in memory: output (80 MiB), read 23 times by clf",),
            children=(
                Choice("gram", "X'X", "syrk", 0.2),
                Choice("eigh", "", "LAPACK", 0.1),
            ),
        ),
        Choice(
            "clf",
            "LogisticRegression(C=1)",
            "newton-cholesky, 7 ± 2 passes",
            0.6,
            rejected=(
                Alternative("qr", reason="12 GiB"),
                Alternative("lbfgs", 1.9),
                Alternative("sgd", 4.0, "tolerance 1e-4"),
            ),
        ),
    ),
    predicted=4.1,
    memory=429496730,
    memory_budget=2 * 2**30,
    notes=("In process: 2 threads.",),
)
MEASURED = PIPELINE.with_measured({"scale": 0.04, "pca": 0.29, "clf": 0.55}, total=3.8)


def test_a_plan_is_drawn_as_a_tree_with_aligned_columns() -> None:
    assert PIPELINE.explain().splitlines() == [
        "fit pipeline                          predicted 4.1 s   memory 0.4 of 2.0 GiB",
        "├─ scale    StandardScaler            one pass, 4 blocks               50 ms",
        "├─ pca      PCA(50)                   covariance-eigh                 310 ms",
        "│  │          rejected: randomized 900 ms · full-svd 6.2 s",
        "│  │          kept in memory: output (80 MiB), read 23 times by clf",
        "│  ├─ gram  X'X                       syrk                            200 ms",
        "│  └─ eigh                            LAPACK                          100 ms",
        "└─ clf      LogisticRegression(C=1)   newton-cholesky, 7 ± 2 passes   600 ms",
        "              rejected: lbfgs 1.9 s · sgd 4.0 s (tolerance 1e-4) · qr (12 GiB)",
        "In process: 2 threads.",
    ]


def test_what_was_measured_stands_beside_what_was_predicted() -> None:
    text = str(MEASURED)
    assert "predicted 4.1 s   measured 3.8 s   memory 0.4 of 2.0 GiB" in text
    assert "one pass, 4 blocks               50 ms    40 ms" in text
    assert "newton-cholesky, 7 ± 2 passes   600 ms   550 ms" in text
    assert PIPELINE.measured is None


def test_rejected_alternatives_that_do_not_fit_are_counted_or_shown_when_verbose() -> None:
    many = tuple(Alternative(f"alternative number {i}", float(i)) for i in range(20))
    plan = Plan("fit", (Choice("clf", "x", "y", rejected=many),))
    assert " more" in plan.explain()
    assert max(map(len, plan.explain().splitlines())) <= 110
    assert plan.explain(verbose=True).count("rejected: ") == 20


def test_long_names_are_shortened_unless_verbose() -> None:
    plan = Plan("fit", (Choice("clf", "LogisticRegression(\n    C=1,\n" + "x" * 60, "y"),))
    assert "LogisticRegression( C=1, xxx" in plan.explain()
    assert "x" * 60 not in plan.explain()
    assert "x" * 60 in plan.explain(verbose=True)


@pytest.mark.parametrize("width", [80, 100, 200])
def test_rows_fit_the_terminal_and_keep_steps_and_seconds(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "histogram_gradient_boosting"
    choice = Choice(
        name, "Classifier(" + "x" * 60, "newton-cholesky, " + "y" * 60,
        predicted=1.0, measured=2.0,
        rejected=tuple(Alternative(f"alternative {i}", float(i)) for i in range(20)),
    )  # fmt: skip
    plan = Plan(
        "fit", (choice, Choice("clf", "LogisticRegression", "lbfgs")),
        predicted=4.1, measured=3.8, memory=2**29, memory_budget=2**31,
    )  # fmt: skip
    before = plan.explain()
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr(
        "shutil.get_terminal_size", lambda *_: os.terminal_size((width, 24))
    )
    text = plan.explain()
    assert max(map(len, text.splitlines())) <= width
    row = next(line for line in text.splitlines() if name in line)
    assert "newton-cholesky" in row
    assert "Cl" in row
    assert row.endswith("1.0 s   2.0 s")
    assert "x" * 60 in plan.explain(verbose=True)
    monkeypatch.setattr("sys.stdout.isatty", lambda: False, raising=False)
    assert plan.explain() == before
    assert before.splitlines()[1].count("x") > 20


def test_steps_of_one_name_are_told_apart_by_their_path() -> None:
    inner = Choice("solver", "", "lbfgs")
    plan = Plan(
        "fit",
        (Choice("a", "", "", children=(inner,)), Choice("b", "", "", children=(inner,))),
    )
    took = dict(plan.with_measured({"b/solver": 2.0}).walk())
    assert (took["a/solver"].measured, took["b/solver"].measured) == (None, 2.0)
    both = dict(plan.with_measured({"solver": 1.0, "b/solver": 2.0}).walk())
    assert (both["a/solver"].measured, both["b/solver"].measured) == (1.0, 2.0)


def test_measuring_a_step_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(
        InputError, match=r"no step of the plan: \['cls'\]\. Steps: .*pca/gram"
    ):
        PIPELINE.with_measured({"cls": 1.0})


@given(plans)
def test_a_plan_survives_json(plan: Plan) -> None:
    assert plan_of(json.loads(json.dumps(plan.to_dict(), allow_nan=False))) == plan


@given(plans)
def test_every_plan_can_be_shown(plan: Plan) -> None:
    for verbose in (False, True):
        lines = plan.explain(verbose).split("\n")
        assert len(lines) >= 1 + sum(1 for _ in plan.walk()) + len(plan.notes)
    assert plan._repr_html_().startswith('<div class="mlopt-plan">')


def test_predictions_that_are_no_numbers_do_not_reach_json() -> None:
    never = Alternative("diverges", float("inf"), "step too long")
    assert never.seconds is None
    record = Plan("p", predicted=np.float64(2)).to_dict()
    assert type(record["predicted"]) is float


def test_the_keys_of_the_record_are_stable() -> None:
    record = PIPELINE.to_dict()
    assert list(record) == [
        "title", "predicted", "measured", "memory", "memory_budget", "notes", "details",
        "estimates", "choices",
    ]  # fmt: skip
    assert list(record["choices"][0]) == [
        "step", "operator", "chosen", "predicted", "measured",
        "rejected", "notes", "children", "runs", "ran",
    ]  # fmt: skip


class Balance(HTMLParser):
    """Checks that every element is closed in its turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_html_is_well_formed_and_needs_nothing_from_elsewhere() -> None:
    html = MEASURED._repr_html_()
    parser = Balance()
    parser.feed(html)
    assert parser.open == []
    assert parser.seen.count("style") == 1
    assert "script" not in parser.seen
    assert "http" not in html


def test_html_has_a_bar_for_predicted_and_for_measured() -> None:
    html = MEASURED._repr_html_()
    assert 'class="predicted" title="predicted 600 ms" style="width:100%"' in html
    assert 'class="measured" title="measured 550 ms" style="width:92%"' in html


def test_html_shows_the_chosen_before_the_rejected_and_escapes_what_users_wrote() -> None:
    html = PIPELINE._repr_html_()
    assert html.index("covariance-eigh") < html.index("randomized") < html.index("full-svd")
    assert "<s>qr</s> 12 GiB" in html
    hostile = Plan("<b>", (Choice("<i>", "<i>", "<i>", notes=("<i>",)),))._repr_html_()
    assert "<b>" not in hostile
    assert "&lt;i&gt;" in hostile
    assert "<i>" not in hostile


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "?"), (0, "0 ms"), (1.2e-4, "0.12 ms"), (0.00995, "10 ms"), (0.05, "50 ms"),
        (0.9994, "999 ms"), (0.9996, "1.0 s"), (4.14, "4.1 s"), (9.96, "10 s"),
        (59.4, "59 s"), (59.7, "1.0 min"), (90, "1.5 min"), (3569, "59 min"),
        (5400, "1.5 h"), (float("inf"), "for ever"),
    ],
)  # fmt: skip
def test_seconds_are_written_for_people(value: float | None, text: str) -> None:
    assert format_seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "?"), (0, "0 B"), (999, "999 B"), (1023, "1.0 KiB"),
        (3.14 * 2**20, "3.1 MiB"), (80 * 2**20, "80 MiB"), (150 * 2**20, "150 MiB"),
        (1023.9 * 2**20, "1.0 GiB"), (2**60, "1024 PiB"),
    ],
)  # fmt: skip
def test_bytes_are_written_for_people(value: float | None, text: str) -> None:
    assert format_bytes(value) == text


def test_a_share_uses_one_unit_where_that_says_enough() -> None:
    assert format_share(0.4 * 2**30, 2 * 2**30) == "0.4 of 2.0 GiB"
    assert format_share(80 * 2**10, 2 * 2**30) == "80 KiB of 2.0 GiB"
    assert format_share(0, 2**30) == "0.0 of 1.0 GiB"


def test_a_step_says_how_often_it_is_run_and_was() -> None:
    step = Choice(
        "scale", "StandardScaler()", "merged moments", runs={"fit": 1, "apply": 2}
    )
    assert "to run: fit 1 x, apply 2 x" in Plan("fit", (step,)).explain()
    after = replace(step, ran={"fit": 1, "apply": 2.5})
    assert "ran: fit 1 x, apply 2.5 x (2 x predicted)" in Plan("fit", (after,)).explain()
    assert choice_of(after.to_dict()) == after
