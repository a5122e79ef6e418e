"""A stored study: what survives, what is refused, and what it costs."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import optuna
import pytest
import sqlalchemy
from filelock import FileLock
from tests import forks

from mlopt.errors import StudyError
from mlopt.tuning.samplers.proposer import Proposer
from mlopt.tuning.space.space import Space
from mlopt.tuning.storage import database
from mlopt.tuning.storage.database_store import DatabaseStore
from mlopt.tuning.storage.records import Recorded, recorded
from mlopt.tuning.storage.store import NullStore, Store, open_store

SPACE = Space.of(
    {"C": optuna.distributions.FloatDistribution(0.0, 1.0), "kernel": ["a", "b"]}
)

# One search, slow enough to be killed in the middle: it prints each rung it has written.
SEARCH = """
import sys, time
from mlopt.tuning.samplers.proposer import Proposer
from mlopt.tuning.storage.store import open_store
from mlopt.tuning.space.space import Space
from optuna.distributions import FloatDistribution

space = Space.of({"C": FloatDistribution(0.0, 1.0), "kernel": ["a", "b"]})
path, name, pause, n = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
with open_store(path, name, space.fingerprint()) as store:
    found = {r.number: r for r in store.recorded()}
    search = Proposer(space, "random", seed=1, n_trials=n, recorded=found.values())
    trained = 0
    while search.proposed < n:
        for proposal in search.ask(4):
            old = found.get(proposal.number)
            if old is not None and old.finished:
                score = old.rungs[9]["score"][0]
            else:
                score, trained = proposal.params["C"], trained + 1
            for passes in (3, 9):
                search.report(proposal.number, passes, score, {"score": [score]})
            search.tell(proposal.number, score)
        store.write(search.changed())
        store.flush()
        print(search.proposed, flush=True)
        time.sleep(pause)
print("trained", trained)
"""


def run(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SEARCH, *map(str, arguments)]
    return forks.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def search_a_while(store: Store, n: int = 6) -> Proposer:
    """Two rungs of ``n`` trials, of which one fails, one is pruned, one goes on."""
    search = Proposer(SPACE, "random", seed=1, recorded=store.recorded())
    search.ask(n)
    for number in range(n):
        search.report(number, 3, 0.1 * number, {"score": [0.1 * number, 0.2]})
    store.write(search.changed())
    search.tell(0, None, "FAIL", "it raised")
    search.tell(1, None, "PRUNED", "too slow")
    for number in range(2, n - 1):
        search.report(number, 9, 0.2 * number, {"score": [0.2 * number, 0.2]})
        search.note(number, seconds=1.5)
        search.tell(number, 0.2 * number)
    store.write(search.changed())
    return search


@pytest.mark.slow
def test_what_is_written_is_found_again(tmp_path: Path) -> None:
    with open_store(tmp_path / "study.db") as store:
        search = search_a_while(store)
    with open_store(tmp_path / "study.db") as store:
        found = store.recorded()
    assert found == [recorded(trial) for trial in search.study.trials]
    assert [r.state for r in found] == ["FAIL", "PRUNED", *["COMPLETE"] * 3, "RUNNING"]


def test_the_stored_study_is_optunas(tmp_path: Path) -> None:
    """The dashboard and Optuna's own functions read it as any other."""
    with open_store(tmp_path / "study.db", "mine") as store:
        search = search_a_while(store)
    study = optuna.load_study(study_name="mine", storage=f"sqlite:///{tmp_path}/study.db")
    for stored, kept in zip(study.trials, search.study.trials, strict=True):
        assert stored.params == kept.params
        assert stored.distributions == kept.distributions
        assert stored.state == kept.state
        assert stored.values == kept.values
        assert stored.intermediate_values == kept.intermediate_values
        assert stored.user_attrs == kept.user_attrs
        assert stored.datetime_start == kept.datetime_start
        assert stored.datetime_complete == kept.datetime_complete
    assert study.best_trial.number == search.study.best_trial.number
    study.optimize(lambda trial: trial.suggest_float("C", 0, 1), n_trials=1)
    assert study.trials[-1].number == 6


