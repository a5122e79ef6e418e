"""`register`: what the author of a class or a function declares of it.

An optimization needs to know that it changes nothing. Of scikit-learn's classes and those
of mlopt this is written in `fits.known`; of any other, its author says so here, in the same
table, or it is run as scikit-learn would run it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from inspect import Parameter, signature
from typing import Any

from mlopt.errors import InputError
from mlopt.pipeline.fits.base import Fit, ManyPasses, OnePass, PartialFit
from mlopt.pipeline.fits.known import known
from mlopt.pipeline.fits.record import UNKNOWN, Record
from mlopt.pipeline.fits.registry import RECORDS

_APPLIES = ("transform", "predict", "predict_proba", "decision_function")
_KINDS = (OnePass, PartialFit, ManyPasses)


def register(
    operator: Any,
    *,
    row_wise: bool = False,
    stateless: bool = False,
    seeded_by: str | None = None,
    reads_y: bool | None = None,
    ways: Iterable[Fit] = (),
) -> Any:
    """Declare an operator of your own, so that pipelines may stream and share it.

    Whatever is declared is *repeatable*: fitted to the same rows with the same parameters,
    or called with the same rows, it gives the same. Equal steps are then fitted once.
    `mlopt.check_operator` holds what is declared against random data.

    Parameters
    ----------
    operator : class or function
        A class of estimators, not its subclasses; or a function that stands in a
        `FunctionTransformer`, or is a parameter of some other step.
    row_wise : bool, default=False
        Whether each row of the output depends on its own row of the input alone, once it is
        fitted; and, of a class, ``fit_transform`` is ``fit`` and then ``transform``. Such
        steps run block by block.
    stateless : bool, default=False
        Whether a class learns nothing from rows but the names and number of columns. A
        function has no state.
    seeded_by : str, optional
        The parameter of a class that seeds it: where this is None, it is random.
    reads_y : bool, optional
        Whether ``fit`` of a class looks at the targets. Default: True; a function is given
        none.
    ways : iterable of OnePass, PartialFit or ManyPasses
        How a class learns from rows that stay in their blocks, each with the outcome of its
        own ``fit``: statistics that merge, `mlopt.PartialFit()`, or an algorithm over
        `Rows`. The plan takes the fastest, or gathers the rows for ``fit``, if they fit.

    Returns
    -------
    class or function
        ``operator``, so that this may stand as a decorator with `functools.partial`.

    Raises
    ------
    InputError
        For something else, or where what is declared contradicts itself.

    Examples
    --------
    >>> import mlopt, numpy as np
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> def lengths(X):
    ...     return np.linalg.norm(X, axis=1, keepdims=True)
    >>> step = FunctionTransformer(mlopt.register(lengths, row_wise=True))
    """
    if not callable(operator) or hasattr(type(operator), "get_params"):
        raise InputError(
            "`register` takes a class or a function, got "
            f"{operator!r}: give the class of an estimator, not the estimator."
        )
    name = getattr(operator, "__name__", repr(operator))
    for key, flag in (
        ("row_wise", row_wise), ("stateless", stateless), ("reads_y", reads_y or False),
    ):  # fmt: skip
        if not isinstance(flag, bool):
            raise InputError(f"`{key}` of `{name}` must be True or False, got {flag!r}.")
    if not isinstance(ways, Iterable) or isinstance(ways, str | bytes):
        raise InputError(f"`ways` of `{name}` must be a list of ways, got {ways!r}.")
    ways = tuple(ways)
    if isinstance(operator, type):
        _check_class(operator, row_wise, stateless, seeded_by, reads_y)
        for way in ways:
            _check_way(operator, way)
        if stateless and ways:
            raise InputError(f"`{name}` cannot be stateless and have ways to be fitted.")
        ways += known().get(operator, UNKNOWN).ways  # of mlopt's own
        reads = reads_y is not False and not stateless
        found = Record(row_wise, stateless, seeded_by, reads_y=reads, ways=ways)
    else:
        for key, value, why in (
            ("seeded_by", seeded_by, "names a parameter of a class"),
            ("reads_y", reads_y, "is said of the `fit` of a class"),
            ("ways", ways, "are ways to fit a class"),
        ):
            if value:
                raise InputError(f"`{key}` {why}, and {operator!r} is a function.")
        found = Record(row_wise, stateless=True, reads_y=False)
    RECORDS[operator] = replace(found, by_author=True)
    return operator


def _check_class(
    kind: type, row_wise: bool, stateless: bool, seeded_by: str | None, reads_y: bool | None
) -> None:
    name = kind.__name__
    if row_wise and not any(hasattr(kind, method) for method in _APPLIES):
        raise InputError(
            f"`{name}` cannot be row-wise: it has none of {', '.join(_APPLIES)}."
        )
    if stateless and reads_y:
        raise InputError(
            f"`{name}` cannot learn nothing from rows and read y: leave out `stateless` or "
            "`reads_y`."
        )
    if seeded_by is None:
        return
    known = signature(kind).parameters
    if seeded_by not in known and not any(
        one.kind is Parameter.VAR_KEYWORD for one in known.values()
    ):
        raise InputError(
            f"`seeded_by` names a parameter of `{name}`, and {seeded_by!r} is none of "
            f"{sorted(known)}."
        )


def _check_way(kind: type, way: Any) -> None:
    name = kind.__name__
    if not isinstance(way, _KINDS):
        types = ", ".join(f"`mlopt.{one.__name__}`" for one in _KINDS)
        raise InputError(f"`ways` of `{name}` must be instances of {types}, got {way!r}.")
    if not getattr(way, "name", ""):
        raise InputError(f"A way of `{name}` must have a `name`, for plans: {way!r}.")
    if isinstance(way, PartialFit) and not hasattr(kind, "partial_fit"):
        raise InputError(f"`{name}` has no `partial_fit` that blocks could go through.")
    free = isinstance(way, ManyPasses) and type(way).cost is Fit.cost and not way.sampled
    if free:
        raise InputError(
            f"The way `{way.name}` of `{name}` has no price: define `cost`, or set "
            "`sampled = True`, so that fits to samples tell."
        )
