"""One model with its default settings: no search, but planned, tested and saved."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.metrics import get_scorer

from mlopt import events
from mlopt.cluster import count_threads
from mlopt.plan import Choice, Plan
from mlopt.sweep.beside import described
from mlopt.sweep.clock import Clock
from mlopt.sweep.config import Config, override
from mlopt.sweep.prepare import Prepared
from mlopt.sweep.run import read_and_prepare
from mlopt.tuning.alone import every_row, fit_alone


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model, how it was made, and what it does on test rows.

    Parameters
    ----------
    model : estimator
    plan : Plan
    scoring : str
    score : float
    told : tuple of str
        Of groups, weights and time.
    """

    model: Any
    plan: Plan
    scoring: str
    score: float
    told: tuple[str, ...] = ()

    def describe(self, output: Path) -> str:
        """The plan, the score, and where the model is."""
        lines = [f"test {self.scoring}: {self.score:.5g}", *self.told, f"model: {output}"]
        return "\n".join([self.plan.explain(), "", *lines])


def fit_one(
    config: Config, family: str, observer: events.Observer = events.ignore
) -> Fitted:
    """Fit ``family`` as it is and test it on the rows that are set aside.

    Raises
    ------
    InputError, ConfigError
        When the data or the settings cannot work.
    """
    clock = Clock(observer)
    # Nobody cuts folds: the rows of a class need not reach those of a search.
    config = override(config, cv=2)
    prepared = read_and_prepare(clock, config, None, None, [family], folds=False)
    threads = count_threads(config.search.n_jobs)
    model = clock.measure("fit", lambda: _fit(prepared, family, threads))
    prepared.mark(model)
    scorer = get_scorer(prepared.scoring)
    X, y, scored = prepared.X_test, prepared.y_test, prepared.beside_test.scored
    score = clock.measure("test", lambda: float(scorer(model, X, y, **scored)))
    final = model.steps[-1][1]
    own = final.plan_ if isinstance(getattr(final, "plan_", None), Plan) else None
    shape = f"{prepared.X.shape[0]:,} rows, {prepared.X.shape[1]} columns"
    fitted = Choice(
        "fit",
        family,
        type(final).__name__,
        predicted=own.predicted if own else None,
        measured=clock.seconds["fit"],
        children=own.choices if own else (),
    )
    read = Choice("read", prepared.name, shape, measured=clock.seconds["read"])
    test = Choice(
        "test", prepared.scoring, f"{len(y):,} rows", measured=clock.seconds["test"]
    )
    plan = Plan(f"fit {prepared.name}", (read, fitted, test), measured=clock.elapsed)
    told = tuple(described(config.data, prepared.beside))
    return Fitted(model, plan, prepared.scoring, score, told)


def only_family(config: Config, name: str | None) -> str:
    """The family of a fit: ``name``, or the first that is configured and enabled."""
    configured = [one for one, family in config.families.items() if family.enabled]
    return name or next(iter([*configured, "linear"]))


def _fit(prepared: Prepared, family: str, threads: int) -> Any:
    rows = every_row(prepared.X, prepared.y, prepared.beside.weight)
    return fit_alone(prepared.families[family][0], rows, threads)