@pytest.mark.slow
def test_the_same_is_stored_as_optuna_would(tmp_path: Path) -> None:
    """Row by row, against Optuna's own writing of the same trials."""
    with open_store(tmp_path / "ours.db") as store:
        search = search_a_while(store)
    theirs = optuna.storages.RDBStorage(f"sqlite:///{tmp_path}/theirs.db")
    study = theirs.create_new_study([optuna.study.StudyDirection.MAXIMIZE], "mlopt")
    for trial in search.study.trials:
        theirs.create_new_trial(study, trial)
    tables = {
        "trials": "number, state, datetime_start, datetime_complete",
        "trial_params": "trial_id, param_name, param_value, distribution_json",
        "trial_values": "trial_id, objective, value, value_type",
        "trial_user_attributes": "trial_id, key, value_json",
        "trial_intermediate_values": "trial_id, step, intermediate_value",
    }
    for table, columns in tables.items():
        rows = [
            sorted(query(tmp_path / name, f"select {columns} from {table}"))
            for name in ("ours.db", "theirs.db")
        ]
        assert rows[0] == rows[1], table
        assert rows[0]
    theirs.engine.dispose()


def query(path: Path, statement: str) -> list[tuple]:
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        rows = [tuple(row) for row in connection.execute(sqlalchemy.text(statement))]
    engine.dispose()
    return rows


@pytest.mark.slow
def test_a_finished_trial_never_changes(tmp_path: Path) -> None:
    with open_store(tmp_path / "study.db") as store:
        before = [recorded(t) for t in search_a_while(store).study.trials]
    with open_store(tmp_path / "study.db") as store:
        again = Proposer(SPACE, "random", seed=1, recorded=store.recorded())
        for proposal in again.ask(6):
            again.report(proposal.number, 3, -1.0)
            again.tell(proposal.number, -1.0)
        store.write(again.changed())
    with open_store(tmp_path / "study.db") as store:
        after = store.recorded()
    assert after[:5] == before[:5]
    assert (after[5].state, after[5].score) == ("COMPLETE", -1.0)


def test_writing_twice_is_writing_once(tmp_path: Path) -> None:
    with open_store(tmp_path / "study.db") as store:
        search = search_a_while(store)
        store.write(search.study.trials)
        store.write(search.study.trials)
    assert len(query(tmp_path / "study.db", "select * from trials")) == 6
    assert len(query(tmp_path / "study.db", "select * from trial_params")) == 12


def test_without_a_storage_nothing_is_kept() -> None:
    with open_store(None) as store:
        assert isinstance(store, NullStore)
        search_a_while(store)
        assert store.recorded() == []


def test_what_a_killed_process_was_training_waits(tmp_path: Path) -> None:
    """Nobody trains it, and a dashboard must not say so for ever."""
    with open_store(tmp_path / "study.db") as store:
        search_a_while(store)
    open_store(tmp_path / "study.db").close()
    states = query(tmp_path / "study.db", "select state from trials order by number")
    assert states == [("FAIL",), ("PRUNED",), *[("COMPLETE",)] * 3, ("WAITING",)]


def test_a_trial_lasts_as_long_as_it_trained(tmp_path: Path) -> None:
    """Not as long as the batch that it was proposed in."""
    with open_store(tmp_path / "study.db") as store:
        search = search_a_while(store)
    kept = search.study.trials
    stored = optuna.load_study(
        study_name="mlopt", storage=f"sqlite:///{tmp_path}/study.db"
    ).trials
    for trials in (kept, stored):
        lasted = [t.duration.total_seconds() for t in trials if t.value is not None]
        assert lasted[1:] == [1.5] * 3


def test_a_rung_is_one_transaction(tmp_path: Path) -> None:
    commits: list[object] = []
    with open_store(tmp_path / "study.db") as store:
        assert isinstance(store, DatabaseStore)
        sqlalchemy.event.listen(store._storage.engine, "commit", commits.append)
        search_a_while(store, n=20)
        store.flush()
        assert len(commits) == 2


@pytest.mark.slow
def test_three_rungs_of_64_trials_cost_well_under_a_second(tmp_path: Path) -> None:
    """Optuna's own storage takes seconds (24 ms a tell, a fast commit each)."""
    assert min(three_rungs(tmp_path / f"{attempt}.db") for attempt in range(3)) < 1.0


