"""Sweeps: from a table to a tested model, a plan that explains itself, and a report.

``mlopt.sweep(frame, target=...)`` is `mlopt.sweep.table.best_model`.
"""

import os
import sys
from types import ModuleType
from typing import Any

# Threads of OpenMP that spin while they wait take the cores from those that work: where the
# machine has other work too, boosting then takes ten times as long. It must be said before
# scikit-learn is loaded; what the user has set counts more.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


class _Sweep(ModuleType):
    """The room and the function have one name, and importing a file of the room sets it."""

    def __call__(self, *args: Any, **given: Any) -> Any:
        from mlopt.sweep.table import best_model

        return best_model(*args, **given)

    @property
    def __signature__(self) -> Any:
        from inspect import signature

        from mlopt.sweep.table import best_model

        return signature(best_model)


sys.modules[__name__].__class__ = _Sweep
