"""Fitted models put back where they belong, so that the steps are as scikit-learn's fit
would have left them: those of pipelines and unions in place, those of a `ColumnTransformer`
as copies in ``transformers_``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion

from mlopt.hearing import unheard
from mlopt.identity import class_of
from mlopt.pipeline.blocks.tables import is_sparse
from mlopt.pipeline.steps.copies import cloned, hand_over, private_copy
from mlopt.pipeline.steps.nested import is_pipeline, is_union


@dataclass(frozen=True)
class Assembly:
    """What is needed to put models back.

    Attributes
    ----------
    models : mapping of path to fitted model
        A path is the names of the steps around a step and its own, joined by "/".
    example : callable
        From the path of a union or `ColumnTransformer` to some rows of what it is given.
    sparse : callable
        From the path of a `ColumnTransformer`, and whether a part of it is known to give
        sparse rows, to whether its output is sparse; None where the example tells.
    chosen : mapping of path to mapping of str to columns
        That functions chose for the parts of each `ColumnTransformer`.
    """

    models: Mapping[str, Any]
    example: Callable[[str], Any]
    sparse: Callable[[str, bool], bool | None]
    chosen: Mapping[str, Mapping[str, Any]]

    def put_back(self, path: str, estimator: Any) -> None:
        """Make ``estimator`` the fitted one, in place."""
        if estimator is None or isinstance(estimator, str):
            return
        if path in self.models:
            # A copy: what this process remembers must not change with the user's steps.
            hand_over(estimator, private_copy(self.models[path]))
        elif is_pipeline(estimator):
            for name, step in estimator.steps:
                self.put_back(f"{path}/{name}", step)
        elif is_union(estimator):
            self._put_back_union(path, estimator)
        elif class_of(estimator) is ColumnTransformer:
            self._put_back_columns(path, estimator)

    def _put_back_union(self, path: str, union: Any) -> None:
        for name, part in union.transformer_list:
            self.put_back(f"{path}/{name}", part)
        frozen = [(name, _frozen(part)) for name, part in union.transformer_list]
        # scikit-learn's own bookkeeping on a few rows, around models that stay as they are.
        # Its own class does it: one that plans would come back to here.
        looked = FeatureUnion(frozen)
        looked.__dict__.update({**vars(union), "transformer_list": frozen})
        looked.fit(self.example(path))
        union.transformer_list[:] = [(n, _thawed(p)) for n, p in looked.transformer_list]
        hand_over(union, looked)

    def _put_back_columns(self, path: str, whole: ColumnTransformer) -> None:
        looked, chosen, example = copy(whole), self.chosen[path], self.example(path)
        looked.transformers = [
            (name, self._fitted_part(f"{path}/{name}", part), _said(chosen, name, columns))
            for name, part, columns in whole.transformers
        ]
        looked.remainder = self._fitted_part(f"{path}/remainder", whole.remainder)
        looked.fit(example)
        parts = [part for _, part, _ in looked.transformers_]
        gave = any(getattr(p, "gave_sparse", False) for p in parts)
        some = gave or is_sparse(example)
        if some and (sparse := self.sparse(path, gave)) is not None:
            looked.sparse_output_ = sparse
        looked.transformers_ = [
            (name, _thawed(part), columns) for name, part, columns in looked.transformers_
        ]
        looked.transformers, looked.remainder = whole.transformers, whole.remainder
        hand_over(whole, looked)

    def _fitted_part(self, path: str, part: Any) -> Any:
        if isinstance(part, str):
            return part
        fresh = cloned(part)
        self.put_back(path, fresh)
        return _frozen(fresh)


def _said(chosen: Mapping[str, Any], name: str, columns: Any) -> Any:
    """The columns of a part; of a function, one that says again what it has said."""
    return (lambda _: chosen[name]) if name in chosen else columns


class _Held(FrozenEstimator):
    """A model that bookkeeping leaves alone, told from those the user froze.

    What needs no fit has no attribute that tells of one.
    """

    gave_sparse = False

    def fit(self, X: Any, y: Any = None, *args: Any, **kwargs: Any) -> _Held:
        return self

    def transform(self, X: Any) -> Any:
        """Of a copy: the step may count what it is asked for. It has warned before."""
        with unheard():
            made = private_copy(self.estimator, apart=True).transform(X)
        self.gave_sparse = is_sparse(made)
        return made


def _frozen(part: Any) -> Any:
    return part if isinstance(part, str) else _Held(part)


def _thawed(part: Any) -> Any:
    return part.estimator if isinstance(part, _Held) else part
