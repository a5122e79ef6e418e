"""What kind of operator a step is: as is known of its class, or declared by its author."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import preprocessing
from sklearn.utils import get_tags

from mlopt.identity import class_of, identified, is_known
from mlopt.pipeline.fits.registry import RECORDS, declared, record_of
from mlopt.pipeline.library.util import Cacher
from mlopt.pipeline.steps.copies import parameters


def is_row_wise(transformer: Any) -> bool:
    """Whether a transformer is known, or declared, to treat each row by itself."""
    if class_of(transformer) is preprocessing.FunctionTransformer:
        return _is_row_wise_function(transformer)
    return record_of(class_of(transformer)).row_wise


def _is_row_wise_function(transformer: Any) -> bool:
    func = transformer.func
    if func is None:
        return True
    said = declared(func)
    if said is None and isinstance(func, np.ufunc):
        by_value = func.signature is None and func.nout == 1
        # Arguments may hold a value for each row; a function made of Python may count.
        return by_value and not transformer.kw_args and identified(func) is not None
    return said is not None and said.row_wise


def is_pinned(transformer: Any) -> bool:
    """Whether what a transformer gives is to be kept in any case."""
    return class_of(transformer) is Cacher


def ignores_targets(transformer: Any) -> bool:
    """Whether a transformer is known to learn the same whatever the targets are."""
    record = record_of(class_of(transformer))
    learns_nothing = not record.by_author and is_stateless(transformer)
    return learns_nothing or not record.reads_y


def is_stateless(transformer: Any) -> bool:
    """Whether a transformer learns nothing from data."""
    kind = class_of(transformer)
    if (said := declared(kind)) is not None:
        return said.stateless
    return is_known(kind) and not get_tags(transformer).requires_fit


_COPIES = ("copy", "copy_X", "copy_x")
"""Parameters of scikit-learn's classes that let them write into their input if False."""


def is_told_to_write(estimator: Any) -> bool:
    """Whether an estimator, or one within it, was told that it need not copy its input."""
    return any(
        value is False and name.rpartition("__")[2] in _COPIES
        for name, value in parameters(estimator, deep=True).items()
    )


def may_write(estimator: Any) -> bool:
    """Whether an estimator may change the rows it is given: all but what is known not to.

    Nobody says so of the classes and functions that their authors register.
    """
    kind = class_of(estimator)
    if kind is preprocessing.FunctionTransformer:
        return not (estimator.func is None or isinstance(estimator.func, np.ufunc))
    known = kind in RECORDS and declared(kind) is None
    if not known or is_told_to_write(estimator):
        return True
    return any(hasattr(one, "fit") and may_write(one) for one in vars(estimator).values())
