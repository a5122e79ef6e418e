"""Steps that are several operators: what they do first can be shared, kept, or left out.

A text vectorizer counts terms, which needs no other document, and then learns which terms
there are. Counting is the long part, and with this it happens once for both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from mlopt.pipeline.operators import Operator


class Expansion(ABC):
    """One way of taking an estimator apart."""

    @abstractmethod
    def refuses(self, estimator: Any) -> str:
        """Why ``estimator`` stays in one piece; "" when it need not."""

    @abstractmethod
    def expand(self, step: str, estimator: Any, x: Operator) -> tuple[Operator, Operator]:
        """The rows it makes of ``x``, and the model it learns."""


EXPANSIONS: dict[type, Expansion] = {}
