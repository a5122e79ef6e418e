"""A client of a cluster that is already there, and what is left when it is gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dask
import distributed

from mlopt.errors import ConfigError


@contextmanager
def dask_default_kept() -> Iterator[None]:
    """Put back where Dask computes by default, at the end of the block.

    A client changes it, and does not undo that when its constructor fails or when it is
    closed within its own block: every later ``compute()`` would ask for a client. Blocks
    must nest.
    """
    before = dask.config.get("scheduler", None)
    try:
        yield
    finally:
        if before is None:
            dask.config.config.pop("scheduler", None)
        else:
            dask.config.set(scheduler=before)


@contextmanager
def connect(address: str, *, patience: float = 10.0) -> Iterator[distributed.Client]:
    """The client of the scheduler at ``address``, closed at the end of the block.

    Parameters
    ----------
    address : str
        As in "tcp://10.0.0.1:8786".
    patience : float, default=10
        Seconds to wait for an answer.

    Yields
    ------
    distributed.Client
        Active until the block ends.

    Raises
    ------
    ConfigError
        When no scheduler answers.
    """
    with dask_default_kept():
        try:
            # What fails here is closed when it is collected, and would bring back then what
            # was the default before it.
            with distributed.Client(address, timeout=patience, set_as_default=False):
                pass
            client = distributed.Client(address, timeout=patience)
        except (OSError, TimeoutError, ValueError) as error:
            raise ConfigError(
                f"`scheduler` must be the address of a Dask scheduler that runs; "
                f"{address!r} does not answer ({type(error).__name__}). Start one with "
                "`dask scheduler`."
            ) from None
        with client:
            yield client
