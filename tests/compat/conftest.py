"""Marks scikit-learn's tests that are known to differ: these must fail, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.compat.expected import EXPECTED, Difference

HERE = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    """The marks of scikit-learn's own set-up."""
    for mark in ("thread_unsafe", "no_check_spmatrix", "parallel_threads_limit"):
        config.addinivalue_line("markers", f"{mark}: of scikit-learn's tests")


@pytest.fixture(params=[42])
def global_random_seed(request: Any) -> Any:
    """The seed of scikit-learn's tests, as its own default."""
    return request.param


@pytest.fixture(params=[np.float64])
def global_dtype(request: Any) -> Any:
    """The kind of numbers that scikit-learn's tests take by default."""
    return request.param


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ours = [item for item in items if item.path.parent == HERE]
    met: set[tuple[str, Difference]] = set()
    for item in ours:
        # What is known to fail in scikit-learn may well pass here.
        item.own_markers = [_lenient(mark) for mark in item.own_markers]
        item.add_marker(pytest.mark.compat)
        for difference in _of(item):
            met.add((item.path.stem, difference))
            mark = pytest.mark.xfail(
                strict=not difference.by_rounding, reason=difference.reason
            )
            item.add_marker(mark)
    whole = not any("::" in str(argument) for argument in config.args)
    files = {item.path.stem for item in ours}
    unmet = [
        f"{file}: {one.test}"
        for file, differences in EXPECTED.items()
        for one in differences
        if whole and file in files and (file, one) not in met
    ]
    if unmet:
        raise pytest.UsageError(f"Expected differences that name no test: {unmet}.")


def _lenient(mark: pytest.Mark) -> pytest.Mark:
    if mark.name != "xfail":
        return mark
    lenient: pytest.Mark = pytest.mark.xfail(
        *mark.args, **{**mark.kwargs, "strict": False}
    ).mark
    return lenient


def _of(item: pytest.Item) -> Iterator[Difference]:
    differences = EXPECTED.get(item.path.stem, ())
    return (difference for difference in differences if difference.names(item.name))
