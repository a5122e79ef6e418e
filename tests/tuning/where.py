"""An estimator that tells where it was fitted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sklearn.tree import DecisionTreeClassifier


class Told(DecisionTreeClassifier):
    """A tree that leaves a file named by its process in ``folder`` with each fit."""

    def __init__(self, folder: str = "", max_depth: int | None = None) -> None:
        super().__init__(max_depth=max_depth)
        self.folder = folder

    def fit(self, X: Any, y: Any, **given: Any) -> Told:
        (Path(self.folder) / str(os.getpid())).touch()
        super().fit(X, y, **given)
        return self
