"""A scikit-learn pipeline as a graph, and the fitted models put back into its shape."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from inspect import getattr_static
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion
from sklearn.utils._set_output import ADAPTERS_MANAGER
from sklearn.utils.validation import _get_feature_names

from mlopt.errors import InputError
from mlopt.identity import class_of, is_known, is_valid, join, token_of
from mlopt.pipeline.blocks import tables
from mlopt.pipeline.fits.registry import declared
from mlopt.pipeline.graph.operators import (
    Apply,
    Given,
    Join,
    Learn,
    Numbered,
    Operator,
    Outcome,
    Select,
    Source,
)
from mlopt.pipeline.steps.copies import (
    blank_copy,
    cloned,
    keeps_state,
    parameters,
    private_copy,
)
from mlopt.pipeline.steps.generators import holds_generator
from mlopt.pipeline.steps.kinds import (
    ignores_targets,
    is_pinned,
    is_row_wise,
    is_stateless,
    is_told_to_write,
    may_write,
)
from mlopt.pipeline.steps.nested import (
    cannot_name,
    frames_of,
    gives_frames,
    is_pipeline,
    is_simple,
    is_union,
)
from mlopt.pipeline.steps.repeating import doubt, repeats
from mlopt.pipeline.tasks.functions import Unforeseen, naming

Example = Callable[[Operator], Any]
"""Gives some rows of an operator's value."""


