"""Estimators that do what no estimator should: hang, leave, kill their process."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from sklearn.tree import DecisionTreeClassifier

BAD = 5
"""The depth at which a stubborn tree does it."""


class Stubborn(DecisionTreeClassifier):
    """A tree that at one depth does ``how`` instead of learning."""

    def __init__(self, max_depth: int | None = None, how: str = "") -> None:
        super().__init__(max_depth=max_depth, random_state=0)
        self.how = how

    def fit(self, X: Any, y: Any, **given: Any) -> Stubborn:
        if self.max_depth == BAD:
            DEEDS[self.how]()
        super().fit(X, y, **given)
        return self


def spin() -> None:
    while True:
        time.sleep(0.05)


def interrupt() -> None:
    raise KeyboardInterrupt


DEEDS: dict[str, Callable[[], object]] = {
    "hang": lambda: time.sleep(1000),
    "spin": spin,
    "leave": lambda: sys.exit(3),
    "interrupt": interrupt,
    "die": lambda: os._exit(1),
}
