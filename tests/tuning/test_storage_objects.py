"""`storage=` as an object of Optuna, and addresses that hold a password."""

from __future__ import annotations

import traceback
from pathlib import Path

import optuna
import pytest
from optuna.storages import InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB

import mlopt
from mlopt.errors import StudyError
from mlopt.tuning.storage.store import open_store

X, Y = make_classification(60, 4, random_state=0)


def search(storage: object) -> mlopt.ModelSearchCV:
    space = {"var_smoothing": [1e-9, 1e-3]}
    return mlopt.ModelSearchCV(GaussianNB(), space, cv=2, n_trials=2, storage=storage)


@pytest.mark.slow
def test_a_storage_of_optuna_is_written_to_and_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    storage = RDBStorage(f"sqlite:///{tmp_path / 'study.db'}")
    for _ in range(2):
        search(storage).fit(X, Y)
        study = optuna.load_study(study_name="mlopt", storage=storage)
        assert [t.state.name for t in study.trials] == ["COMPLETE"] * 2
    study = optuna.load_study(study_name="mlopt", storage=storage)
    search(study._storage).fit(X, Y)  # as Optuna keeps it in a study
    storage.engine.dispose()
    files = [path.name for path in tmp_path.iterdir() if path.name[0] != "."]
    assert all(name.startswith("study.db") for name in files)


def test_other_storages_of_optuna_are_refused_by_name(tmp_path: Path) -> None:
    journal = JournalStorage(JournalFileBackend(str(tmp_path / "journal.log")))
    for storage in (InMemoryStorage(), journal):
        with pytest.raises(StudyError, match=type(storage).__name__):
            search(storage).fit(X, Y)
    with pytest.raises(StudyError, match="`storage` must be"):
        search(3).fit(X, Y)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:secret@host:port/name",
        "nothing://me:secret@host/name",
        "postgresql://me:secret@host.invalid:1/name",
        "mysql+pymysql://me:secret@host.invalid/name?password=secret",
        "sqlite://me:secret@/nowhere/at/all.db",
        "postgresql://me:secret@host/a b{c}",
    ],
)
def test_no_error_shows_a_password(address: str) -> None:
    with pytest.raises(StudyError) as caught:
        open_store(address)
    shown = "".join(traceback.format_exception(caught.value))
    own = [line for line in shown.splitlines() if "secret" in line]
    assert not own, own
