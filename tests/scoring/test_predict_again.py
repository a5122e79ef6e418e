"""What was predicted is not predicted again; the journal says what was."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from tests.scoring.people import people

import mlopt
from mlopt.errors import InputError
from mlopt.scoring import scorer as module
from mlopt.scoring.files import JOURNAL


def test_the_same_call_again_does_what_is_left(
    model: Path, files: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    first = mlopt.predict(model, files, output=out)
    assert len(first.rows) == 9
    again = mlopt.predict(model, files, output=out)
    assert (again.rows, again.skipped) == ({}, first.rows)
    people(30, 40).to_csv(files / "p1.csv", index=False)
    (out / "p4.csv").unlink()
    (out / "p5.csv").write_text("torn")
    changed = mlopt.predict(model, files, output=out)
    assert {path.name for path in changed.rows} == {"p1.csv", "p4.csv", "p5.csv"}
    # Another question, or another model, is none of what is there.
    assert len(mlopt.predict(model, files, output=out, proba=True).rows) == 9
    with (out / JOURNAL).open("ab") as journal:
        journal.write(b'{"output": "p1.csv", "ro')  # as a kill leaves it
    assert not mlopt.predict(model, files, output=out, proba=True).rows


def test_a_file_that_changes_while_it_is_predicted_is_not_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BLOCK", 20_000)
    pd.DataFrame({"a": np.ones(30_000)}).to_csv(tmp_path / "big.csv", index=False)
    model = Ridge().fit(pd.DataFrame({"a": [0.0, 1.0]}), [0.0, 1.0])
    score, seen = module.Scorer.score, list[Any]()

    def changing(self: Any, block: Any) -> Any:
        if not seen:
            with (tmp_path / "big.csv").open("r+b") as file:
                file.seek(2)
                file.write(b"9")  # after its rows were read
        seen.append(block)
        return score(self, block)

    monkeypatch.setattr(module.Scorer, "score", changing)

    def skipped() -> int:
        found = mlopt.predict(model, [tmp_path / "big.csv"], output=tmp_path / "out")
        return len(found.skipped)

    assert [skipped() for _ in range(3)] == [0, 0, 1]
    assert len(seen) > 3  # of several blocks


def test_the_journal_is_written_into_no_file_of_others(model: Path, tmp_path: Path) -> None:
    rows = people(20, 3)
    rows.to_json(tmp_path / JOURNAL, orient="records", lines=True)
    before = (tmp_path / JOURNAL).read_bytes()
    with pytest.raises(InputError, match="must not be what is read"):
        mlopt.predict(model, tmp_path / JOURNAL, output=tmp_path)
    (tmp_path / "in").mkdir()
    rows.to_csv(tmp_path / "in" / "rows.csv", index=False)
    with pytest.raises(InputError, match="but it is another file"):
        mlopt.predict(model, tmp_path / "in" / "rows.csv", output=tmp_path)
    assert (tmp_path / JOURNAL).read_bytes() == before
    (tmp_path / JOURNAL).write_text('{"input": "q", "output": "a"}\n')
    with pytest.raises(InputError, match="but it is another file"):
        mlopt.predict(model, tmp_path / "in" / "rows.csv", output=tmp_path)
    (tmp_path / JOURNAL).write_text('{"sou')  # as a full disk leaves it
    assert mlopt.predict(model, tmp_path / "in" / "rows.csv", output=tmp_path).rows


def test_a_model_in_memory_is_known_by_what_it_has_learnt(tmp_path: Path) -> None:
    X = np.arange(12.0).reshape(6, 2)
    pd.DataFrame(X, columns=["a", "b"]).to_csv(tmp_path / "rows.csv", index=False)

    def again(model: Any) -> mlopt.Predicted:
        return mlopt.predict(model, tmp_path / "rows.csv", output=tmp_path / "out")

    frame = pd.read_csv(tmp_path / "rows.csv")
    one, other = (mlopt.make_pipeline(Ridge(a)).fit(frame, X[:, 0]) for a in (1, 2))
    models = [one, pickle.loads(pickle.dumps(one)), other]
    assert [len(again(model).skipped) for model in models] == [0, 1, 0]