def three_rungs(path: Path) -> float:
    """Seconds of a core."""
    with open_store(path) as store:
        search = Proposer(SPACE, "random", seed=1)
        search.ask(64)
        start = time.process_time()
        for passes in (3, 9, 27):
            for number in range(64):
                search.report(number, passes, 0.5, {"accuracy": [0.5] * 5})
            store.write(search.changed())
            store.flush()
        return time.process_time() - start


def test_a_search_does_not_wait_for_what_is_written(tmp_path: Path) -> None:
    goes_on, commits = threading.Event(), list[bool]()
    with open_store(tmp_path / "study.db") as store:
        assert isinstance(store, DatabaseStore)

        def commit(connection: object) -> None:
            commits.append(goes_on.wait(10))

        sqlalchemy.event.listen(store._storage.engine, "commit", commit)
        search = Proposer(SPACE, "random", seed=1)
        search.ask(6)
        store.write(search.changed())
        goes_on.set()
        store.flush()
    assert commits == [True]


def test_the_write_ahead_log_is_on(tmp_path: Path) -> None:
    with open_store(tmp_path / "study.db") as store:
        assert isinstance(store, DatabaseStore)
        with store._storage.engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 1


@pytest.mark.slow
def test_a_killed_process_loses_at_most_one_rung(tmp_path: Path) -> None:
    process = run(tmp_path / "study.db", "s", 0.05, 400)
    assert process.stdout is not None
    written = [int(process.stdout.readline()) for _ in range(5)][-1]
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate()
    written = max([written, *map(int, rest.split())])
    with open_store(tmp_path / "study.db", "s", SPACE.fingerprint()) as store:
        found = store.recorded()
    assert written <= len(found) <= written + 4
    expected = [p.params["C"] for p in Proposer(SPACE, "random", seed=1).ask(len(found))]
    assert [r.score for r in found] == expected


