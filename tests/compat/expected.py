"""Where scikit-learn's own tests fail with our classes, and why: the one table of it.

A test that the table names must fail, and every other must pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import translate
from re import fullmatch


@dataclass(frozen=True)
class Difference:
    """One test of scikit-learn that fails here.

    Parameters
    ----------
    test : str
        Name of a test function: all of its cases; or of one case, in brackets. ``*``
        stands for anything. Every test that is named must fail.
    reason : str
        What differs, for the documentation.
    """

    test: str
    reason: str

    def names(self, test: str) -> bool:
        """Whether it is about ``test``, such as "test_ridge[svd]"."""
        pattern = translate(self.test.replace("[", "[[]"))
        name = test if "[" in self.test else test.partition("[")[0]
        return fullmatch(pattern, name) is not None


EXPECTED: dict[str, tuple[Difference, ...]] = {}
