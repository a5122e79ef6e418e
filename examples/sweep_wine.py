"""A whole sweep from Python: a table in, a tested model and a report out."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp

from sklearn.datasets import load_wine

import mlopt
from mlopt.sweep.run import sweep


def main(arguments: Sequence[str] | None = None) -> None:
    """Sweep, then load the model from its file and use it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default=None, help="directory for the results")
    parser.add_argument("--timeout", type=float, default=20, help="seconds in all")
    given = parser.parse_args(arguments)
    output = Path(given.output or mkdtemp(prefix="sweep-wine-"))

    table = load_wine(as_frame=True).frame
    result = sweep(table, "target", name="wine", timeout=given.timeout, output=output)
    print(result.describe(output))

    model = mlopt.load(output / "model.skops")
    print(f"\nthe first five: {model.predict(table.head())}")


if __name__ == "__main__":
    main()
