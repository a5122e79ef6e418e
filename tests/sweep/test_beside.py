"""Groups, weights and time of rows: they are no features, and count where they should."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, TimeSeriesSplit

import mlopt
from mlopt.cli import main
from mlopt.errors import ConfigError, InputError, StudyError
from mlopt.sweep.config import Config, override
from mlopt.sweep.fit import fit_one
from mlopt.sweep.loading import Source, from_frame
from mlopt.sweep.prepare import Prepared, prepare
from mlopt.sweep.run import explain, sweep
from mlopt.sweep.strict import convert

LINEAR: dict[str, Any] = {"families": ["linear"], "n_trials": 2, "timeout": 60.0}


@pytest.fixture
def visits() -> pd.DataFrame:
    """Rows of 30 patients, not in the order of their days."""
    random = np.random.default_rng(0)
    rows = 300
    frame = pd.DataFrame(
        {
            "patient": random.integers(0, 30, rows),
            "w": random.integers(0, 5, rows).astype(float),
            "day": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(random.permutation(rows), "D"),
            "a": random.normal(size=rows),
            "b": random.normal(size=rows),
        }
    )
    odds = frame["a"] + 0.5 * random.normal(size=rows)
    return frame.assign(ill=np.where(odds > 0, "yes", "no"))


def prepared(frame: pd.DataFrame, test: Source | None = None, **data: Any) -> Prepared:
    target = data.pop("target", "ill")
    return prepare(override(Config(), **data), from_frame(frame, target), test)


def weighted(prepared: Prepared) -> np.ndarray:
    weight = prepared.beside_test.weight
    assert weight is not None
    return weight


@pytest.mark.parametrize(
    ("target", "kind"), [("ill", StratifiedGroupKFold), ("b", GroupKFold)]
)
def test_the_rows_of_a_group_are_in_one_part(
    visits: pd.DataFrame, target: str, kind: type[Any]
) -> None:
    frame = visits.assign(name=visits["patient"]).drop(columns="w")
    found = prepared(frame, target=target, group="patient")
    assert "patient" not in found.X.columns
    assert not set(found.X["name"]) & set(found.X_test["name"])
    assert type(found.cv) is kind
    folds = list(found.cv.split(found.X, found.y, found.beside.group))
    assert len(folds) == 5
    for train, test in folds:
        assert not set(found.X["name"].iloc[train]) & set(found.X["name"].iloc[test])
    assert 0.1 < len(found.X_test) / len(frame) < 0.35


def test_groups_of_many_rows_are_whole_in_one_split() -> None:
    names = np.repeat(np.arange(500), 140)
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"g": names, "name": names, "x": random.normal(size=70_000)})
    found = prepared(frame.assign(y=frame["x"] * 2 + 0.5), target="y", group="g")
    ((train, test),) = found.cv.split(found.X, found.y, found.beside.group)
    assert not set(found.X["name"].iloc[train]) & set(found.X["name"].iloc[test])


def test_too_few_groups_are_refused(visits: pd.DataFrame) -> None:
    few = visits.assign(site=visits["patient"] % 5)
    with pytest.raises(InputError, match=r"at least 6 groups.*'site' has 5"):
        prepared(few, group="site")
    found = prepared(few, group="site", cv=4)
    assert found.beside.group is not None
    assert len(np.unique(found.beside.group)) == 4
    with pytest.raises(InputError, match=r"at least 6 groups.*'site' has 5"):
        prepared(few, from_frame(few, "ill", "test"), group="site", cv=6)


def test_the_last_rows_in_time_test_and_later_folds_judge(visits: pd.DataFrame) -> None:
    found = prepared(visits, time="day")
    assert found.X["day"].is_monotonic_increasing
    assert found.X["day"].max() < found.X_test["day"].min()
    assert len(found.X_test) == 60
    assert isinstance(found.cv, TimeSeriesSplit)
    assert "day" in found.case.roles.used  # type: ignore[union-attr]
    assert "day" not in prepared(visits, time="day", drop=["day"]).case.roles.used  # type: ignore[union-attr]


@pytest.mark.parametrize("layout", ["%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y"])
def test_time_is_read_as_dates_are(visits: pd.DataFrame, layout: str) -> None:
    texts = visits.assign(day=visits["day"].dt.strftime(layout))
    found, plain = prepared(texts, time="day"), prepared(visits, time="day")
    pd.testing.assert_series_equal(found.X["a"], plain.X["a"])
    assert found.y_test.tolist() == plain.y_test.tolist()


def test_rows_of_one_time_are_on_one_side(visits: pd.DataFrame) -> None:
    years = visits.assign(year=np.repeat([2019, 2020, 2021], 100))
    found = prepared(years.sample(frac=1.0, random_state=0), time="year")
    assert set(found.X["year"]) == {2019, 2020}
    assert set(found.X_test["year"]) == {2021}
    with pytest.raises(InputError, match="'year' is the same in all"):
        prepared(visits.assign(year=2020), time="year")


def test_a_table_to_test_on_leaves_the_order_of_time_to_training(
    visits: pd.DataFrame,
) -> None:
    test = from_frame(visits.iloc[200:], "ill", "later")
    found = prepared(visits.iloc[:200], test, time="day")
    assert found.X["day"].is_monotonic_increasing
    assert len(found.X_test) == 100


def test_groups_of_the_test_that_training_has_are_told(visits: pd.DataFrame) -> None:
    half = visits.assign(patient=np.arange(300) // 10)
    told = prepared(half.iloc[:205], from_frame(half.iloc[200:], "ill"), group="patient")
    assert any("1 of the groups of 'patient' to test on" in m for m in told.messages)


@pytest.mark.parametrize(
    ("change", "data", "says"),
    [
        ({}, {"group": "patient", "time": "day"}, "`group` and `time` must not"),
        ({}, {"group": "patiet"}, "Did you mean `patient`"),
        ({}, {"weight": "ill"}, "`weight` names 'ill', which is the target"),
        ({}, {"group": "w", "weight": "w"}, "`group` and `weight` must name different"),
        ({"w": -1.0}, {"weight": "w"}, "at least 0 in every row; 'w' has -1.0 in rows 1,"),
        ({"w": np.nan}, {"weight": "w"}, "at least 0 in every row; 'w' has nan"),
        ({"w": np.inf}, {"weight": "w"}, "a finite number.*'w' has inf"),
        ({"w": "much"}, {"weight": "w"}, "a finite number.*'w' has 'much'"),
        ({"w": 0.0}, {"weight": "w"}, "`weight` must be above 0 somewhere"),
        ({"patient": np.nan}, {"group": "patient"}, "`group` must have a value in every"),
        ({"day": pd.NaT}, {"time": "day"}, "'day' has NaT in rows 1, 2"),
        ({"day": "soon"}, {"time": "day"}, "'day' is the same in all"),
        ({}, {"time": "ill", "target": "a"}, "a date or a number in every row"),
        ({}, {"time": "day", "cv": 270}, "Folds .* must be possible with `time`"),
        ({}, {"weight": "w", "scoring": "matthews"}, "`scoring` must be one of"),
    ],
)
def test_what_cannot_be_is_refused(
    visits: pd.DataFrame, change: dict[str, Any], data: dict[str, Any], says: str
) -> None:
    with pytest.raises((InputError, ConfigError), match=says):
        prepared(visits.assign(**change), **data)


def test_a_metric_and_families_must_take_weights(visits: pd.DataFrame) -> None:
    with pytest.raises(ConfigError, match="takes weights, 'neg_max_error' does not"):
        prepared(visits, target="b", weight="w", scoring="neg_max_error")
    near = {"near": {"estimator": "KNeighborsClassifier"}}
    config = convert({"data": {"weight": "w"}, "families": near}, Config, "")
    with pytest.raises(ConfigError, match="that of `near` does not"):
        prepare(config, from_frame(visits, "ill"))


def test_rows_in_time_of_one_class_are_refused(visits: pd.DataFrame) -> None:
    late = visits.sort_values("day")
    late = late.assign(ill=np.where(np.arange(300) < 100, "no", late["ill"]))
    with pytest.raises(InputError, match="`time` 'day' leaves fold 1 only rows of 'no'"):
        prepared(late, time="day")


@pytest.mark.parametrize("family", ["linear", "random_forest"])
def test_a_class_that_comes_late_is_learnt_from_then_on(
    visits: pd.DataFrame, family: str
) -> None:
    late = visits.sort_values("day")
    late["ill"] = np.where((np.arange(300) > 130) & (late["b"] > 0.5), "very", late["ill"])
    settings = {**LINEAR, "families": [family], "drop": ["day"]}
    result = sweep(late, target="ill", time="day", **settings)
    assert set(result.model.classes_) == {"no", "very", "yes"}
    assert result.test_score is not None
    assert result.test_score > 0.6
    newest = late.assign(ill=np.where(np.arange(300) > 260, "new", late["ill"]))
    result = sweep(newest, target="ill", time="day", **settings)
    assert any("only rows to test on are: `new`" in m for m in result.prepared.messages)


def test_weights_count_in_training_and_in_all_scores(visits: pd.DataFrame) -> None:
    # Rows without weight have the opposite answer: who counts them learns nothing.
    flipped = visits.assign(
        ill=np.where((visits["a"] > 0) == (visits["w"] > 0), "yes", "no")
    )
    result = sweep(flipped, target="ill", weight="w", **LINEAR)
    assert result.best_score > 0.97
    assert result.test_score is not None
    assert result.test_score > 0.97
    found, model = result.prepared, result.model
    expected = accuracy_score(
        found.y_test, model.predict(found.X_test), sample_weight=weighted(found)
    )
    assert result.test_score == pytest.approx(expected)
    same = DummyClassifier().fit(found.X, found.y, sample_weight=found.beside.weight)
    expected = same.score(found.X_test, found.y_test, sample_weight=weighted(found))
    assert result.baseline == pytest.approx(expected)
    plain = sweep(flipped.drop(columns="w"), target="ill", **LINEAR)
    assert plain.best_score < 0.8


def test_a_model_needs_none_of_these_columns(visits: pd.DataFrame) -> None:
    model = mlopt.sweep(
        visits, target="ill", group="patient", weight="w", drop=["day"], **LINEAR
    )
    assert len(model.predict(visits[["a", "b"]])) == 300
    text = model.report_
    assert "Groups of &#x27;patient&#x27;" in text or "Groups of 'patient'" in text


def test_results_say_what_was_used(visits: pd.DataFrame, tmp_path: Path) -> None:
    result = sweep(
        visits, target="ill", group="patient", weight="w", output=tmp_path, **LINEAR
    )
    told = json.loads((tmp_path / "result.json").read_text())
    assert (told["group"], told["weight"], told["time"]) == ("patient", "w", None)
    for said in (result.describe(), "\n".join(result.prepared.messages)):
        assert "groups of 'patient': 24 to search on" in said
        assert "weights of 'w'" in said
    assert "StratifiedGroupKFold" in (tmp_path / "plan.txt").read_text()
    report = (tmp_path / "report.html").read_text()
    assert "Weights of" in report
    plan = explain(visits, "ill", time="day", families=["linear"])
    assert "TimeSeriesSplit" in plan.explain()


def test_a_study_of_other_groups_or_weights_is_not_gone_on_with(
    visits: pd.DataFrame, tmp_path: Path
) -> None:
    turned = visits[["w", "patient"]][::-1].set_axis(visits.index)
    frames = [
        visits,
        visits.assign(w=turned["w"]),
        visits.assign(patient=turned["patient"]),
    ]
    kinds: list[dict[str, Any]] = [{}, {"time": "day"}, {"group": "patient", "weight": "w"}]
    tried = [(frames[0], kinds[0]), (frames[0], kinds[1]), *((f, kinds[2]) for f in frames)]
    settings: dict[str, Any] = {**LINEAR, "target": "ill", "test": visits}
    made = {
        sweep(frame, output=tmp_path, **settings, **kind).search.study_name
        for frame, kind in tried
    }
    assert len(made) == len(tried)
    again = sweep(visits, output=tmp_path, **settings, **kinds[2])
    assert again.search.study_name in made
    named: dict[str, Any] = {
        "storage": f"sqlite:///{tmp_path / 'own.db'}", "study_name": "own", "weight": "w"
    }  # fmt: skip
    sweep(visits, **settings, **named)
    with pytest.raises(StudyError, match="`sample_weight` differs"):
        sweep(frames[1], **settings, **named)


def test_a_fit_uses_weights(visits: pd.DataFrame, tmp_path: Path) -> None:
    flipped = visits.assign(
        ill=np.where((visits["a"] > 0) == (visits["w"] > 0), "yes", "no")
    )
    flipped.to_csv(tmp_path / "v.csv", index=False)
    config = override(Config(), path=str(tmp_path / "v.csv"), target="ill", weight="w")
    fitted = fit_one(config, "linear")
    assert fitted.score > 0.97
    assert "weights of 'w'" in fitted.describe(Path("m"))


def test_the_command_line_and_a_file_name_them(
    visits: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "v.csv", tmp_path / "out"
    visits.to_csv(path, index=False)
    few = ["--families", "linear", "--n-trials", "2", "--json", "--output", str(out)]
    columns = ["--target", "ill", "--group", "patient", "--weight", "w"]
    with pytest.raises(SystemExit) as ended:
        main(["sweep", str(path), *columns, *few])
    assert not ended.value.code
    assert json.loads(capsys.readouterr().out)["group"] == "patient"
    visits[["a", "b", "day"]].to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(SystemExit) as ended:
        main(["predict", str(out), str(tmp_path / "new.csv")])
    assert not ended.value.code
    capsys.readouterr()
    config = tmp_path / "c.toml"
    config.write_text('[data]\npath = "v.csv"\ntarget = "ill"\ntime = "day"\n')
    with pytest.raises(SystemExit) as ended:
        main(["explain", str(config)])
    assert not ended.value.code
    assert "TimeSeriesSplit" in capsys.readouterr().out


def test_the_border_of_time_is_the_nearest_that_parts_no_time(
    visits: pd.DataFrame,
) -> None:
    for counts, left in (([30, 240, 30], 270), ([10, 270, 20], 280), ([200, 40, 60], 240)):
        frame = visits.assign(year=np.repeat([2019, 2020, 2021], counts))
        assert len(prepared(frame, time="year", drop=["day"]).X) == left


def test_categories_of_many_values_meet_folds_with_fewer_classes() -> None:
    random, rows = np.random.default_rng(0), 300
    frame = pd.DataFrame({"t": np.arange(rows), "a": random.normal(size=rows)})
    frame["city"] = [f"c{number}" for number in random.integers(0, 40, rows)]
    y = np.where(frame["a"] > 0, "yes", "no").astype(object)
    y[(np.arange(rows) > 150) & (random.random(rows) < 0.3)] = "very"
    found = sweep(
        frame.assign(y=y), target="y", time="t", drop=["t"], families=["random_forest"],
        n_trials=1, cv=3, scoring="accuracy", timeout=60.0,
    )  # fmt: skip
    assert set(found.model.predict(frame)) <= {"yes", "no", "very"}


def test_a_fit_needs_nothing_for_folds_that_nobody_cuts(
    visits: pd.DataFrame, tmp_path: Path
) -> None:
    path = str(tmp_path / "visits.csv")
    order = np.argsort(visits["day"].to_numpy())
    late = visits.iloc[order].assign(site=np.arange(300) // 150)
    late["ill"] = np.where((np.arange(300) > 120) & (late["a"] > 0), "yes", "no")
    late.to_csv(path, index=False)
    config = override(Config(), path=path, target="ill")
    for own in ({"time": "day"}, {"group": "site"}):
        assert fit_one(override(config, **own), "linear").score > 0.4


def test_folds_of_groups_promise_no_class_a_place() -> None:
    random, rows = np.random.default_rng(0), 400
    y = np.where(random.random(rows) > 0.5, "a", "b")
    y[0:4] = y[40:44] = "c"
    frame = pd.DataFrame({"g": np.repeat(np.arange(10), 40), "x": random.normal(size=rows)})
    for seed in range(6):
        given: dict[str, Any] = {"group": "g", "rare_classes": "drop", "seed": seed}
        found = prepared(frame.assign(y=y), target="y", **given)
        assert len(found.X)


def test_a_fold_that_a_metric_says_nothing_of_is_refused() -> None:
    random, rows = np.random.default_rng(0), 600
    frame = pd.DataFrame({"t": np.arange(rows), "a": random.normal(size=rows)})
    late = (frame["t"] < 60) | (frame["t"] > 200)
    frame["y"] = np.where(late & (frame["a"] > 0), 1, 0)
    with pytest.raises(InputError, match=r"`time` 't' leaves fold 1 no roc_auc"):
        prepared(frame, target="y", time="t", drop=["t"], scoring="roc_auc")
    assert len(prepared(frame, target="y", time="t", drop=["t"], scoring="accuracy").X)


def test_rows_to_test_on_must_count(visits: pd.DataFrame) -> None:
    frame = visits.sort_values("day").assign(w=(np.arange(300) < 230) * 1.0)
    with pytest.raises(InputError, match="must be above 0 in the rows that are set aside"):
        prepared(frame, time="day", weight="w")


def test_weights_are_read_as_features_are(visits: pd.DataFrame) -> None:
    commas = visits.assign(w=["0,5", "1,5"] * 150)
    assert set(weighted(prepared(commas, weight="w"))) == {0.5, 1.5}
    with pytest.raises(InputError, match="`weight` must have a finite number"):
        prepared(visits, weight="day")
