"""Ways of choosing what to keep: one family, one table, one contract."""

from mlopt.caching.strategies.bounds import exact
from mlopt.caching.strategies.family import Kept, Strategy, contenders
from mlopt.caching.strategies.growth import greedy, greedy_per_byte
from mlopt.caching.strategies.rules import aggressive, estimators_only, lru, nothing
from mlopt.caching.strategies.rungs import ladder

STRATEGIES: dict[str, Strategy] = {
    "nothing": nothing,
    "estimators": estimators_only,
    "lru": lru,
    "aggressive": aggressive,
    "greedy": greedy,
    "greedy per byte": greedy_per_byte,
    "ladder": ladder,
    "exact": exact,
}
"""By the name that a report shows. One added here is tested by the contract suite."""

__all__ = ["STRATEGIES", "Kept", "Strategy", "contenders"]