@dataclass
class Builder:
    """Turns estimators into operators; remembers which model belongs to which step.

    Attributes
    ----------
    y, weight : Operator or None
        Targets, and the weights of the rows for the last step.
    example : callable
        From an operator to some rows of its value: to find out which columns there are.
    params : mapping of step to mapping
        Further arguments of ``fit`` of the outermost steps.
    models : dict of path to Operator
        Filled while building.
    inputs : dict of path to Operator
        What each union, `ColumnTransformer` and stateless step is given; filled while
        building.
    joins : dict of path to Operator
        What each `ColumnTransformer` makes of it; filled while building.
    whole : bool
        Whether all rows are one block: then steps without state are fitted like others.
    shared : set of int
        By `id`, what several parts of a union read; filled while building.
    rows : callable
        From an operator to all rows of its value, where they are at hand; else to None.
    chosen : dict of path to dict of str to columns
        By the functions of each `ColumnTransformer`, by the names of its parts; filled
        while building.
    met : set of path
        Of all steps so far; filled while building.
    """

    y: Operator | None
    example: Example
    weight: Operator | None = None
    params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    models: dict[str, Operator] = field(default_factory=dict)
    inputs: dict[str, Operator] = field(default_factory=dict)
    joins: dict[str, Operator] = field(default_factory=dict)
    whole: bool = False
    shared: set[int] = field(default_factory=set)
    rows: Example = lambda _: None
    chosen: dict[str, dict[str, Any]] = field(default_factory=dict)
    met: set[str] = field(default_factory=set)

    def transformed(self, path: str, transformer: Any, x: Operator) -> Operator:
        """The rows that ``transformer``, fitted to ``x``, makes of ``x``."""
        if transformer is None or transformer == "passthrough":
            return x
        self._meet(path)
        plain = not self.params.get(path)
        if is_pipeline(transformer) and plain and is_simple(transformer):
            _check(path, transformer._validate_steps)
            for name, step in transformer.steps:
                x = self.transformed(f"{path}/{name}", step, x)
            return x
        if is_union(transformer) and plain:
            return self._union(path, transformer, x)
        if class_of(transformer) is ColumnTransformer and plain:
            return self._by_columns(path, transformer, x)
        return self._leaf(path, transformer, x)

    def last(self, path: str, estimator: Any, x: Operator) -> tuple[Operator, ...]:
        """The models that the last step learns from ``x``: several of one with parts."""
        plain = not self.params.get(path) and self.weight is None
        if is_pipeline(estimator) and plain and is_simple(estimator):
            self._meet(path)
            _check(path, estimator._validate_steps)
            steps = [(f"{path}/{name}", step) for name, step in estimator.steps]
            while steps and steps[-1][1] in (None, "passthrough"):
                steps.pop()
            for name, step in steps[:-1]:
                x = self.transformed(name, step, x)
            return self.last(*steps[-1], x) if steps else ()
        if (is_union(estimator) or class_of(estimator) is ColumnTransformer) and plain:
            self.transformed(path, estimator, x)
            inside = f"{path}/"
            found = [m for p, m in self.models.items() if f"{p}/".startswith(inside)]
            return tuple(found)
        self._meet(path)
        _check_methods(path, estimator)
        self.models[path] = self._learn(path, estimator, x, self.y, self.weight)
        return (self.models[path],)

    def _meet(self, path: str) -> None:
        """Raise where a name with "/" in it makes a path that is another step's, too."""
        if path in self.met:
            raise Unforeseen(f"`{path}` is the path of two steps: a name has a slash.")
        self.met.add(path)

    def _leaf(self, path: str, transformer: Any, x: Operator) -> Operator:
        _check_methods(path, transformer)
        plain = not self.params.get(path)
        # What has only `fit_transform`, as TSNE, is the last: others were checked.
        if not hasattr(transformer, "transform") and not hasattr(
            transformer, "fit_transform"
        ):
            raise InputError(
                f"Step `{path}` must have `transform`, since steps follow it; "
                f"{type(transformer).__name__} has none."
            )
        if isinstance(transformer, FrozenEstimator):
            return self._frozen(path, transformer, x)
        if is_stateless(transformer) and plain and not self.whole:
            # A few rows tell it the names and the number of columns.
            with naming(path):
                fitted = self._configured(transformer)
                fitted.fit(self.example(x))
            self.inputs[path] = x
            # Equal steps behind unlike columns have learnt other names and numbers.
            content = join(_content(transformer), x.token)
            return self._given(path, transformer, fitted, x, content)
        y = None if ignores_targets(transformer) else self.y
        model = self.models[path] = self._learn(path, transformer, x, y, None)
        if is_row_wise(transformer):
            pinned, writes = is_pinned(transformer), self._writes(transformer, x)
            return Apply(path, model, x, pinned=pinned, writes=writes)
        model = self.models[path] = replace(model, transforms=True)
        return Outcome(path, model, x)

    def _frozen(self, path: str, transformer: Any, x: Operator) -> Operator:
        """What it holds was configured elsewhere: it gives frames if all steps are to."""
        config = get_config()
        if (wanted := config["transform_output"]) == "default":
            return self._given(path, transformer, transformer, x)
        content = join(_content(transformer), wanted)
        found = self._given(path, transformer, transformer, x, content)
        return replace(found, settings=config) if isinstance(found, Apply) else found

    def _given(
        self, path: str, transformer: Any, model: Any, x: Operator, content: str = ""
    ) -> Operator:
        self.models[path] = Given(path, model, content or _content(transformer))
        writes = self._writes(transformer, x)
        frozen = getattr(transformer, "estimator", None)
        if is_row_wise(transformer) or is_row_wise(frozen):
            pinned = is_pinned(transformer)
            rows = Apply(path, self.models[path], x, pinned=pinned, writes=writes)
            own = declared(class_of(transformer)) or declared(
                getattr(transformer, "func", None)
            )
            if own is None:
                return rows
            return replace(rows, kind=tables.kind_of(self.example(rows)))
        # It may do anything, with all rows, and another time something else.
        given = self.models[path]
        return Apply(path, given, x, scope="all", random=True, writes=writes)

    def _writes(self, estimator: Any, x: Operator) -> str:
        if not may_write(estimator):
            return "never"
        return "shared" if id(x) in self.shared else "alone"

    def _configured(self, estimator: Any) -> Any:
        """A copy to be fitted, that gives frames if the user wants frames of all steps."""
        kind = class_of(estimator)
        # Of others nobody knows whether they learn all anew: a fit may go on from what is
        # there, or be one that does nothing to a model from elsewhere.
        anew = is_known(kind) or declared(kind) is not None
        fresh = blank_copy(estimator) if anew else private_copy(estimator)
        if isinstance(fresh, FrozenEstimator):
            return fresh  # all it would set is the user's own model's
        wanted = get_config()["transform_output"]
        own = hasattr(estimator, "_sklearn_output_config")
        if wanted != "default" and hasattr(fresh, "set_output") and not own:
            # The setting is one of this thread, and tasks run in others.
            for one in (fresh, *_thawed(parameters(fresh, deep=True))):
                if hasattr(one, "set_output"):
                    with suppress(ValueError):  # of a step within that has no such method
                        one.set_output(transform=wanted)
        return fresh

    def _learn(
        self,
        path: str,
        estimator: Any,
        x: Operator,
        y: Operator | None,
        weight: Operator | None,
    ) -> Learn:
        _check_parameters(path, estimator)
        if not self.whole:
            _check_names(self.example(x))
        same = repeats(estimator)
        # Two that give frames of another kind are two models.
        held = "" if frames_of(estimator) == "default" else frames_of(estimator)
        held += token_of(estimator, fitted=True) if keeps_state(estimator) else ""
        return Learn(
            path,
            self._configured(estimator),
            x,
            y,
            weight,
            dict(self.params.get(path, {})),
            same,
            nonce=held if same else uuid.uuid4().hex,
            writes=self._writes(estimator, x),
            turn=len(self.models),
        )

    def _union(self, path: str, union: FeatureUnion, x: Operator) -> Operator:
        _check(path, union._validate_transformers)
        _check(path, union._validate_transformer_weights)
        if self._mixes(union, x):
            return self._leaf(path, union, x)  # it names all together
        several = sum(part != "drop" for _, part in union.transformer_list) > 1
        if several and is_told_to_write(union):
            return self._leaf(path, union, x)  # parts see what others made of the rows
        self.inputs[path] = x
        if several:
            self.shared.add(id(x))
        weights = union.transformer_weights or {}
        parts = {
            name: self.transformed(f"{path}/{name}", part, x)
            for name, part in union.transformer_list
            if not (isinstance(part, str) and part == "drop")
        }
        if not parts:
            del self.inputs[path]
            return self._leaf(path, union, x)
        factors = tuple(map(weights.get, parts))
        return Join(
            path,
            tuple(parts.values()),
            tuple(parts),
            factors,
            _prefix(union, ""),
            frames=frames_of(union),
        )

    def _mixes(self, whole: Any, x: Operator) -> bool:
        """Whether what is to be joined to a frame may be arrays, or lack names."""
        kind = frames_of(whole)
        if kind == "default":
            return False
        rows = self.example(x)
        passes = ADAPTERS_MANAGER.adapters[kind].is_supported_container(rows)
        return not gives_frames(whole, passes and _has_names(rows))

    def _by_columns(self, path: str, whole: ColumnTransformer, x: Operator) -> Operator:
        _check(path, whole._validate_transformers)
        if self._mixes(whole, x):
            return self._leaf(path, whole, x)
        parts = self._parts(path, whole, x)
        if parts is None:
            return self._leaf(path, whole, x)
        example = tables.tabled(self.example(x))
        if frames_of(whole) != "default" and _count_on(path, parts, example):
            return self._leaf(path, whole, x)
        given = tables.columns_of(example)
        self.inputs[path] = x
        weights = whole.transformer_weights or {}
        branches = {
            name: self.transformed(f"{path}/{name}", part, Select(path, x, columns, given))
            for name, part, columns in parts
        }
        if not branches:
            del self.inputs[path]
            return self._leaf(path, whole, x)
        factors = tuple(map(weights.get, branches))
        self.joins[path] = Join(
            path,
            tuple(branches.values()),
            tuple(branches),
            factors,
            _prefix(whole, "tmp_col_name_"),
            float(whole.sparse_threshold),
            frames=frames_of(whole),
        )
        return self.joins[path]

    def _parts(
        self, path: str, whole: ColumnTransformer, x: Operator
    ) -> list[tuple[str, Any, Any]] | None:
        """(name, clone, columns) of those that read a column, the rest's included.

        None where a function chooses among columns by what all rows hold, and these are not
        at hand. That they have other columns than a few would be found out by `Select`.
        None, too, where each is to have a copy of a generator, made when it is fitted.
        """
        if holds_generator(whole):
            return None
        example = tables.tabled(self.example(x))
        asked = [columns for _, _, columns in whole.transformers if callable(columns)]
        given = isinstance(_behind(x), Source)
        few = all(map(_asks_types if given else _asks_names, asked))
        rows = example if few else tables.tabled(self.rows(x))
        if rows is None:
            return None
        if path not in self.chosen or not given:
            self.chosen[path] = {
                name: _plain(columns(rows))
                for name, _, columns in whole.transformers
                if callable(columns)
            }
        counted = counted_columns(path, whole, example, self.chosen[path])
        return [(name, cloned(part), columns) for (name, part, columns), _ in counted]


