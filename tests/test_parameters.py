"""Sizes in bytes are read in one way, wherever they are given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import mlopt
from mlopt.errors import InputError
from mlopt.parameters import bytes_of
from mlopt.pipeline.budget import budget_bytes
from mlopt.pipeline.environment import environment
from mlopt.resources.probe import configured


@pytest.mark.parametrize(
    ("given", "found"),
    [(7, 7), (1e3, 1000), (np.int64(5), 5), ("2KiB", 2048), ("1 kB", 1000)],
)
def test_numbers_and_texts_are_bytes(given: Any, found: int) -> None:
    assert bytes_of("`size`", given) == found


@pytest.mark.parametrize(
    "given", ["much", "", "  ", None, True, -1, "-2KiB", float("nan"), float("inf"), [1]]
)
def test_what_is_no_size_is_named(given: Any) -> None:
    with pytest.raises(InputError, match="`size` must be bytes, as in"):
        bytes_of("`size`", given)


def test_less_than_the_least_is_refused() -> None:
    assert bytes_of("`size`", 3, least=3) == 3
    with pytest.raises(InputError, match=r'`size` must be "auto" or bytes.* at least 3'):
        bytes_of("`size`", 2, least=3, instead='"auto"')


def reused() -> int:
    with dask.config.set({"mlopt.reuse-models": "much"}):
        return environment.budget


def of_machine() -> Any:
    with dask.config.set({"mlopt.resources": {"memory": "much"}}):
        return configured(mlopt.Resources())


@pytest.mark.parametrize(
    ("ask", "name"),
    [
        (lambda: budget_bytes("much", None), "`memory_budget`"),
        (lambda: mlopt.Stream(memory="much"), "`memory`"),
        (reused, "`mlopt.reuse-models` in dask.config"),
        (of_machine, "`mlopt.resources.memory` in dask.config"),
    ],
)
def test_who_asks_is_told_by_name(ask: Callable[[], Any], name: str) -> None:
    with pytest.raises(InputError, match=f"{name} must be .*bytes"):
        ask()


def test_predictions_of_files_refuse_what_is_no_size(tmp_path: Path) -> None:
    model = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(InputError, match="`memory` must be bytes"):
        mlopt.predict(model, [tmp_path / "a.csv"], output=tmp_path, memory="much")


@pytest.mark.parametrize(
    "use",
    [
        lambda client: mlopt.Resources.probe(client),
        lambda client: mlopt.ModelSearchCV(
            LogisticRegression(), {"C": [1.0, 2.0]}, cv=2, client=client
        ).fit(np.eye(8), [0, 1] * 4),
        lambda client: [*mlopt.Stream(client=client).map(abs).run([1])],
    ],
)
@pytest.mark.parametrize("client", [3, "tcp://127.0.0.1:8786"])
def test_a_client_is_one(use: Callable[[Any], Any], client: Any) -> None:
    with pytest.raises(InputError, match=r"`client` must be a distributed\.Client, got"):
        use(client)
