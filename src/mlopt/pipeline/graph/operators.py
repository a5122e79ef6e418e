"""Logical operators: what a pipeline computes, never how.

An operator gives either *rows* (one value a block) or a *model* (one value in all). What
was decided about it, `Learn.way` for one, is no part of its token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar

from sklearn.preprocessing import FunctionTransformer
from sklearn.utils._set_output import _get_output_config

from mlopt.identity import is_known, join, token_of
from mlopt.locking import cached_property
from mlopt.pipeline.fits.base import Fit

_PHYSICAL = {"physical": True}


@dataclass(frozen=True, eq=False)
class Operator:
    """A node of a graph. Two nodes with one token compute one value.

    Attributes
    ----------
    step : str
        The user's name of the step, with those around it: "prepare/numbers/scale".
    token : str
    gives_rows : bool
        Whether there is one value a block, not one in all.
    """

    gives_rows: ClassVar[bool] = True
    _sees: ClassVar[str] = "meaning"

    step: str
    token: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Taken once, from the inputs' tokens: hashing the whole tree at every comparison
        # would be exponential on a diamond-shaped graph.
        parts = [_token(value, self._sees) for value in self._logical()]
        object.__setattr__(self, "token", join(type(self).__qualname__, *parts))

    @property
    def meaning(self) -> str:
        """The token of what is left when all that changes no number is left out."""
        return self.token

    @property
    def origin(self) -> str:
        """The meaning of what a model learns from, and is applied to: see `Count`."""
        return self.meaning

    @cached_property
    def inputs(self) -> tuple[Operator, ...]:
        """The operators that this one reads."""
        found: list[Operator] = []
        for value in self._values().values():
            found += [v for v in _each(value) if isinstance(v, Operator)]
        return tuple(found)

    def with_inputs(self, new: Callable[[Operator], Operator]) -> Operator:
        """A copy that reads others; this one when nothing changed."""
        changes: dict[str, Any] = {}
        for name, value in self._values().items():
            if isinstance(value, Operator) and (other := new(value)) is not value:
                changes[name] = other
            elif _is_operators(value):
                others = tuple(map(new, value))
                if any(a is not b for a, b in zip(value, others, strict=True)):
                    changes[name] = others
        return replace(self, **changes) if changes else self

    def describe(self) -> str:
        """A few words for plans."""
        return type(self).__name__

    def _values(self) -> dict[str, Any]:
        kind: Any = type(self)
        return {name: getattr(self, name) for name, _ in _named_of(kind)}

    def _logical(self) -> Iterator[Any]:
        kind: Any = type(self)
        for name, logical in _named_of(kind):
            if logical:
                yield getattr(self, name)


@cache
def _named_of(kind: type[Operator]) -> tuple[tuple[str, bool], ...]:
    """The names of what an operator is made of, and whether that is part of its token."""
    return tuple(
        (f.name, f.name != "step" and not f.metadata.get("physical"))
        for f in fields(kind)
        if f.init
    )


@dataclass(frozen=True, eq=False)
class Source(Operator):
    """Data that are already somewhere; ``content`` is their token.

    ``lazy`` says that they are read anew whenever they are needed.
    """

    content: str
    lazy: bool = field(default=False, metadata=_PHYSICAL)

    def describe(self) -> str:
        return "data"


@dataclass(frozen=True, eq=False)
class Select(Operator):
    """Some columns of ``x``, by name, number, mask or slice.

    ``given`` are all columns of ``x`` for which these were chosen, as `tables.columns_of`
    has them; None where nobody looked.
    """

    x: Operator
    columns: Any
    given: Any = field(default=None, metadata=_PHYSICAL)

    def describe(self) -> str:
        return "columns"


@dataclass(frozen=True, eq=False)
class Only(Operator):
    """Some rows of ``x``, in its order; of a block there may be none.

    ``counts`` gives a number a row: how often it comes.
    """

    x: Operator
    counts: Operator

    @property
    def origin(self) -> str:
        return join(type(self).__qualname__, self.x.origin, self.counts.origin)

    def describe(self) -> str:
        return "rows of a split"


@dataclass(frozen=True, eq=False)
class Learn(Operator):
    """``estimator.fit(x, y, **params)``: gives a model.

    Attributes
    ----------
    params : mapping
        Further arguments of ``fit``.
    repeats : bool
        False for an estimator that is random without a seed, or of which nobody declared
        that it is not: no two are equal.
    transforms : bool
        Whether an `Outcome` reads what ``fit_transform`` returns.
    way : Fit or None
        How; None: scikit-learn's own.
    gathers : bool
        Whether scikit-learn's own fit could learn from ``x``.
    content : str
        The estimator's token, taken once: one that cannot be identified has another token
        whenever it is asked.
    writes : {"never", "alone", "shared"}
        Whether it may change the rows it is given, and other parts of a union read these.
    turn : int
        When scikit-learn would fit it: what is drawn, is drawn in this order.
    """

    gives_rows = False
    _sees = "origin"

    estimator: Any = field(metadata=_PHYSICAL)
    x: Operator
    y: Operator | None = None
    weight: Operator | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    repeats: bool = True
    nonce: str = ""
    transforms: bool = False
    way: Fit | None = field(default=None, metadata=_PHYSICAL)
    gathers: bool = field(default=True, metadata=_PHYSICAL)
    content: str = ""
    writes: str = field(default="never", metadata=_PHYSICAL)
    turn: int = field(default=0, metadata=_PHYSICAL)

    def __post_init__(self) -> None:
        object.__setattr__(self, "content", self.content or token_of(self.estimator))
        super().__post_init__()

    def describe(self) -> str:
        return self._words

    @cached_property
    def _words(self) -> str:
        return one_line(self.estimator)  # for every layer, choice and rule


@dataclass(frozen=True, eq=False)
class Given(Operator):
    """A model that needs no data: a transformer without state, or one fitted already.

    ``content`` is all that tells it from others.
    """

    gives_rows = False

    model: Any = field(metadata=_PHYSICAL)
    content: str

    def describe(self) -> str:
        return self._words

    @cached_property
    def _words(self) -> str:
        return one_line(self.model)


@dataclass(frozen=True, eq=False)
class Apply(Operator):
    """``model.<method>(x)``: gives as many rows as ``x`` has.

    Attributes
    ----------
    scope : {"rows", "all"}
        Whether a row is known to depend on its own row alone, or may depend on all.
    random : bool
        Whether the same rows may give something else the next time.
    kind : str
        What every block must be, as `tables.kind_of` says; "" where nobody looked.
    pinned : bool
        Whether the rows are kept, whatever it saves.
    settings : mapping, or None
        scikit-learn's, under which a model of the user is applied as it is; None for what
        a plan of a fit learns or configures.
    writes : {"never", "alone", "shared"}
        As of `Learn`.
    """

    _sees = "origin"

    model: Operator
    x: Operator
    method: str = "transform"
    scope: str = field(default="rows", metadata=_PHYSICAL)
    random: bool = field(default=False, metadata=_PHYSICAL)
    kind: str = field(default="", metadata=_PHYSICAL)
    pinned: bool = field(default=False, metadata=_PHYSICAL)
    settings: Mapping[str, Any] | None = field(default=None, metadata=_PHYSICAL)
    writes: str = field(default="never", metadata=_PHYSICAL)

    def describe(self) -> str:
        return self.model.describe()


@dataclass(frozen=True, eq=False)
class Count(Apply):
    """Documents as counted terms, from which a vectorizer learns, and makes its columns,
    what it would from the documents: to it they are the same rows."""

    @property
    def origin(self) -> str:
        return self.x.origin


@dataclass(frozen=True, eq=False)
class Outcome(Operator):
    """What ``fit_transform`` returned beside its model, for a step that is not row-wise."""

    learn: Operator
    x: Operator

    def describe(self) -> str:
        return self.learn.describe()


@dataclass(frozen=True)
class Numbered:
    """Names that scikit-learn makes up where steps within cannot name their columns.

    Attributes
    ----------
    start : str
        What comes before the number of the part and that of its column.
    """

    start: str

    def name(self, part: int, column: int) -> str:
        """Of a column in the whole."""
        return f"{self.start}{part}_{column}"


@dataclass(frozen=True, eq=False)
class Join(Operator):
    """Columns of the parts side by side.

    Attributes
    ----------
    names : tuple of str
        One a part, put before column names of data frames as ``prefix`` says: a bool, a
        format, or a function, as ``verbose_feature_names_out`` of scikit-learn; or
        `Numbered`, in place of these names.
    weights : tuple of numbers or None
        What each part is multiplied by, if by anything.
    sparse_below : float
        Sparse parts give a sparse whole when its density is below this.
    frames : {"default", "pandas", "polars"}
        Whether frames are put together to a frame; otherwise to an array.
    layout : {"auto", "dense", "sparse"}
        What they give; "auto" looks at the density, so that it suits one block only.
    """

    parts: tuple[Operator, ...]
    names: tuple[str, ...]
    weights: tuple[Any, ...]
    prefix: Any = True
    sparse_below: float = float("inf")
    frames: str = "default"
    layout: str = field(default="auto", metadata=_PHYSICAL)

    @property
    def meaning(self) -> str:
        return self.parts[0].meaning if self.changes_nothing else self.token

    @property
    def changes_nothing(self) -> bool:
        """Whether its only part comes out as it is: numbers, that keep name and layout."""
        plain = not self.prefix and self.sparse_below > 1.0
        alone = len(self.parts) == 1 and self.weights == (None,)
        return alone and plain and self.frames == "default" and _is_array(self.parts[0])

    def describe(self) -> str:
        return f"{len(self.parts)} side by side"


@dataclass(frozen=True, eq=False)
class Convert(Operator):
    """The same numbers, dense or sparse."""

    x: Operator
    layout: str

    @property
    def meaning(self) -> str:
        return self.x.meaning

    def describe(self) -> str:
        return f"to {self.layout}"


@dataclass(frozen=True, eq=False)
class Fused(Operator):
    """Row-wise operators run as one task a block; its value is that of the last.

    Attributes
    ----------
    body : Operator
        The last of them; those before it hang on it, down to ``reads``.
    reads : tuple of Operator
        What comes from other tasks.
    """

    body: Operator
    reads: tuple[Operator, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "token", self.body.token)

    @property
    def meaning(self) -> str:
        return self.body.meaning

    @property
    def origin(self) -> str:
        return self.body.origin

    @cached_property
    def inputs(self) -> tuple[Operator, ...]:
        return self.reads

    def with_inputs(self, new: Callable[[Operator], Operator]) -> Operator:
        reads = tuple(map(new, self.reads))
        same = all(a is b for a, b in zip(reads, self.reads, strict=True))
        return self if same else replace(self, reads=reads)

    def describe(self) -> str:
        return self.body.describe()


def _is_array(op: Operator) -> bool:
    """Whether rows are known to be an array or a sparse matrix, and no frame."""
    if isinstance(op, Join):
        return op.frames == "default"
    if not isinstance(op, Apply) or not isinstance(op.model, Learn):
        return False
    kind = type(op.model.estimator)
    # A function may give anything.
    known = is_known(kind) and kind is not FunctionTransformer
    return known and not _frames(op.model.estimator)


def _frames(estimator: Any) -> bool:
    return str(_get_output_config("transform", estimator)["dense"]) != "default"


def _token(value: Any, sees: str = "meaning") -> str:
    if isinstance(value, Operator):
        return str(getattr(value, sees))
    if _is_operators(value):
        return join(*(v.meaning for v in value))
    return token_of(value)


def _each(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _is_operators(value: Any) -> bool:
    return type(value) is tuple and bool(value) and isinstance(value[0], Operator)


def one_line(estimator: Any) -> str:
    """What an estimator prints; its class where it cannot tell its parameters."""
    try:
        return " ".join(repr(estimator).split())
    except Exception:
        return type(estimator).__name__