def _prefix(union: Any, start: str) -> Any:
    """How columns of frames are named in the whole."""
    unnamed = frames_of(union) != "default" and cannot_name(union)
    return Numbered(start) if unnamed else union.verbose_feature_names_out


def _behind(x: Operator) -> Operator:
    """What columns are taken of."""
    return _behind(x.x) if isinstance(x, Select) else x


def _asks_types(selector: Any) -> bool:
    """Whether a function chooses columns by their names and types alone."""
    return type(selector) is make_column_selector


def _asks_names(selector: Any) -> bool:
    """Whether it chooses them by their names alone."""
    types = ("dtype_include", "dtype_exclude")
    return _asks_types(selector) and all(getattr(selector, one) is None for one in types)


def counted_columns(
    path: str,
    whole: ColumnTransformer,
    example: Any,
    chosen: Mapping[str, Any] | None = None,
) -> list[tuple[tuple[str, Any, Any], int]]:
    """(name, transformer, columns) of the parts that read a column, the rest's included,
    each with the number of its columns; ``chosen`` are those that functions choose, which
    else are asked about the ``example``."""
    found: list[tuple[tuple[str, Any, Any], int]] = []
    used = np.zeros(tables.count_columns(example), bool)
    for name, part, columns in whole.transformers:
        wanted = columns
        if callable(columns):
            wanted = columns(example) if chosen is None else chosen[name]
        numbers = _column_numbers(path, name, example, wanted)
        used[numbers] = True
        if part != "drop" and len(numbers):
            found.append(((name, part, _plain(wanted)), len(numbers)))
    rest = np.flatnonzero(~used)
    if whole.remainder != "drop" and rest.size:
        # Labels that are no text, or not of one column alone, would be taken for others.
        names = getattr(example, "columns", None)
        columns = rest.tolist()
        if names is not None and _has_names(example) and len(set(names)) == len(names):
            columns = [names[number] for number in rest]
        found.append((("remainder", whole.remainder, columns), rest.size))
    return found


