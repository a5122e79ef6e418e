"""How many feeds a batch has, exactly, also when it was cut into partitions.

::

    cut(10, 3)                      3 + 3 + 3 + 1
    aggregated(cut(10, 3), 2)       2 + 2 + 2 + 1      7 feeds, not ceil(10 / 2) = 5

The arity of a batch is a number, or `Parts`: that of its partitions, which are alike but
for the last one, so that it is as small as it is deep.

References
----------
Whitlock, Larus, Bugnion, "Extending TensorFlow's Semantics with Pipelined Execution",
sections 3.2 and 3.5. Their aggregate dequeue divides the arity of each level by its size,
which is right for the innermost only.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlopt.errors import InputError

BARRIER = 1 << 62
"""An aggregate size that no batch reaches: all of its feeds together."""


@dataclass(frozen=True)
class Parts:
    """Partitions: ``full`` with ``each`` feeds, and then one with ``last``, if any."""

    full: int
    each: Arity
    last: Arity


Arity = int | Parts


def cut(arity: Arity, size: int) -> Arity:
    """The arity of a batch whose innermost level is cut into partitions of ``size``."""
    if isinstance(arity, Parts):
        return Parts(arity.full, cut(arity.each, size), cut(arity.last, size))
    return Parts(arity // size, size, arity % size)


def aggregated(arity: Arity, size: int) -> Arity:
    """The arity after an aggregate dequeue of ``size`` within each innermost partition."""
    if isinstance(arity, Parts):
        return Parts(arity.full, aggregated(arity.each, size), aggregated(arity.last, size))
    return -(-arity // size)


def count(arity: Arity) -> int:
    """How many feeds there are in all."""
    if isinstance(arity, Parts):
        return arity.full * count(arity.each) + count(arity.last)
    return arity


def place(arity: Arity, partition: int) -> int:
    """How many feeds are in the partitions before the one of that number."""
    return partition * count(arity.each) if isinstance(arity, Parts) else 0


def check_partition(partition: int, *sizes: int) -> None:
    """Refuse partitions whose aggregates are not those of the whole batch.

    Parameters
    ----------
    partition : int
        Feeds in one.
    *sizes : int
        Of the aggregate dequeues within, in order.

    Raises
    ------
    InputError
    """
    left = partition
    for size in sizes:
        if left % size:
            raise InputError(
                f"A partition must hold whole aggregates: {size} do not divide {left} "
                f"feeds of a partition of {partition}, so that others would be together "
                f"than in the whole request. Take partitions of a multiple of {size}."
            )
        left //= size
