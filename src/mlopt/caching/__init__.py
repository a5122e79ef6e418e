"""What to keep in memory, and the memory it is kept in.

::

    graph        steps, what each takes, who reads whom and how often
    recurrences  how often each step runs and how long all takes, given what is kept
    strategies   which outputs to keep within a budget; `choose` takes the best
    searching    the same where only a run as a whole can be priced
    memory       the kept outputs of a run
    disk         what is to outlive the process
"""

from mlopt.caching.choosing import choose
from mlopt.caching.disk import Disk
from mlopt.caching.graph import Graph, Node
from mlopt.caching.memory import Keeper, Statistics
from mlopt.caching.recurrences import executions, requests, run_seconds, savings
from mlopt.caching.searching import Found, Price, search
from mlopt.caching.strategies import STRATEGIES, Kept, Strategy, contenders

__all__ = [
    "STRATEGIES",
    "Disk",
    "Found",
    "Graph",
    "Keeper",
    "Kept",
    "Node",
    "Price",
    "Statistics",
    "Strategy",
    "choose",
    "contenders",
    "executions",
    "requests",
    "run_seconds",
    "savings",
    "search",
]
