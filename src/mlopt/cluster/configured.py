"""scikit-learn's configuration, which is one of the thread, for calls in another thread."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any


def configuration() -> Mapping[str, Any]:
    """Of the calling thread; nothing where scikit-learn was never imported.

    Nobody can have changed it then, and a worker that serves blocks need not hold it.
    """
    library = sys.modules.get("sklearn")
    found = getattr(library, "get_config", None)  # it may be on its way
    return {} if found is None else found()


def under(
    config: Mapping[str, Any], function: Callable[..., Any], /, *args: Any, **named: Any
) -> Any:
    """``function(*args, **named)`` where that holds."""
    if not config:
        return function(*args, **named)
    from sklearn import config_context

    with config_context(**config):
        return function(*args, **named)
