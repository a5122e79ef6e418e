"""The generators that a process has, which steps without a seed draw from."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def generators_as_they_were() -> Iterator[None]:
    """What steps draw on samples is drawn again when they are fitted to all rows."""
    numpy, plain = np.random.get_state(), random.getstate()  # noqa: NPY002  (steps draw from it)
    try:
        yield
    finally:
        np.random.set_state(numpy)  # noqa: NPY002  (steps draw from it)
        random.setstate(plain)
