"""What users set under ``mlopt`` in `dask.config`, checked where it is read.

A setting that is None is as one that is not there.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mlopt.errors import InputError, did_you_mean
from mlopt.parameters import bytes_of

PLANS = ("where it pays", "always")
"""What `mlopt.plan` may say: whether to plan what takes less than its planning."""


NAMES = (
    "cluster", "disk", "disk-limit", "keep", "memory-budget", "plan", "remember",
    "resources", "reuse-models", "reuse-rows", "strict",
)  # fmt: skip
"""All that can be set."""


def given(name: str, default: Any = None) -> Any:
    """What is set, whatever it is.

    Raises
    ------
    InputError
        Something else is set that there is not.
    """
    import dask.config  # which only who has settings need import

    for one in dask.config.get("mlopt", None) or ():
        if str(one).replace("_", "-") not in NAMES:
            raise InputError(
                f"`mlopt.{one}` in dask.config is no setting."
                f"{did_you_mean(str(one), NAMES)} Settings: {', '.join(NAMES)}."
            )
    found = dask.config.get(name, None)
    return default if found is None else found


def one_of(name: str, allowed: Sequence[str]) -> str:
    """One of the ``allowed`` texts; the first where nothing is set.

    Raises
    ------
    InputError
        When it is none of them. So with all that follow.
    """
    found = given(name, allowed[0])
    if not isinstance(found, str) or found not in allowed:
        raise refusal(name, f"one of {tuple(allowed)}", found)
    return found


def switch(name: str, default: bool) -> bool:
    """Whether it is on: True or False, or 1 or 0."""
    found = given(name, default)
    # Text such as "no" would count as True.
    if not isinstance(found, bool | int) or found not in (0, 1):
        raise refusal(name, "True or False", found)
    return bool(found)


def size(name: str, default: int | str = 0) -> int:
    """Bytes: a number, or text as in "2GiB"."""
    return bytes_of(f"`{name}` in dask.config", given(name, default))


def folder(name: str) -> str | os.PathLike[str] | None:
    """A folder, or None where none is set."""
    found = given(name)
    if found is None or (isinstance(found, str | os.PathLike) and str(found)):
        return found
    raise refusal(name, "the path of a folder", found)


def state_folder(kind: str, given: Path | str | None) -> Path:
    """Where something is kept: what is given, else a folder of that name of the user's."""
    state = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state")
    return Path(given or state / "mlopt" / kind).expanduser().absolute()


def plans_always() -> bool:
    """Whether the user wants plans whatever they take, as `mlopt.plan` says."""
    return one_of("mlopt.plan", PLANS) == "always"


def refusal(name: str, must_be: str, found: Any) -> InputError:
    """That a setting must be something else."""
    return InputError(f"`{name}` in dask.config must be {must_be}, got {found!r:.200}.")
