"""Several operators as one function: arguments are told apart by their place."""

from __future__ import annotations

from mlopt.pipeline.graph.operators import Join, Source
from mlopt.pipeline.tasks.functions import Recipe


def test_rows_that_are_read_twice_do_not_shift_what_is_made_of_them() -> None:
    first, again, other = Source("X", "x"), Source("X", "x"), Source("Z", "z")
    inner = Join("inner", (again, other), ("a", "b"), (1.0, 1.0))
    whole = Join("whole", (inner, first), ("c", "d"), (1.0, 1.0))
    recipe = Recipe.of(whole, [first, again, other])
    (_, inside), (_, outside) = recipe.steps
    assert [{0: "X", 1: "X", 2: "Z"}[i] for i in inside] == ["X", "Z"]
    assert outside[0] == 3
    assert outside[1] in (0, 1)
