"""A configured pipeline as a chain: transformers one after the other, and what they feed.

::

    Pipeline                              steps                final
      pre: Pipeline                       pre__scale  token a
        scale: StandardScaler()      ->   pre__pca    token b  clf: LogisticRegression()
        pca: PCA(20)
      clf: LogisticRegression()

The token of a step names its content and that of all steps before it: what has one token
gives the same rows on the same split, so it is fitted once.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from mlopt.identity import join, token_of
from mlopt.locking import cached_property
from mlopt.pipeline import estimator as planned
from mlopt.pipeline.fits.applying import apply_fitted
from mlopt.pipeline.fits.text.counting import counts, fit_and_count
from mlopt.pipeline.steps.nested import parts_of
from mlopt.pipeline.steps.repeating import repeats
from mlopt.tuning.crews.clones import clone_apart

Names = tuple[tuple[str, ...], str]

PIPELINES = (Pipeline, planned.Pipeline)
"""Those that fit one step after the other and do nothing else."""
NOTHING = (None, "passthrough")
"""Steps that leave the rows as they are."""


@dataclass(frozen=True)
class Parts:
    """A configured estimator, cut where preprocessing ends.

    ``steps`` are the transformers by their names in the pipeline, those of nested pipelines
    with their path ("pre__scale"); ``name`` is the path of the final estimator, "" when it
    stands alone. ``routed`` are the names of the fit parameters of the search.
    """

    steps: tuple[tuple[str, Any], ...]
    final: Any
    name: str = ""
    routed: frozenset[str] = frozenset()

    @cached_property
    def pairwise(self) -> bool:
        """Whether the estimator takes values of pairs of rows, such as kernels."""
        return not self.steps and bool(get_tags(self.final).input_tags.pairwise)

    @property
    def names(self) -> tuple[str, ...]:
        """The steps by name."""
        return tuple(name for name, _ in self.steps)

    @property
    def path(self) -> Names:
        """The names of all steps and of the final estimator: who gets which parameter."""
        return self.names, self.name

    @property
    def key(self) -> str:
        """The token of the whole preprocessing; "" without any."""
        return self.tokens[-1]

    @cached_property
    def shared(self) -> int:
        """How many of the first steps are fitted once for all that begin with them.

        What may come out otherwise a second time is fitted for each, and all behind it.
        """
        doubtful = (n for n, (_, step) in enumerate(self.steps) if not repeats(step))
        return next(doubtful, len(self.steps))

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The rows after none, one, two, ... steps, by content.

        "" for the data, and "pairwise" where splits cut their columns, too.
        """
        tokens = ["pairwise" if self.pairwise else ""]
        for name, step in self.steps:
            # Of two steps of equal content each gets the fit parameters of its own name.
            own = name if any(p.startswith(f"{name}__") for p in self.routed) else ""
            tokens.append(join(tokens[-1], step_token(step), own))
        return tuple(tokens)


def is_planned(estimator: Any) -> bool:
    """Whether an estimator asks for mlopt's ways of fitting its steps."""
    return type(estimator) is planned.Pipeline


def cut(estimator: Any, routed: Iterable[str] = ()) -> Parts:
    """Split a pipeline before its last step; anything else has no preprocessing.

    Pipelines of other classes may run their steps in a way of their own: they stay whole.
    """
    steps: list[tuple[str, Any]] = []
    final, path = estimator, ""
    while type(final) in PIPELINES and final.steps[-1][1] not in NOTHING:
        for name, step in final.steps[:-1]:
            steps += _flat(inside(path, name), step)
        path, final = inside(path, final.steps[-1][0]), final.steps[-1][1]
    return Parts(tuple(steps), final, path, frozenset(routed))


def last_of(estimator: Any) -> tuple[str, Any]:
    """(path, estimator) of what learns last in pipelines of any class; ("", itself) of
    what is none."""
    path = ""
    while isinstance(estimator, Pipeline) and estimator.steps[-1][1] not in NOTHING:
        name, estimator = estimator.steps[-1]
        path = inside(path, name)
    return path, estimator


def _flat(path: str, step: Any) -> list[tuple[str, Any]]:
    if type(step) is not Pipeline:
        return [] if step in NOTHING else [(path, step)]
    return [one for name, own in step.steps for one in _flat(inside(path, name), own)]


def inside(path: str, name: str) -> str:
    """The path of what is called ``name`` within ``path``."""
    return f"{path}__{name}" if path else name


def assemble(estimator: Any, fitted: Mapping[str, Any], path: str = "") -> Any:
    """``estimator`` with its fitted steps and final estimator in their places."""
    if path in fitted:
        return fitted[path]
    if not isinstance(estimator, Pipeline):
        return estimator
    steps = [(n, assemble(s, fitted, inside(path, n))) for n, s in estimator.steps]
    return clone(estimator).set_params(steps=steps)


def step_token(step: Any) -> str:
    """The content of one step; a token that never comes again when two fits may differ."""
    return token_of(step) if repeats(step) else uuid.uuid4().hex


def fit_step(
    step: Any, X: Any, y: Any, params: Mapping[str, Any] | None = None, path: str = "step"
) -> tuple[Any, Any]:
    """(a fitted clone of ``step``, the rows it was fitted on, transformed)."""
    fresh = clone_apart(step)
    if not params and (counted := fit_and_count(fresh, X)) is not None:
        return counted
    alone = _alone(fresh, path)
    own = alone.steps[0][0]
    routed = {f"{own}__{name}": value for name, value in (params or {}).items()}
    return fresh, alone.fit_transform(X, y, **routed)


def apply_step(fitted: Any, X: Any, path: str = "step") -> Any:
    """The rows behind a step that was fitted."""
    alone = _alone(fitted, path)
    if isinstance(alone, planned.Pipeline) and _is_fitted(fitted):
        return alone.transform(X)
    return apply_fitted(fitted, X, "transform")


def _is_fitted(step: Any) -> bool:
    """Whether scikit-learn can tell: not of parts that learn nothing."""
    try:
        check_is_fitted(step)
    except NotFittedError:
        return False
    return True


def _alone(step: Any, path: str) -> Pipeline:
    """A pipeline of it, which calls whichever of its methods there are; a planned one if
    texts are read within, which takes a few times as long otherwise."""
    own = planned.Pipeline if _holds_texts(step) else Pipeline
    name = path.rpartition("__")[2]
    taken = own._get_param_names()  # as a step of scikit-learn's may be called "optimize"
    return own([("step" if name in taken else name, step)])


def _holds_texts(step: Any) -> bool:
    """Whether a step holds others, one of which counts terms."""
    return any(counts(one) or _holds_texts(one) for _, one in parts_of(step) or ())


def fit_steps(
    parts: Parts, X: Any, y: Any, fit_params: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], Any]:
    """(the fitted steps by name, the rows behind all of them)."""
    fitted: dict[str, Any] = {}
    for name, step in parts.steps:
        fitted[name], X = fit_step(step, X, y, params_of(name, fit_params or {}), name)
    return fitted, X


def params_of_final(names: Names, fit_params: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the final estimator, and those that name no step at all."""
    steps, final = names
    starts = tuple(f"{name}__" for name in (*steps, final) if name)
    others = {k: v for k, v in fit_params.items() if not k.startswith(starts)}
    return others | (params_of(final, fit_params) if final else {})


def params_of(name: str, fit_params: Mapping[str, Any]) -> dict[str, Any]:
    """The fit parameters of the step with this path, by the names it knows them under."""
    start = f"{name}__"
    return {k.removeprefix(start): v for k, v in fit_params.items() if k.startswith(start)}
