"""A small model of a table in a file: numbers, a category, a code, a date."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

from mlopt.sweep.models import dump_model
from mlopt.sweep.roles import roles_of
from mlopt.sweep.tabular import for_linear

ROW: dict[str, Any] = {
    "age": 41, "wage": 20.5, "city": "oslo", "code": 3, "price": "1.200,50",
    "since": "2020-03-01",
}  # fmt: skip


def people(rows: int = 200, seed: int = 0) -> pd.DataFrame:
    """Rows without a target."""
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": random.integers(18, 80, rows),
            "wage": random.lognormal(3, 1, rows).round(2),
            "city": random.choice(["rome", "oslo", "bern"], rows),
            "code": random.integers(1, 6, rows),
            "price": [f"1.{n:03d},5" for n in random.integers(0, 999, rows)],
            "since": pd.date_range("2020-01-01", periods=rows, freq="31h").astype(str),
        }
    )


def write_model(path: Path, seed: int = 0) -> Path:
    """A pipeline as `mlopt fit` makes it."""
    frame = people(seed=seed)
    y = np.where(frame["age"] + 20 * (frame["city"] == "oslo") > 55, "yes", "no")
    steps = for_linear(roles_of(frame), "binary", len(frame), seed)
    model = Pipeline([*steps, ("model", LogisticRegression())]).fit(frame, y)
    path.write_bytes(dump_model(model))
    return path


class Client:
    """Asks an app in this process, in an event loop of its own."""

    def __init__(self, app: Any) -> None:
        self._runner = asyncio.Runner()
        transport = httpx.ASGITransport(app)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://here")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()

    def get(self, path: str) -> httpx.Response:
        """The answer to GET."""
        return self._runner.run(self._client.get(path))

    def post(self, path: str, **options: Any) -> httpx.Response:
        """The answer to POST."""
        return self._runner.run(self._client.post(path, **options))
