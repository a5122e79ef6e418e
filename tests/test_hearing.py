"""Filters of warnings are those of the process: threads leave each other's alone."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

import mlopt
from mlopt.cluster import Threads
from mlopt.hearing import raised, unheard, unheard_by_all
from mlopt.pipeline.fits.base import ManyPasses
from mlopt.pipeline.fits.registry import ways_of
from mlopt.readers import read_table
from mlopt.rows import Rows


def in_threads(function: Callable[[], object], threads: int = 4) -> None:
    begun = [threading.Thread(target=function) for _ in range(threads)]
    for thread in begun:
        thread.start()
    for thread in begun:
        thread.join()


def test_what_a_thread_warns_of_is_unheard_or_raised_there_alone() -> None:
    with unheard(UserWarning):
        warnings.warn("here", UserWarning, stacklevel=1)
        with pytest.raises(FutureWarning):
            warnings.warn("of another kind", FutureWarning, stacklevel=1)
    heard: list[str] = []

    def warn() -> None:
        try:
            warnings.warn("there", UserWarning, stacklevel=1)
        except UserWarning:  # as tests have it
            heard.append("there")

    with unheard(UserWarning):
        in_threads(warn, 1)
    assert heard == ["there"]
    with unheard_by_all(UserWarning):
        in_threads(warn, 1)
    assert heard == ["there"]
    with raised(UserWarning), pytest.raises(UserWarning):
        warnings.warn("raised", UserWarning, stacklevel=1)


def test_a_filter_of_the_users_stays() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = list(warnings.filters)
        for ignoring in (unheard, unheard_by_all):
            with ignoring():
                pass
            assert list(warnings.filters) == before


def test_a_filter_that_another_puts_back_filters_nothing() -> None:
    with unheard_by_all(UserWarning):
        other = warnings.catch_warnings()
        other.__enter__()
    left = list(warnings.filters)
    other.__exit__(None, None, None)
    with warnings.catch_warnings():
        warnings.filters[:] = [*left, *warnings.filters]  # type: ignore[index]
        with pytest.raises(UserWarning):
            warnings.warn("heard again", UserWarning, stacklevel=1)


def test_files_that_threads_read_leave_no_filter(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "1,2\n" * 5000)
    before = list(warnings.filters)

    def read() -> None:
        for _ in range(10):
            read_table(str(path))

    in_threads(read)
    assert list(warnings.filters) == before


def test_clusters_that_threads_fit_leave_no_filter() -> None:
    X = np.random.default_rng(0).normal(size=(200, 3))
    before = list(warnings.filters)

    def fit() -> None:
        for _ in range(30):
            estimator, way = KMeans(3, n_init=1, random_state=0), ways_of(KMeans())[0]
            assert isinstance(way, ManyPasses)
            way.fit(estimator, Rows.of(X, executor=Threads(1)), None, None)

    in_threads(fit)
    assert [one for one in warnings.filters if one not in before] == []


def test_queries_in_threads_hear_of_their_own_convergence_alone(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 20))
    frame = pd.DataFrame(np.column_stack((X[:, 0] + rng.normal(size=2000) > 0, X)))
    path = tmp_path / "d.csv"
    frame.to_csv(path, index=False)
    found: dict[int, list[bool]] = {1: [], 9999: []}

    def run(passes: int) -> None:
        for _ in range(5):
            query = f"RUN svm ON {path} HAVING EPSILON 1e-2, MAX_ITER {passes};"
            found[passes].append(mlopt.run(query).converged)

    threads = [threading.Thread(target=run, args=(passes,)) for passes in found]
    shown = warnings._showwarnmsg_impl  # type: ignore[attr-defined]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {1: [False] * 5, 9999: [True] * 5}
    assert warnings._showwarnmsg_impl is shown  # type: ignore[attr-defined]


def test_a_convergence_warning_of_an_estimator_is_still_one() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    with pytest.warns(ConvergenceWarning):
        mlopt.LinearSVC(max_iter=1, tol=1e-9).fit(X, X[:, 0] + rng.normal(size=300) > 0)
