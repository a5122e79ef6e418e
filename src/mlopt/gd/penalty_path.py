"""Models that differ in their penalty alone start between neighbours that are trained.

::

    penalties   1    2    4    8   16   32   64  128  256
    first       o         o         o         o         o     (of these, every other first)
    then        .    x    .    x    .    x    .    x    .     between their neighbours

Solutions change smoothly with the logarithm of a penalty: one that lies between two others
is a step or two away, and the finer the penalties the nearer.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import fields

import numpy as np
from scipy.interpolate import PchipInterpolator

from mlopt.gd.columns import Model
from mlopt.gd.passes import Floats
from mlopt.prices import count

FEWEST, ENOUGH = count("path.fewest"), count("path.enough")
ALIKE = [f.name for f in fields(Model) if f.name not in ("l2", "intercept_l2")]
"""What models of many penalties have in common."""


def trained_first(models: Sequence[Model]) -> list[int]:
    """Which of ``models`` are trained before the others; all, where that is best."""
    first = set(range(len(models)))
    for family in _families(models):
        first -= {number for own in family[1:-1:2] for number in own}
    return sorted(first)


def between(
    models: Sequence[Model], trained: Mapping[int, Floats]
) -> Iterator[tuple[int, Floats]]:
    """Where the others start: their numbers, with weights (d + 1, outputs).

    ``trained`` are the weights of those that were trained first.
    """
    for family in _families(models):
        nodes = [own for own in family if own[0] in trained]
        logs = np.log([models[own[0]].l2 for own in nodes])
        line = PchipInterpolator(logs, np.stack([trained[own[0]] for own in nodes]))
        others = [own for own in family if own[0] not in trained]
        found = line(np.log([models[own[0]].l2 for own in others]))
        for own, weights in zip(others, found, strict=True):
            yield from ((number, weights) for number in own)


def _families(models: Sequence[Model]) -> list[list[list[int]]]:
    """Numbers of models by their penalty, in order, where there are many alike."""
    families: dict[Hashable, dict[float, list[int]]] = {}
    for number, model in enumerate(models):
        # A hinge has corners, and no solution here.
        if model.l2 > 0 and model.loss != "hinge":
            kind = tuple(getattr(model, name) for name in ALIKE)
            families.setdefault(kind, {}).setdefault(model.l2, []).append(number)
    large = [own for own in families.values() if len(own) >= FEWEST]
    return [[own[l2] for l2 in sorted(own)] for own in large]
