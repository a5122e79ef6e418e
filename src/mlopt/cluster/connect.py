"""A client of a cluster that is already there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import distributed

from mlopt.errors import ConfigError


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
    try:
        client = distributed.Client(address, timeout=patience)
    except (OSError, TimeoutError, ValueError) as error:
        raise ConfigError(
            f"`scheduler` must be the address of a Dask scheduler that runs; {address!r} "
            f"does not answer ({type(error).__name__}). Start one with `dask scheduler`."
        ) from None
    with client:
        yield client
