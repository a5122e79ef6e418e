"""Every logical operator of the library with its implementations, their costs and sources.

``python -m mlopt.pipeline.library.catalogue > docs/operators.md`` writes the page.
"""

from mlopt.pipeline.library.catalogue.entry import Entry, Way
from mlopt.pipeline.library.catalogue.table import ENTRIES

__all__ = ["ENTRIES", "Entry", "Way"]
