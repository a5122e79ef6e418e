"""Waves of partitions: the arithmetic under ML4all's cost model (section 7.1, Table 1)."""

from __future__ import annotations

from dataclasses import dataclass

from mlopt.errors import InputError


@dataclass(frozen=True)
class Waves:
    """How many partitions a data set has, and in how many waves they are processed.

    Parameters
    ----------
    rows : int
        n
    nbytes : int
        |D|_b: bytes of the data set.
    partition_bytes : int
        |P|_b
    cap : int
        Processes that run in parallel.

    Examples
    --------
    The paper's: 85 partitions on 10 nodes that process 2 each.

    >>> waves = Waves(rows=8500, nbytes=8500, partition_bytes=100, cap=20)
    >>> waves.partitions, waves.count, waves.last
    (85, 5, 5.0)
    """

    rows: int
    nbytes: int
    partition_bytes: int
    cap: int = 1

    def __post_init__(self) -> None:
        if min(self.rows, self.nbytes) < 0 or min(self.partition_bytes, self.cap) < 1:
            raise InputError(
                "`rows` and `nbytes` must be at least 0, `partition_bytes` and `cap` at "
                f"least 1, got {self!r}."
            )

    @property
    def partitions(self) -> int:
        """``p(D) = ceil(|D|_b / |P|_b)``"""
        return -(-self.nbytes // self.partition_bytes)

    @property
    def w(self) -> float:
        """``w(D) = p(D) / cap``"""
        return self.partitions / self.cap

    @property
    def full(self) -> int:
        """``floor(w(D))``: waves in which every process has a partition."""
        return self.partitions // self.cap

    @property
    def k(self) -> int:
        """``ceil(n |P|_b / |D|_b)``: rows of a partition; all where there is only one."""
        if not self.nbytes:
            return self.rows
        return min(self.rows, -(-self.rows * self.partition_bytes // self.nbytes))

    @property
    def last(self) -> float:
        """``lwp(D)``: partitions in the wave that is not full.

        ``(n mod (k cap floor(w))) / k`` is no number where no wave is full: it is then
        p(D). And k is rounded up, so that k cap floor(w) may exceed n, which would make the
        whole of n a last wave: it never has more partitions than the full waves leave.
        """
        left = self.partitions - self.cap * self.full
        if not self.full or not self.k:
            return float(left)
        return min((self.rows % (self.k * self.cap * self.full)) / self.k, float(left))

    @property
    def last_rows(self) -> float:
        """``min(lwp, 1) k``: rows of the largest partition in the last wave."""
        return min(self.last, 1.0) * self.k

    @property
    def count(self) -> int:
        """Waves in all, the last one included if it has any partition."""
        return self.full + (self.last > 0)
