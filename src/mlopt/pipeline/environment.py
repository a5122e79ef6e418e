"""What this process has learnt already: models by the token of how they came about.

KeystoneML's state reuse: an equal prefix of operators, parameters and data is not fitted a
second time, in whichever pipeline it occurs.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import numpy as np
from dask.sizeof import sizeof
from scipy.sparse import issparse

from mlopt.pipeline.tables import count_bytes

_LARGEST = 1 << 30


class Environment:
    """Models within a budget of bytes; the one used longest ago is forgotten first.

    Parameters
    ----------
    budget : int
        Bytes.
    """

    def __init__(self, budget: int = _LARGEST) -> None:
        self.budget = budget
        self.hits = 0
        self._models: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, token: str) -> Any:
        """The model, or None."""
        with self._lock:
            if token not in self._models:
                return None
            self._models.move_to_end(token)
            self.hits += 1
            return self._models[token][0]

    def put(self, token: str, model: Any) -> None:
        """Remember a model, unless it alone is larger than the budget."""
        size = model_bytes(model)
        with self._lock:
            if size > self.budget:
                return
            self._models[token] = (model, size)
            self._models.move_to_end(token)
            while sum(size for _, size in self._models.values()) > self.budget:
                self._models.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._models.clear()

    def __contains__(self, token: str) -> bool:
        with self._lock:
            return token in self._models

    def __len__(self) -> int:
        return len(self._models)


def model_bytes(model: Any) -> int:
    """Bytes of what a model has learnt."""
    if isinstance(model, type) or not hasattr(model, "__dict__"):
        return int(sizeof(model))
    return sum(
        count_bytes(value) if isinstance(value, np.ndarray) or issparse(value) else
        model_bytes(value) if hasattr(value, "get_params") else sizeof(value)
        for value in vars(model).values()
    )  # fmt: skip


environment = Environment()
"""That of this process."""
