"""Is a film review good or bad? Words and pairs of words, and a linear model.

50,000 reviews (Maas et al., 2011), from the folder ``imdb`` of ``--data``. Without it,
paragraphs of documentation: is it scikit-learn's, or NumPy's and SciPy's? Run with::

    python examples/sentiment.py --output demo
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from inspect import getdoc
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import mlopt
from mlopt.pipeline.library.evaluators import BinaryMetrics
from mlopt.pipeline.library.text import LowerCase, Trim
from mlopt.pipeline.library.util import Shuffler
from mlopt.readers import read_jsonl

DATA = Path(os.environ.get("MLOPT_DATA", Path(__file__).parents[2] / "shared/data"))
CUT = 4000
"""Reviews to learn from, and as many to judge by, without ``--all``."""

Split = tuple[Any, Any, Any, Any]


def pipeline() -> mlopt.Pipeline:
    """mlopt's operators on text, and scikit-learn's for the rest."""
    terms = TfidfVectorizer(
        lowercase=False,
        ngram_range=(1, 2),
        max_features=200_000,
        sublinear_tf=True,
        dtype=np.float32,
    )
    return mlopt.make_pipeline(
        Trim(), LowerCase(), terms, LogisticRegression(C=30, max_iter=300)
    )


def reviews(folder: Path, rows: int | None) -> Split:
    """Reviews to learn from and to judge by, 1 for good; ``rows`` of each at random."""
    parts: list[Any] = []
    for name in ("train", "test"):
        X, y = read_jsonl(folder / f"imdb/imdb_{name}.jsonl.gz")
        X, y = Shuffler(0).shuffle(X, y)
        parts += [X[:rows], y[:rows]]
    return tuple(parts)  # type: ignore[return-value]


def paragraphs() -> Split:
    """Of docstrings: 1 for scikit-learn's, 0 for NumPy's and SciPy's."""
    import scipy.signal
    import scipy.stats
    import sklearn.datasets
    import sklearn.linear_model
    import sklearn.metrics
    import sklearn.preprocessing

    theirs = [sklearn.linear_model, sklearn.metrics, sklearn.preprocessing]
    texts = [_documentation(m) for m in (np, np.linalg, scipy.stats, scipy.signal)]
    other = sorted({one for found in texts for one in found})
    ours = sorted({one for module in theirs for one in _documentation(module)} - {*other})
    y = np.repeat([1, 0], [len(ours), len(other)])
    Xa, Xb, ya, yb = train_test_split([*ours, *other], y, random_state=0, stratify=y)
    return Xa, ya, Xb, yb


def _documentation(module: ModuleType) -> list[str]:
    public = [getattr(module, name) for name in dir(module) if not name.startswith("_")]
    texts = [getdoc(one) or "" for one in public if callable(one)]
    found = [part for text in texts for part in text.split("\n\n")]
    return [part for part in found if len(part.split()) > 8]


def picture(model: mlopt.Pipeline, names: tuple[str, str]) -> Figure:
    """The words and pairs that speak most for each answer."""
    terms = model[2].get_feature_names_out()
    weights = model[-1].coef_[0]
    order = np.argsort(weights)
    shown = np.concatenate([order[:20], order[-20:]])
    figure = Figure((7, 8), layout="constrained")
    axes = figure.subplots()
    colours = np.where(weights[shown] > 0, "#2a7f62", "#b3432b")
    axes.barh(range(len(shown)), weights[shown], color=colours)
    axes.set_yticks(range(len(shown)), terms[shown])
    axes.set(xlabel="weight", title=f"{names[0]} (red) or {names[1]} (green)?")
    axes.spines[["top", "right", "left"]].set_visible(False)
    return figure


def main(arguments: Sequence[str] | None = None) -> float:
    """Show the plan, learn, judge, and draw; returns the accuracy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    parser.add_argument("--all", action="store_true", help="all reviews, not a cut")
    parser.add_argument("--output", type=Path, default=Path("demo"), help="for the picture")
    given = parser.parse_args(arguments)
    real = (given.data / "imdb").is_dir()
    split = reviews(given.data, None if given.all else CUT) if real else paragraphs()
    names = ("bad", "good") if real else ("NumPy or SciPy", "scikit-learn")
    Xa, ya, Xb, yb = split

    model = pipeline()
    print(model.explain(Xa, ya))
    begin = time.perf_counter()
    predicted = model.fit(Xa, ya).predict(Xb)
    took = time.perf_counter() - begin
    found = BinaryMetrics.of(predicted, yb)
    print(f"\n{len(Xa):,} texts learnt from and {len(Xb):,} judged in {took:.1f} s")
    print(f"accuracy {found.accuracy:.4f}, F1 of {names[1]} {found.f_score():.4f}")

    given.output.mkdir(parents=True, exist_ok=True)
    picture(model, names).savefig(given.output / "sentiment.png", dpi=120)
    print(f"Look at {given.output / 'sentiment.png'}.")
    return found.accuracy


if __name__ == "__main__":
    main()