def _column_numbers(path: str, name: str, example: Any, columns: Any) -> list[int]:
    from sklearn.utils._indexing import _get_column_indices

    try:
        return list(_get_column_indices(example, columns))
    except (ValueError, KeyError, IndexError) as error:
        raise InputError(f"Step `{path}/{name}` names columns: {error}") from error


def _count_on(path: str, parts: list[tuple[str, Any, Any]], example: Any) -> bool:
    """Whether columns without names are called by their numbers in the whole table, and a
    part, which counts its own from 0, would call them otherwise."""
    if _has_names(example):
        return False
    numbers = [_column_numbers(path, name, example, columns) for name, _, columns in parts]
    return any(own != list(range(len(own))) for own in numbers)


def _thawed(parts: Mapping[str, Any]) -> list[Any]:
    """The estimators by their names, less what is frozen and what that holds."""
    frozen = tuple(n for n, one in parts.items() if isinstance(one, FrozenEstimator))
    within = tuple(f"{name}__" for name in frozen)
    kept = (n for n in parts if n not in frozen and not n.startswith(within))
    return [parts[name] for name in kept]


def _plain(columns: Any) -> Any:
    return columns.tolist() if isinstance(columns, np.ndarray) else columns


def _check(path: str, validate: Callable[[], None]) -> None:
    """scikit-learn's own check of names and parts, with the name of the step."""
    with naming(path):
        validate()


def _check_methods(path: str, estimator: Any) -> None:
    """Raise where a fit is one of the object itself, or can be made once: neither a fitted
    copy would do, nor a fit to some rows first."""
    reads = getattr(estimator, "input", None)
    if isinstance(reads, str) and reads == "file":
        raise Unforeseen(
            f"Step `{path}` reads files, which can be read once: no sample is taken."
        )
    if class_of(estimator) is object:
        raise Unforeseen(
            f"Step `{path}` has methods in the place of those of its class, so it is "
            "fitted itself, as scikit-learn does it."
        )


def _check_parameters(path: str, estimator: Any) -> None:
    """scikit-learn's own check of its parameters, before other steps are fitted."""
    known = getattr_static(estimator, "_parameter_constraints", None) is not None
    asked = known and not get_config()["skip_parameter_validation"]
    if asked and not is_valid(estimator):  # if not, the error is scikit-learn's
        _check(path, estimator._validate_params)


def _has_names(rows: Any) -> bool:
    """Whether columns have names of text, as scikit-learn wants them."""
    return all(isinstance(name, str) for name in getattr(rows, "columns", (None,)))


def _check_names(rows: Any) -> None:
    """scikit-learn's own check of the names of columns, before other steps are fitted."""
    if hasattr(rows, "columns"):
        _get_feature_names(rows)


def _content(transformer: Any) -> str:
    if doubt(transformer) is not None:
        return uuid.uuid4().hex
    state = token_of(transformer, fitted=True) if keeps_state(transformer) else ""
    return join(token_of(transformer), state, frames_of(transformer))
