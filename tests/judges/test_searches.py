"""`mlopt.ModelSearchCV` over a grid does what `GridSearchCV` does, whatever is drawn."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.judges.searches import Search, judge_search, searches
from tests.judges.themes import SEARCHES, effort


@pytest.mark.timeout(7200)
@effort(SEARCHES)
@given(searches())
def test_a_search_over_a_grid_gives_what_grid_search_gives(case: Search) -> None:
    judge_search(case)
