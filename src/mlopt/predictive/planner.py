"""From a clause and its labelled rows to a model: that of the catalogue, or of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from mlopt import events
from mlopt.errors import InputError
from mlopt.identity import join, token_of
from mlopt.plan import Alternative, Choice, Plan
from mlopt.predictive.catalogue import Catalogue, versions
from mlopt.predictive.clauses import Clause
from mlopt.sweep.models import load
from mlopt.sweep.run import explain, sweep


@dataclass(frozen=True, eq=False)
class Planner:
    """Finds models, or searches for them.

    Parameters
    ----------
    catalogue : Catalogue or None
        None: every model is searched for, and none is kept.
    families : tuple of str
    client : distributed.Client or None
    observer : callable
    settings : mapping
        Of `mlopt.sweep`.
    """

    catalogue: Catalogue | None
    families: tuple[str, ...]
    client: Any
    observer: events.Observer
    settings: Mapping[str, Any]

    def model(self, clause: Clause, rows: pd.DataFrame) -> tuple[Any, Choice]:
        """The model of a clause, and how it came about.

        Parameters
        ----------
        clause : Clause
        rows : data frame
            Predictors, and the target as the last column.
        """
        if self.catalogue is None:
            return self._search(clause, rows, None)
        folder = self._place(self.catalogue, rows)
        if not self.catalogue.use(folder):
            with self.catalogue.filling(folder):
                if not self.catalogue.use(folder):  # who held the lock may have filled it
                    found = self._search(clause, rows, folder)
                    self.catalogue.keep(folder, str(clause))
                    return found
        try:
            return load(folder), _known(clause, folder)
        except InputError as error:
            drop = f"`mlopt catalogue drop {folder.name}` removes it."
            raise InputError(f"{error} {drop}") from error

    def explain(self, clause: Clause, rows: pd.DataFrame) -> Choice:
        """How the model would come about; trains nothing."""
        if self.catalogue is not None:
            folder = self._place(self.catalogue, rows)
            if self.catalogue.use(folder):
                return _known(clause, folder)
        plan = explain(rows, _target(rows), families=self.families, **self.settings)
        return _searched(clause, plan)

    def _search(
        self, clause: Clause, rows: pd.DataFrame, folder: Path | None
    ) -> tuple[Any, Choice]:
        result = sweep(
            rows,
            _target(rows),
            output=folder,
            families=self.families,
            name=clause.relation,
            client=self.client,
            observer=self.observer,
            **self.settings,
        )
        return result.model, _searched(clause, result.plan)

    def _place(self, catalogue: Catalogue, rows: pd.DataFrame) -> Path:
        asked = sorted(self.settings.items()), sorted(self.families), versions()
        key = join(token_of(rows), token_of(asked))[:16]
        return catalogue.place(_target(rows), key)


def _target(rows: pd.DataFrame) -> str:
    return str(rows.columns[-1])


def _known(clause: Clause, folder: Path) -> Choice:
    rejected = (Alternative("sweep", reason="these rows have been planned already"),)
    return Choice(
        str(clause), "model", f"{folder.name} of the catalogue", rejected=rejected
    )


def _searched(clause: Clause, plan: Plan) -> Choice:
    return Choice(
        str(clause),
        "model",
        "sweep",
        predicted=plan.predicted,
        measured=plan.measured,
        notes=plan.notes,
        children=plan.choices,
    )
