"""What is declared of operators: which go row by row, which repeat themselves.

An optimization needs to know that it changes nothing. Of scikit-learn's classes and those
of mlopt this is written in `kinds`; of any other, its author says so here, or it is run as
scikit-learn would run it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlopt.errors import InputError


@dataclass(frozen=True)
class Declaration:
    """What the author of a class or a function says of it; see `register`."""

    row_wise: bool
    stateless: bool
    seeded_by: str | None
    reads_y: bool


_DECLARED: dict[Any, Declaration] = {}


def register(
    operator: Any,
    *,
    row_wise: bool = False,
    stateless: bool = False,
    seeded_by: str | None = None,
    reads_y: bool = True,
) -> Any:
    """Declare a transformer of your own, so that pipelines may stream and share it.

    Whatever is declared is *repeatable*: fitted to the same rows with the same parameters,
    or called with the same rows, it gives the same. Equal steps are then fitted once.

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
    reads_y : bool, default=True
        Whether ``fit`` of a class looks at the targets.

    Returns
    -------
    class or function
        ``operator``, so that this may stand as a decorator with `functools.partial`.

    Raises
    ------
    InputError
        For something else, or for a function with `seeded_by`.

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
    if seeded_by is not None and not isinstance(operator, type):
        raise InputError(
            f"`seeded_by` names a parameter of a class, and {operator!r} is a function."
        )
    stateless = stateless or not isinstance(operator, type)
    _DECLARED[operator] = Declaration(row_wise, stateless, seeded_by, reads_y)
    return operator


def declared(operator: Any) -> Declaration | None:
    """What was declared of this very class or function, or None."""
    try:
        return _DECLARED.get(operator)
    except TypeError:  # nothing that cannot be hashed was declared
        return None
