"""What a call in another thread has of the thread that asks for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import Any


def as_here() -> Callable[..., Any]:
    """Calls a function, ``call(function, *args, **named)``, as if in this thread.

    With its context variables, NumPy's `errstate` among them, and scikit-learn's
    configuration, which is one of the thread. For one call at a time.
    """
    context, config = copy_context(), _configuration()

    def call(function: Callable[..., Any], /, *args: Any, **named: Any) -> Any:
        return context.run(_under, config, function, *args, **named)

    return call


def _configuration() -> Mapping[str, Any]:
    """scikit-learn's; nothing where that was never imported.

    Nobody can have changed it then, and a worker that serves blocks need not hold it.
    """
    library = sys.modules.get("sklearn")
    found = getattr(library, "get_config", None)  # it may be on its way
    return {} if found is None else found()


def _under(
    config: Mapping[str, Any], function: Callable[..., Any], /, *args: Any, **named: Any
) -> Any:
    """``function(*args, **named)`` where that holds."""
    if not config:
        return function(*args, **named)
    from sklearn import config_context

    with config_context(**config):
        return function(*args, **named)
