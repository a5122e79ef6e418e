"""How far the costs of implementations are off on this machine, by which factor each term.

Costs count the work of an implementation in flops and bytes, at the rates of `Resources`.
No code reaches these rates in every shape: a calibration says what part of each it reaches
here, from experiments. Without one all factors are 1, and the constants in the formulas of
the costs stand for a typical machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from mlopt.errors import InputError


@dataclass(frozen=True)
class Factors:
    """What the terms of one implementation's cost are multiplied by.

    Parameters
    ----------
    flops, flops32, memory, fixed, python : float, default=1.0
        Positive. As the terms of `mlopt.costs.Cost` of the same names; the others belong to
        the machine and not to the implementation.
    """

    flops: float = 1.0
    flops32: float = 1.0
    memory: float = 1.0
    fixed: float = 1.0
    python: float = 1.0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
                raise InputError(
                    f"A factor must be finite and positive, got {name} = {value!r}."
                )

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of the terms, in order."""
        return tuple(field.name for field in fields(cls))


AS_COUNTED = Factors()
"""The factors of an implementation that nobody has measured."""


@dataclass(frozen=True)
class Calibration:
    """The factors of every implementation that was measured on a machine.

    Parameters
    ----------
    entries : tuple of (str, Factors)
        Names are those of an operator and of its implementation: ``"Ridge/cholesky"``.

    References
    ----------
    Sparks et al., "KeystoneML" (ICDE 2017), section III: weights of the costs are fitted to
    measurements of a cluster.
    """

    entries: tuple[tuple[str, Factors], ...] = ()

    def of(self, operator: str, implementation: str) -> Factors:
        """The factors of an implementation; all 1 for one that was not measured."""
        return dict(self.entries).get(f"{operator}/{implementation}", AS_COUNTED)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Factors by name, ready for JSON."""
        return {name: asdict(factors) for name, factors in self.entries}

    @classmethod
    def from_dict(cls, found: Mapping[str, Mapping[str, Any]]) -> Calibration:
        """The inverse of `to_dict`.

        Raises
        ------
        InputError
            For a factor that cannot be.
        TypeError
            For a term that there is not.
        """
        entries = ((str(name), Factors(**factors)) for name, factors in found.items())
        return cls(tuple(sorted(entries, key=lambda entry: entry[0])))

    def updated(self, other: Calibration) -> Calibration:
        """These factors, and those of ``other`` instead where it has some."""
        return Calibration.from_dict({**self.to_dict(), **other.to_dict()})
