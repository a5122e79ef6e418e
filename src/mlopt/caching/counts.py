"""What happened to kept values, counted."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Statistics:
    """What happened so far.

    Parameters
    ----------
    hits, misses : int
        Values that were there for a reader, in memory or on disk, and that were not.
    disk_hits : int
        Those of the hits that came from disk.
    evictions : int
        Values forgotten for want of room.
    refused : int
        Values that did not fit beside what is pinned.
    released : int
        Values let go because their last reader was done.
    bytes, peak : int
        Held now, and at most.
    """

    hits: int = 0
    misses: int = 0
    disk_hits: int = 0
    evictions: int = 0
    refused: int = 0
    released: int = 0
    bytes: int = 0
    peak: int = 0

    def plus(self, **more: int) -> Statistics:
        """With ``more`` added to the counts of these names; the peak follows the bytes."""
        sums = {name: getattr(self, name) + n for name, n in more.items()}
        now = replace(self, **sums)
        return replace(now, peak=max(now.peak, now.bytes))
