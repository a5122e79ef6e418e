"""The generators that a process has, which steps without a seed draw from."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from mlopt.pipeline.steps.copies import parameters


@contextmanager
def generators_as_they_were() -> Iterator[None]:
    """What steps draw on samples is drawn again when they are fitted to all rows."""
    put_back = remembered(())
    try:
        yield
    finally:
        put_back()


def remembered(steps: Iterable[Any]) -> Callable[[], None]:
    """What puts back the generators of this process, and those that ``steps`` are given."""
    numpy, plain = np.random.get_state(), random.getstate()  # noqa: NPY002  (steps draw from it)
    values = (one for step in steps for one in parameters(step, deep=True).values())
    given = [put for one in values if (put := _rewound(one)) is not None]

    def put_back() -> None:
        np.random.set_state(numpy)  # noqa: NPY002  (steps draw from it)
        random.setstate(plain)
        for put in given:
            put()

    return put_back


def holds_generator(estimator: Any) -> bool:
    """Whether a generator is among what an estimator, or one within it, is given."""
    given = parameters(estimator, deep=True).values()
    return any(_rewound(value) is not None for value in given)


def _rewound(value: Any) -> Callable[[], None] | None:
    """What puts a generator back to where it is now; None for what is none."""
    if isinstance(value, np.random.RandomState):
        return partial(value.set_state, value.get_state())
    if isinstance(value, np.random.Generator):
        bits = value.bit_generator
        return partial(setattr, bits, "state", bits.state)
    return None
