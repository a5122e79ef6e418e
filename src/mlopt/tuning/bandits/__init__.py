"""Bandits: which models go on training (TuPAQ, Algorithm 3, and its relatives)."""

from __future__ import annotations

from mlopt.errors import InputError, did_you_mean
from mlopt.tuning.bandits.action_elimination import ActionElimination
from mlopt.tuning.bandits.base import Bandit, NoPruning, Progress, Verdicts
from mlopt.tuning.bandits.halving import Hyperband, SuccessiveHalving

__all__ = [
    "BANDITS",
    "ActionElimination",
    "Bandit",
    "Hyperband",
    "NoPruning",
    "Progress",
    "SuccessiveHalving",
    "Verdicts",
    "bandit_of",
]

BANDITS: dict[str, type[Bandit]] = {
    bandit.name: bandit
    for bandit in (ActionElimination, SuccessiveHalving, Hyperband, NoPruning)
}
"""The family's table: a new bandit is added here and nowhere else."""


def bandit_of(
    bandit: str | Bandit | None,
    max_passes: int = 100,
    n_trials: int | None = None,
    *,
    perfect: float = 1.0,
) -> Bandit:
    """The bandit of that name, or the one given, for a search of this size.

    Parameters
    ----------
    bandit : str, Bandit or None
        None prunes nothing.
    max_passes : int, default=100
        Passes of a fully trained model.
    n_trials : int, optional
        Trials of the whole search, when known.
    perfect : float, default=1.0
        The best score possible: 1 for accuracy, AUC or R2, 0 for negated losses.

    Raises
    ------
    InputError
        No bandit has that name.
    """
    if isinstance(bandit, Bandit):
        return bandit.bind(max_passes, n_trials, perfect)
    name = NoPruning.name if bandit is None else bandit
    if name not in BANDITS:
        raise InputError(
            f"`bandit` must be one of {sorted(BANDITS)}, None or a Bandit, "
            f"got {bandit!r}.{did_you_mean(str(name), BANDITS)}"
        )
    return BANDITS[name](max_passes=max_passes, n_trials=n_trials, perfect=perfect)
