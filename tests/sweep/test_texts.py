"""Columns of sentences: reviews, complaints, descriptions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mlopt
from mlopt.scoring.blocks import blocks_of
from mlopt.scoring.files import Job
from mlopt.serving.bodies import JSON, frame_of, read_rows
from mlopt.serving.model import load_served
from mlopt.sweep.families import DEFAULTS, Case
from mlopt.sweep.models import dump_model
from mlopt.sweep.roles import roles_of
from mlopt.sweep.target import Target
from mlopt.sweep.texts import TOPICS, are_sentences

RANDOM = np.random.default_rng(6)
NOUNS = "room bed view meal desk bath walk price staff noise".split()  # noqa: SIM905
GOOD, BAD = ["lovely", "friendly", "clean"], ["dirty", "rude", "broken"]


def reviews(rows: int = 240) -> pd.DataFrame:
    """A number, a sentence and whether it is a good one."""
    happy = RANDOM.random(rows) < 0.5
    words = [RANDOM.choice(NOUNS, 5) for _ in range(rows)]
    said = [
        f"The {' and '.join(some)} were {RANDOM.choice(GOOD if good else BAD)}"
        for some, good in zip(words, happy, strict=True)
    ]
    return pd.DataFrame({
        "nights": RANDOM.integers(1, 1000, rows),
        "review": said,
        "again": np.where(happy, "yes", "no"),
    })  # fmt: skip


TABLE = reviews()


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("the room was clean", True),
        ("Ein Zimmer ohne Aussicht und ohne Bad", True),
        ("Это был очень хороший день", True),
        ("Hotel Grand Palace London", False),
        ("12 Kings Road, Apt 4b", False),
        ("a-17 b-18 c-19 d-20", False),
        ("good room", False),
        ("ann.smith@mail.example.com", False),
        ("/home/ann/data/table.csv red-oak-garden-chair", False),
        ("", False),
    ],
)
def test_sentences_are_told_by_words_in_small_letters(text: str, is_one: bool) -> None:
    assert are_sentences(pd.Series([text])) == is_one


@pytest.mark.parametrize("family", [*DEFAULTS])
def test_every_family_learns_from_words(family: str) -> None:
    roles = roles_of(TABLE.drop(columns="again"))
    assert roles.texts == ("review",)
    assert roles.width == 1 + TOPICS
    target = Target("again", "classification", "", np.array(["no", "yes"]))
    case = Case(roles, target, 160, roles.width, 0)
    model, _ = DEFAULTS[family](case)
    model.fit(TABLE[:160], TABLE["again"][:160] == "yes")
    assert model.score(TABLE[160:], TABLE["again"][160:] == "yes") > 0.8


def test_a_table_of_reviews_is_searched_saved_and_served(tmp_path: Path) -> None:
    table = TABLE[["review", "again"]]
    model = mlopt.sweep(table, "again", n_trials=6, timeout=None)
    assert model.test_scores_["accuracy"] > 0.85
    assert "1 texts" in str(model.plan_)
    (tmp_path / "model.skops").write_bytes(dump_model(model))
    again = mlopt.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict(table), model.predict(table))
    served = load_served(tmp_path / "model.skops")
    body = b'[{"review": "the bed was lovely"}, {"review": "the bed was rude"}]'
    rows = frame_of([read_rows(body, JSON, served)], served)
    assert served.estimator.predict(rows).tolist() == ["yes", "no"]


@pytest.mark.filterwarnings("ignore:invalid value")  # topics of no variance
def test_a_fold_without_a_text_is_none_that_fails() -> None:
    late = TABLE["review"].mask(np.arange(len(TABLE)) < 100)
    table = TABLE.assign(review=late, day=range(len(TABLE)))
    families = ["linear", "hist_gradient_boosting"]
    model = mlopt.sweep(
        table, "again", time="day", n_trials=4, timeout=None, families=families
    )
    assert "review" in model.feature_names_in_
    assert np.isfinite(model.leaderboard_["score"]).all()


def test_columns_may_be_called_as_they_like() -> None:
    table = TABLE.rename(columns={"review": "Review__c"})
    model = mlopt.sweep(table, "again", n_trials=2, timeout=None)
    assert model.test_scores_["accuracy"] > 0.8


@pytest.mark.parametrize("family", ["linear", "extra_trees"])
def test_files_of_texts_are_predicted_in_blocks(tmp_path: Path, family: str) -> None:
    model = mlopt.sweep(TABLE, "again", n_trials=2, timeout=None, families=[family])
    (tmp_path / "model.skops").write_bytes(dump_model(model))
    loaded = mlopt.load(tmp_path / "model.skops")
    new = TABLE.drop(columns="again").head(60)
    for gap in (0, 9):  # rows without the name itself
        rows = new.to_dict("records")
        for row in rows[:gap]:
            del row["review"]
        file = tmp_path / "new.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        job = Job(file, tmp_path / "out.csv")
        blocks = [*blocks_of(job, loaded, 400, 10**6)]
        assert len(blocks) == 1 if gap else len(blocks) > 5
        found = np.concatenate([loaded.predict(block.X) for block in blocks])
        expected = new.assign(review=new["review"].mask(new.index < gap))
        np.testing.assert_array_equal(found, loaded.predict(expected))


def test_a_missing_text_has_no_words() -> None:
    table = TABLE.assign(review=TABLE["review"].mask(np.arange(len(TABLE)) % 7 == 0))
    model = mlopt.sweep(table, "again", n_trials=3, timeout=None, families=["linear"])
    nothing = pd.DataFrame({"nights": [3, 3], "review": [None, ""]})
    found = model.predict_proba(nothing)
    np.testing.assert_array_equal(found[0], found[1])
