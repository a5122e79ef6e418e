"""What all trainings of batches of linear models have in common: the models and results."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.errors import InputError
from mlopt.gd.columns import Indices, Layout, Model, layout
from mlopt.gd.passes import Floats, Sums, evaluate, scores
from mlopt.passes import Passes
from mlopt.rows import Rows

VALUE, SCORE = range(2)


class LinearTraining(ABC):
    """Linear models that share every pass over the rows: a `mlopt.training.Training`.

    Models are numbered in the order in which they were given; their weights lie as columns
    of one matrix.

    Parameters
    ----------
    rows : Rows
        With the extra arrays "targets" (n, T): -1 and 1, class numbers, or values;
        "weights" (n, S): training weights, a column for each row set, 0 for rows that are
        not in it; and, where there is something to validate on, "score_weights" (n, S).
        All in the dtype of the rows.
    models : sequence of Model
    max_passes : int
        Passes after which the training is done, converged or not.
    sums : Sums, optional
        Of the weights of ``rows``, where they are known.
    """

    def __init__(
        self,
        rows: Rows,
        models: Sequence[Model],
        max_passes: int,
        sums: Sums | None = None,
    ) -> None:
        if not models:
            raise InputError("`models` must hold at least one model.")
        self.rows = rows
        self.max_passes = max_passes
        self.passes = 0
        self._sums = sums or Sums.of(rows)
        self._layout = layout(models)
        self._weights: Floats = np.zeros((rows.d + 1, self._layout.width), rows.dtype)
        self._value = np.full(len(models), np.nan)
        self._score = np.full(len(models), np.nan)
        # Whose value, and whose score, does not belong to the present weights.
        self._stale = np.ones((2, len(models)), bool)

    @property
    def models(self) -> tuple[Model, ...]:
        """The models in training or trained, in order."""
        return self._layout.models

    @property
    @abstractmethod
    def converged(self) -> NDArray[np.bool_]:
        """Which models have reached the asked tolerance, (M,)."""

    @property
    @abstractmethod
    def finished(self) -> NDArray[np.bool_]:
        """Which models will not be trained further: converged, or no step helps, (M,)."""

    @property
    def reached(self) -> NDArray[np.bool_]:
        """Which models are trained as far as was asked, (M,)."""
        return np.ones(len(self.models), bool)

    @property
    def done(self) -> bool:
        """Whether no model will change any more."""
        return self.passes >= self.max_passes or bool(self.finished.all())

    @abstractmethod
    def advance(self, passes: int) -> None:
        """Train for up to ``passes`` more passes."""

    def advance_to(self, passes: Passes) -> None:
        """Train until ``passes`` passes are made in all, or the first whole one after."""
        self.advance(max(0, math.ceil(passes) - self.passes))

    def rest(self) -> None:
        """Let go of what is much larger than the weights, and can be learnt anew."""
        return

    @property
    def made(self) -> Passes:
        """Passes so far, with the part of one that has begun."""
        return self.passes

    def quality(self) -> NDArray[np.float64]:
        """Accuracy or minus the mean squared error of each model, (M,); higher is better.

        On the rows that ``score_weights`` mark; without them, minus the objective.
        """
        if self._sums.scored is None:
            return -self.objective()
        numbers, weights, plan = self._moved(SCORE)
        if numbers.size:
            self._score[numbers] = self._marks(weights, plan)
            self._stale[SCORE, numbers] = False
        return self._score.copy()

    def _marks(self, weights: Floats, plan: Layout) -> NDArray[np.float64]:
        """The score of each of some models."""
        return scores(self.rows, weights, plan, self._sums)

    def objective(self) -> NDArray[np.float64]:
        """The objective of each model at its present weights, (M,)."""
        numbers, weights, plan = self._moved(VALUE)
        if numbers.size:
            found = evaluate(
                self.rows, weights, plan, self._sums, gradient=False, scored=False
            )
            self._value[numbers] = plan.model_sum(found.value)
            self._stale[VALUE, numbers] = False
        return self._value.copy()

    def _moved(self, what: int) -> tuple[Indices, Floats, Layout]:
        """The models that moved since the last look at their values, or scores."""
        numbers = np.flatnonzero(self._stale[what])
        plan, columns = self._layout.select(numbers.tolist())
        return numbers, np.ascontiguousarray(self._weights[:, columns]), plan

    def coefficients(self, number: int) -> tuple[Floats, Floats]:
        """Weights (outputs, d) and intercepts (outputs,) of one model."""
        columns = self._layout.columns(number)
        weights = self._weights[:, columns]
        return np.ascontiguousarray(weights[:-1].T), weights[-1].copy()

    def learnt(self, number: int) -> dict[str, Any]:
        """Attributes of a fitted estimator that only its solver knows, by name."""
        del number
        return {}

    def keep(self, mask: Any) -> None:
        """Drop the models where ``mask`` (M,) is False, with their memory; renumber."""
        mask = np.asarray(mask, bool)
        if mask.shape != (len(self.models),) or not mask.any():
            raise InputError(
                f"`mask` must have one entry for each of the {len(self.models)} models and "
                f"keep at least one, got shape {mask.shape} and {int(mask.sum())} kept."
            )
        numbers = np.flatnonzero(mask)
        self._layout, taken = self._layout.select(numbers.tolist())
        self._weights = np.ascontiguousarray(self._weights[:, taken])
        self._value, self._score = self._value[numbers], self._score[numbers]
        self._stale = self._stale[:, numbers]
        self._keep(numbers, taken)

    @abstractmethod
    def _keep(self, numbers: Indices, taken: Indices) -> None:
        """Let go of all but some models and their columns (old numbers, old columns)."""

    def _write(self, numbers: Sequence[int], plan: Layout, weights: Floats) -> None:
        """Store the weights of some models, laid out by ``plan``."""
        for place, number in enumerate(numbers):
            own = weights[:, plan.columns(place)]
            self._weights[:, self._layout.columns(number)] = own

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        return {
            "passes": self.passes,
            "weights": self._weights.copy(),
            "value": self._value.copy(),
            "score": self._score.copy(),
            "stale": self._stale.copy(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint of a training of the same models on the same rows."""
        weights = np.asarray(state["weights"])
        if weights.shape != self._weights.shape or weights.dtype != self._weights.dtype:
            raise InputError(
                "The checkpoint belongs to another training: it has weights of shape "
                f"{weights.shape} in {weights.dtype}, this training {self._weights.shape} "
                f"in {self._weights.dtype}. Build it from the same rows and models."
            )
        self.passes = int(state["passes"])
        self._weights = weights.copy()
        self._value = np.array(state["value"])
        self._score = np.array(state["score"])
        self._stale = np.array(state["stale"])