@pytest.mark.slow
def test_a_resumed_search_trains_the_rest_and_ends_alike(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole.db", "s", 0, 24)
    assert whole.communicate()[0].endswith("trained 24\n")
    part = run(tmp_path / "part.db", "s", 0.2, 24)
    assert part.stdout is not None
    assert part.stdout.readline() == "4\n"
    part.kill()
    part.communicate()
    rest = run(tmp_path / "part.db", "s", 0, 24).communicate()[0]
    assert int(rest.split()[-1]) in (16, 20)
    found: list[list[Recorded]] = []
    for name in ("whole.db", "part.db"):
        with open_store(tmp_path / name, "s", SPACE.fingerprint()) as store:
            found.append(store.recorded())
    assert found[0] == found[1]


@pytest.mark.slow
def test_several_processes_may_start_on_one_fresh_file(tmp_path: Path) -> None:
    processes = [run(tmp_path / "study.db", f"study {k}", 0, 8) for k in range(3)]
    for process in processes:
        out, err = process.communicate()
        assert process.returncode == 0, err
        assert out.endswith("trained 8\n")


@pytest.mark.slow
def test_two_processes_at_one_study_train_each_trial_once(tmp_path: Path) -> None:
    processes = [run(tmp_path / "study.db", "s", 0.1, 16) for _ in range(2)]
    outputs = [process.communicate()[0] for process in processes]
    assert sorted(int(out.split()[-1]) for out in outputs) == [0, 16]


@pytest.mark.slow
def test_a_study_in_use_is_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = open_store(tmp_path / "study.db")
    threading.Timer(0.3, first.close).start()
    with caplog.at_level(logging.WARNING), open_store(tmp_path / "study.db", wait=30):
        assert "waiting for it to end" in caplog.text


def test_a_study_in_use_for_too_long_is_an_error(tmp_path: Path) -> None:
    with (
        open_store(tmp_path / "study.db"),
        pytest.raises(StudyError, match=r"at it for 0\.1 seconds"),
    ):
        open_store(tmp_path / "study.db", wait=0.1)
    open_store(tmp_path / "study.db", wait=0).close()


def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    store = open_store(tmp_path / "study.db")
    store.close()
    store.close()


def test_a_changed_space_is_told_in_full(tmp_path: Path) -> None:
    open_store(tmp_path / "study.db", "s", {"cv": "5", "C": "1 to 2", "old": "x"}).close()
    with pytest.raises(StudyError) as caught:
        open_store(tmp_path / "study.db", "s", {"cv": "5", "C": "1 to 3", "new": "y"})
    message = str(caught.value)
    assert "`C` differs from that of this study: was 1 to 2, is now 1 to 3" in message
    assert "`old` too: was x, is now absent" in message
    assert "`new` too: was absent, is now y" in message
    assert "give another `study_name`" in message
    assert "cv" not in message


def test_a_change_far_behind_in_a_long_description_is_shown(tmp_path: Path) -> None:
    was, now = (Space.of({"depth": range(1, n)}).fingerprint() for n in (50, 20))
    open_store(tmp_path / "study.db", "s", was).close()
    with pytest.raises(StudyError, match=r"was .*\b49\b.*, is now .*\b19\b"):
        open_store(tmp_path / "study.db", "s", now)


def test_a_long_list_of_changes_is_cut(tmp_path: Path) -> None:
    open_store(tmp_path / "study.db", "s", {str(n): "a" for n in range(9)}).close()
    with pytest.raises(StudyError, match="and 6 more"):
        open_store(tmp_path / "study.db", "s", {str(n): "b" for n in range(9)})


def test_a_refused_study_is_free_for_others(tmp_path: Path) -> None:
    open_store(tmp_path / "study.db", "s", {"C": "1"}).close()
    for _ in range(2):
        with pytest.raises(StudyError, match=r"`C` differs .* was 1"):
            open_store(tmp_path / "study.db", "s", {"C": "2"}, wait=0)


def test_a_study_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/study.db"
    optuna.create_study(study_name="theirs", storage=url)
    with pytest.raises(StudyError, match="'theirs' must have been made by mlopt"):
        open_store(url, "theirs")
    open_store(url, "ours").close()


def test_studies_share_a_file(tmp_path: Path) -> None:
    with (
        open_store(tmp_path / "study.db", "a") as a,
        open_store(tmp_path / "study.db", "b") as b,
    ):
        search_a_while(a)
        search_a_while(b, n=7)
    with open_store(tmp_path / "study.db", "b") as b:
        assert [r.number for r in b.recorded()] == list(range(7))


@pytest.mark.parametrize(
    ("storage", "says"),
    [
        ("sqlite://", "is in memory"),
        ("sqlite:///:memory:", "is in memory"),
        ("/no/such/folder/study.db", "folder of the study must exist"),
        ("nonsense://host/name", "can be opened"),
        ("://", "cannot be read"),
        ("postgresql://me:secret@nowhere.invalid/db?password=secret", "can be opened"),
    ],
)
def test_a_storage_that_cannot_be_opened_is_explained(storage: str, says: str) -> None:
    with pytest.raises(StudyError, match=says) as caught:
        open_store(storage)
    assert "secret" not in str(caught.value)


def test_a_file_that_is_no_database_is_explained(tmp_path: Path) -> None:
    (tmp_path / "study.db").write_text("these are not the rows you are looking for" * 99)
    with pytest.raises(StudyError, match="file is not a database"):
        open_store(tmp_path / "study.db")
    assert (tmp_path / "study.db").read_text().startswith("these are not")


@pytest.mark.parametrize("name", ["with space.db", "br{ace}s.db", "übung.db", "a%20b.db"])
def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    open_store(tmp_path / name).close()
    assert (tmp_path / name).is_file()


def test_the_home_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    open_store("~/study.db").close()
    assert (tmp_path / "study.db").is_file()


def test_a_failed_write_is_heard_at_the_next(tmp_path: Path) -> None:
    store = open_store(tmp_path / "study.db")
    search = Proposer(SPACE, "random")
    search.ask(2)
    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/study.db")
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE trial_user_attributes")
    engine.dispose()
    store.write(search.changed())
    with pytest.raises(StudyError, match="could not be written: no such table"):
        store.write([])
    store.close()


def test_the_lock_of_a_server_names_no_secret() -> None:
    url = sqlalchemy.make_url("postgresql://me:secret@host/db")
    other = url.set(password="other")
    locks = [database.lock(u, "s") for u in (url, other)]
    assert all(isinstance(lock, FileLock) for lock in locks)
    assert locks[0].lock_file == locks[1].lock_file
    assert Path(locks[0].lock_file).name.startswith(".mlopt-")


@pytest.mark.slow
def test_a_search_without_a_storage_loads_no_database() -> None:
    code = (
        "import sys; from mlopt.tuning.storage.store import open_store; open_store(None); "
        "print('sqlalchemy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
