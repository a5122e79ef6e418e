"""Settings of `dask.config`: what they may be, and that all else is refused by name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import mlopt
from mlopt import options
from mlopt.cluster.connect import check_safe
from mlopt.cluster.near import are_near
from mlopt.errors import InputError
from mlopt.resources.experience import remembers
from mlopt.resources.probe import configured

X = np.random.default_rng(0).normal(size=(5000, 3))
y = (X[:, 0] > 0).astype(int)


def fitted() -> Any:
    return mlopt.make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)


def refused(name: str, value: Any, use: Any) -> None:
    said = f"`mlopt.{name}`.* must be .*got {re.escape(repr(value))}"
    with dask.config.set({f"mlopt.{name}": value}), pytest.raises(InputError, match=said):
        use()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("plan", "never"),
        ("plan", True),
        ("plan", ["always"]),
        ("keep", 3),
        ("keep", "everything"),
        ("strict", "no"),
        ("reuse-rows", "many"),
        ("reuse-rows", -1),
        ("reuse-models", True),
        ("reuse-models", [1]),
        ("disk", 5),
        ("disk", ""),
        ("memory-budget", "much"),
        ("memory-budget", float("nan")),
    ],
)
def test_a_pipeline_refuses_a_setting_that_says_nothing(name: str, value: Any) -> None:
    refused(name, value, fitted)


@pytest.mark.parametrize("limit", ["much", -5, False])
def test_a_limit_of_the_disk_must_be_bytes(tmp_path: Path, limit: Any) -> None:
    with dask.config.set({"mlopt.disk": str(tmp_path / "kept")}):
        refused("disk-limit", limit, fitted)


def test_a_folder_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused("disk", str(tmp_path / "file"), fitted)
    refused("disk", str(tmp_path / "file" / "below"), fitted)


@pytest.mark.parametrize("value", ["no", "off", 2, [False], "False "])
def test_a_switch_is_true_or_false(value: Any) -> None:
    refused("remember", value, remembers)
    refused("cluster.allow-plain-tcp", value, lambda: check_safe("tcp://8.8.8.8:1"))


def test_rows_beside_a_client_are_not_looked_at_with_a_wrong_plan() -> None:
    refused("plan", "sometimes", lambda: are_near([X]))


@pytest.mark.parametrize(
    "given", [5, "fast", {"gemm-f64": "fast"}, {"memory": "much"}, {"threads": 0}]
)
def test_resources_are_refused_by_the_name_of_the_setting(given: Any) -> None:
    with (
        dask.config.set({"mlopt.resources": given}),
        pytest.raises(InputError, match=r"`mlopt\.resources.* must .*, got "),
    ):
        configured(mlopt.Resources())


@pytest.mark.parametrize(("value", "means"), [(0, False), (1, True), (None, True)])
def test_a_switch_may_be_a_number_as_in_the_environment(value: Any, means: bool) -> None:
    with dask.config.set({"mlopt.remember": value}):
        assert remembers() is means


@pytest.mark.parametrize(
    ("given", "means"), [("1 kB", 1000), (7, 7), (7.9, 7), (None, 3), (np.int64(4), 4)]
)
def test_bytes_are_numbers_or_text(given: Any, means: int) -> None:
    with dask.config.set({"mlopt.reuse-rows": given}):
        assert options.size("mlopt.reuse-rows", 3) == means


@pytest.mark.parametrize("name", ["reuse_row", "rembmer", "Plan"])
def test_a_setting_that_there_is_not_is_refused(name: str) -> None:
    said = f"`mlopt.{name}` in dask.config is no setting. Did you mean"
    with dask.config.set({f"mlopt.{name}": 1}), pytest.raises(InputError, match=said):
        fitted()
    with dask.config.set({"mlopt.reuse_models": 0, "mlopt.memory-budget": "1GiB"}):
        fitted()


def test_all_settings_that_are_read_are_known() -> None:
    root = Path(mlopt.__file__).parent
    rooms = {path.stem for path in root.iterdir()}
    texts = (path.read_text() for path in root.rglob("*.py"))
    read = {name for text in texts for name in re.findall(r'"mlopt\.([a-z-]+)[".]', text)}
    assert read - rooms == {*options.NAMES} - rooms
