"""Predictions for many files: each as if alone, whole or not there, and resumable."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from tests import forks
from tests.clusters import running_workers
from tests.scoring.people import people

import mlopt
from mlopt.cli import main
from mlopt.cluster.hands import Hands
from mlopt.errors import InputError
from mlopt.prices import price
from mlopt.scoring import hands as hands_module
from mlopt.scoring import scorer as module
from mlopt.scoring.blocks import blocks_of
from mlopt.scoring.files import JOURNAL
from mlopt.scoring.hands import HERE, Pace, where_to
from mlopt.statuses import BAD_INPUT, DONE, FAILED
from mlopt.sweep.formulas import csv_of
from mlopt.sweep.predict import predict_file


def run(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    return int(caught.value.code or 0)


def same(output: Path, model: Path, source: Path) -> bool:
    alone = csv_of(predict_file(model, str(source), proba=True))
    # float32 within a model: blocks add up in another order
    pd.testing.assert_frame_equal(
        pd.read_csv(output), pd.read_csv(io.BytesIO(alone)), rtol=1e-6
    )
    return True


def test_each_file_gets_what_it_gets_alone(
    model: Path, files: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    (files / "sub").mkdir()
    people(20, 20).to_csv(files / "sub" / "p0.csv", index=False)
    paths = [files, files / "sub"]
    done = mlopt.predict(model, paths, output=out, proba=True)
    assert len(done.rows) == 10
    assert not done.failed
    assert sum(done.rows.values()) == sum(range(50, 56)) + 3 * 80 + 20
    for source in [*files.glob("p*"), files / "sub" / "p0.csv"]:
        name = source.name if source.suffix == ".csv" else f"{source.name}.csv"
        assert same(out / source.relative_to(files).with_name(name), model, source)


def test_a_pattern_does_not_mean_what_it_has_led_to(model: Path, tmp_path: Path) -> None:
    for place in (tmp_path / "a.csv", tmp_path / "in" / "b.csv"):
        place.parent.mkdir(exist_ok=True)
        people(20, 30).to_csv(place, index=False)
    pattern, out = f"{tmp_path}/**/*.csv", tmp_path / "out"
    first = mlopt.predict(model, pattern, output=out)
    assert len(first.rows) == 2
    again = mlopt.predict(model, pattern, output=out)
    assert not again.failed
    assert len(again.skipped) == 2
    assert not again.rows


def test_a_large_file_is_read_in_blocks_that_give_the_same(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BLOCK", 2000)
    read: list[int] = []

    def counted(*given: Any, **more: Any) -> Any:
        for block in blocks_of(*given, **more):
            read.append(len(block.X))
            yield block

    monkeypatch.setattr(module, "blocks_of", counted)
    table = people(1000, 3)
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_csv(tmp_path / "b.csv.gz", index=False)
    table.to_json(tmp_path / "c.jsonl", orient="records", lines=True)
    table.to_parquet(tmp_path / "d.parquet")
    for name in ("a.csv", "b.csv.gz", "c.jsonl", "d.parquet"):
        read.clear()
        done = mlopt.predict(model, tmp_path / name, output=tmp_path / "out", proba=True)
        assert not done.failed
        (output,) = done.rows
        assert same(output, model, tmp_path / name)
        assert len(read) > 3
        assert sum(read) == 1000


@pytest.mark.parametrize("change", ["text", "fraction", "notation", "superfluous", "gap"])
def test_a_column_that_changes_far_down_is_read_as_in_the_whole_file(
    model: Path, tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BLOCK", 2000)
    table = people(600, 4).astype(object)
    if change == "text":  # all of it is then text to the reader, number by number
        table.loc[500, "age"] = "old"
    elif change == "fraction":  # 1 is then 1.0, which the model has not seen as a category
        table.loc[500:, "code"] = 1.5
    elif change == "notation":
        table["wage"] = [f"${value:,.2f}" for value in table["wage"].fillna(1.0)]
    elif change == "superfluous":
        table["note"] = np.where(np.arange(600) < 500, "1", "late")
    else:
        table.loc[:300, ["code", "wage"]] = np.nan
    table.to_csv(tmp_path / "a.csv", index=False)
    done = mlopt.predict(model, tmp_path / "a.csv", output=tmp_path / "out", proba=True)
    assert not done.failed
    assert same(tmp_path / "out" / "a.csv", model, tmp_path / "a.csv")


def test_what_must_be_read_whole_must_fit(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = people(5000, 4).astype(object)
    table.loc[4900, "age"] = "old"
    table.to_csv(tmp_path / "a.csv", index=False)
    done = mlopt.predict(
        model, tmp_path / "a.csv", output=tmp_path / "out", memory="100 kB"
    )
    (reason,) = done.failed.values()
    assert "more than the 98 KiB that may be taken" in reason
    assert not list((tmp_path / "out").glob("*.csv"))


def test_matrices_and_texts_are_predicted_by_models_of_them(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    X = sparse.random_array((60, 8), density=0.4, rng=random, format="csr")
    ridge = Ridge().fit(X, np.arange(60.0))
    svm, npz, out = tmp_path / "a.svm", tmp_path / "b.npz", tmp_path / "out"
    dump_svmlight_file(X[:, :7], np.arange(60), str(svm), zero_based=False)
    sparse.save_npz(npz, sparse.csr_matrix(X))
    done = mlopt.predict(ridge, [svm, npz], output=out)
    assert not done.failed
    assert np.allclose(pd.read_csv(out / "b.npz.csv")["prediction"], ridge.predict(X))
    words = make_pipeline(CountVectorizer(), LogisticRegression())
    texts = ["good film", "bad film", "so good", "so bad"]
    words.fit(texts, [1, 0, 1, 0])
    lines = [json.dumps({"text": text, "id": n}) for n, text in enumerate(texts)]
    (tmp_path / "c.jsonl").write_text("\n".join(lines))
    done = mlopt.predict(words, tmp_path / "c.jsonl", output=out)
    assert list(pd.read_csv(out / "c.jsonl.csv")["prediction"]) == [1, 0, 1, 0]


def write_matrix(kind: str, X: Any, path: Path) -> None:
    """Rows in a format of matrices; of LIBSVM as they are numbered there."""
    y = np.arange(X.shape[0])
    if kind.startswith("from"):
        dump_svmlight_file(X, y, str(path), zero_based=kind == "from 0")
        return
    with path.open("wb") as file:
        if kind == "csr":
            sparse.save_npz(file, sparse.csr_matrix(X))
        elif kind == "columns":
            np.savez(file, **{f"x{n}": column for n, column in enumerate(X.toarray().T)})
        elif kind == "npy":
            np.save(file, np.asfortranarray(X.toarray()))
        else:
            save = np.savez if kind == "stored" else np.savez_compressed
            save(file, X=X.toarray().reshape(-1, 2, 4), y=y)


@pytest.mark.parametrize(
    ("kind", "whole_after_all"),
    [("from 0", False), ("from 1", False), ("from 0, late", True), ("csr", False),
     ("columns", False), ("stored", False), ("compressed", False), ("npy", True)],
)  # fmt: skip
def test_large_matrices_are_read_in_blocks_that_give_the_same(
    kind: str, whole_after_all: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = sparse.random_array((200, 8), density=0.5, rng=np.random.default_rng(0))
    X = X.tolil()
    X[:, 7] = 1.0
    X[0, 0] = 1.0
    if kind == "from 0, late":
        X[:150, 0] = 0.0
        X[150, 0] = 2.0
    X = sparse.csr_array(X)
    ridge = Ridge().fit(X, X @ np.arange(8.0))
    path, lengths = tmp_path / "rows", list[int]()
    write_matrix(kind.removesuffix(", late"), X, path)

    def counted(*given: Any, **more: Any) -> Any:
        for block in blocks_of(*given, **more):
            lengths.append(block.X.shape[0])
            yield block

    monkeypatch.setattr(module, "blocks_of", counted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the model knows no names
        whole = mlopt.predict(ridge, path, output=tmp_path / "whole")
        assert lengths == [200]
        lengths.clear()
        monkeypatch.setattr(module, "BLOCK", 1500)
        done = mlopt.predict(ridge, path, output=tmp_path / "blocks")
    assert not whole.failed
    assert not done.failed
    assert (lengths[-1] == 200) == whole_after_all
    assert whole_after_all or (len(lengths) > 3 and sum(lengths) == 200)
    for folder in ("whole", "blocks"):
        found = pd.read_csv(tmp_path / folder / "rows.csv")["prediction"]
        assert np.allclose(found, ridge.predict(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["from 1", "csr", "stored"])
def test_matrices_that_end_early_or_do_not_fit_fail_whole(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BLOCK", 1500)
    X = sparse.csr_array(np.ones((200, 8)))
    ridge, path = Ridge().fit(np.ones((9, 7)), np.arange(9)), tmp_path / "rows"
    write_matrix(kind, X, path)
    done = mlopt.predict(ridge, path, output=tmp_path / "out")
    assert list(done.failed) == [path]
    path.write_bytes(path.read_bytes()[:-700])
    done = mlopt.predict(ridge, path, output=tmp_path / "out")
    assert list(done.failed) == [path]
    assert not list((tmp_path / "out").glob("*.csv"))


def test_a_bad_file_fails_alone_and_is_listed(
    model: Path, files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "p2.csv").write_bytes(b"\x00\x01")
    people(30, 1).drop(columns="age").to_csv(files / "p3.csv", index=False)
    out = tmp_path / "out"
    assert run("predict", model, files, files / "none.csv", "--output", out) == FAILED
    streams = capsys.readouterr()
    assert streams.out.startswith("7 files, ")
    told = [line for line in streams.err.splitlines() if "failed" in line]
    assert len([line for line in told if line.startswith("mlopt: ")]) == 3
    assert any("p2.csv failed: " in line and "binary" in line for line in told)
    assert any("'age' is missing" in line for line in told)
    assert any("none.csv` does not exist" in line for line in told)
    assert not (out / "p2.csv").exists()
    assert len(list(out.glob("*.csv"))) == 7
    events = [json.loads(line) for line in streams.err.splitlines() if line[0] == "{"]
    assert [event["done"] for event in events] == list(range(1, 11))


@pytest.mark.cluster
def test_files_on_workers_are_what_they_are_here(
    model: Path,
    files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (files / "bad.csv").write_text("age\n1\n")
    changing = people(9000, 3)
    changing["wage"] = changing["wage"].astype(object)
    changing.loc[8000, "wage"] = "much"
    changing.to_csv(files / "changing.csv", index=False)
    here, there = tmp_path / "here", tmp_path / "there"
    monkeypatch.chdir(tmp_path)  # workers are elsewhere
    with running_workers() as address:
        # Small blocks, of which the last is not as the others.
        given: list[str | Path] = ["predict", model, "data", "--memory", "4MB"]
        assert run(*given, "--output", here) == FAILED
        assert run(*given, "--output", "there", "--scheduler", address) == FAILED
        assert "bad.csv failed: " in capsys.readouterr().err
        (files / "bad.csv").unlink()
        assert run(*given, "--output", "there", "--scheduler", address) == DONE
        assert "0 files, 0 rows" in capsys.readouterr().out
    outputs = sorted(path.name for path in here.glob("*.csv"))
    assert len(outputs) == 10
    assert outputs == sorted(path.name for path in there.glob("*.csv"))
    for name in outputs:
        assert (here / name).read_bytes() == (there / name).read_bytes()
    assert run("predict", model, files / "p1.csv", "--scheduler", address) == BAD_INPUT


SLOWLY = """
import sys, time
from mlopt.scoring.predict import predict
from mlopt.scoring.scorer import Scorer
score = Scorer.score
def slowly(self, block):
    time.sleep(.03)
    return score(self, block)
Scorer.score = slowly
predict(sys.argv[1], sys.argv[2], output=sys.argv[3])
"""


@pytest.mark.cluster
def test_a_killed_run_leaves_whole_files_and_the_next_does_the_rest(
    model: Path, tmp_path: Path
) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    for number in range(30):
        people(40, number).to_csv(data / f"{number:02}.csv", index=False)
    worker = forks.Popen([sys.executable, "-c", SLOWLY, str(model), str(data), str(out)])
    ends = time.monotonic() + 60
    while len(list(out.glob("*.csv"))) < 8:
        assert worker.poll() is None
        assert time.monotonic() < ends
        time.sleep(0.02)
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    there = list(out.glob("*.csv"))
    assert 8 <= len(there) < 30
    written = {path: path.stat().st_mtime_ns for path in there}
    assert all(len(pd.read_csv(path)) == 40 for path in there)
    done = mlopt.predict(model, data, output=out)
    assert len(done.rows) + len(done.skipped) == 30
    # Files that were in their place, but not yet in the journal, were the open ones.
    again = [path for path in written if path in done.rows]
    assert len(again) <= 4
    assert all(path.stat().st_mtime_ns == written[path] for path in done.skipped)
    assert sorted(p.name for p in out.iterdir()) == [
        *(f"{number:02}.csv" for number in range(30)),
        JOURNAL,
    ]


def test_paths_that_cannot_work_are_refused(
    model: Path, files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "p0").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="must not both be written"):
        mlopt.predict(model, [files / "p0", files / "p0.csv"], output=tmp_path / "out")
    with pytest.raises(InputError, match="there is none"):
        mlopt.predict(model, str(files / "*.xml"), output=tmp_path / "out")
    with pytest.raises(InputError, match="must not be what is read"):
        mlopt.predict(model, files / "p1.csv", output=files)
    assert run("predict", model) == BAD_INPUT
    assert run("predict", model, files) == BAD_INPUT
    assert "--output DIR" in capsys.readouterr().err
    assert run("predict", model, files / "p1.csv", "--memory", "1GB") == BAD_INPUT
    assert run("predict", model, files / "p*.csv", "--output", tmp_path / "o") == DONE


@pytest.mark.parametrize(
    ("left", "largest", "chosen"),
    [(1000, 10, "2 processes"), (50, 10, HERE), (1000, 600, HERE)],
)
def test_processes_are_started_where_what_is_left_pays_for_them(
    left: int, largest: int, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "process_time", lambda: now[0])
    pace = Pace(90 + left)
    for _ in range(9):
        assert where_to(pace, 2, largest, 500) is None
        now[0] += 0.5  # a second for 20 bytes
        pace.saw(10)
    found = where_to(pace, 2, largest, 500)
    assert found is not None
    assert found.chosen == chosen
    here, there = left / 20, left / 40 + 1.5 * price("apart.start")
    assert found.predicted == pytest.approx(there if chosen != HERE else here)


@pytest.mark.cluster
def test_processes_of_its_own_predict_as_this_one_does(
    model: Path, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        people(40, number).to_csv(files / f"q{number}.csv", index=False)
    (files / "q12.csv").write_text("age\n1\n")
    changing = people(9000, 3).astype(object)
    changing.loc[8900, "age"] = "old"
    changing.to_csv(files / "r.csv", index=False)  # not as its first block
    given: dict[str, Any] = {"paths": files, "memory": "4MB"}
    here = mlopt.predict(model, **given, output=tmp_path / "here", threads=1)
    start, call, numbers = Hands.start, Hands.call, set[int]()

    def start_and_wait(hands: Hands) -> None:
        start(hands)
        while not hands.there:
            assert hands.failed is None
            time.sleep(0.01)

    def killing(hands: Hands, method: str, given: Any) -> Any:
        if not numbers:
            hand = next(iter(hands._all))
            os.kill(hand.number, signal.SIGKILL)
        numbers.update(hand.number for hand in list(hands._all))
        return call(hands, method, given)

    monkeypatch.setattr(hands_module, "price", lambda name: 0.0)
    monkeypatch.setattr(Hands, "start", start_and_wait)
    monkeypatch.setattr(Hands, "call", killing)
    there = mlopt.predict(model, **given, output=tmp_path / "there", threads=2)
    assert there.plan_ is not None
    assert len(there.rows) == len(here.rows) == 29
    assert there.failed == here.failed
    assert list(here.failed) == [files / "q12.csv"]
    for output in here.rows:
        assert output.read_bytes() == (tmp_path / "there" / output.name).read_bytes()
    assert len(numbers) >= 2
    for number in numbers:
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)
    again = mlopt.predict(model, **given, output=tmp_path / "there", threads=1)
    assert (len(again.skipped), len(again.rows)) == (29, 0)
