"""What a configuration says, said on the command line: of a sweep, wherever it runs."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from mlopt.errors import ConfigError
from mlopt.writing import name_of

Source = Annotated[
    str,
    Parameter(
        help="A TOML file, or data: CSV, TSV, Parquet, LIBSVM, .npz (also compressed), "
        "sklearn:NAME."
    ),
]
Json = Annotated[bool, Parameter(name="--json", negative="")]
HIDDEN = Parameter(name="*", show=False)
"""Of options that are known only to say where they belong."""


@Parameter(name="*")
@dataclass(frozen=True)
class Fitting:
    """What a configuration says of the data, and of a model of them.

    Parameters
    ----------
    target
        Column to predict: its name, its number from 0, or "last".
    test
        File to test on. [default: a fifth of the rows is set aside]
    drop
        Columns that must not be used, separated by commas.
    group
        Column of groups, as of patients: rows of one stay together.
    weight
        Column of weights of rows, for training and scores.
    time
        Column that orders the rows: the last ones test.
    task
        classification, regression or auto. [default: auto]
    rare_classes
        What becomes of classes with too few rows: keep (refuse them), drop or merge.
        [default: keep]
    scoring
        One of scikit-learn's scorers. [default: accuracy or r2]
    seed
        [default: 0]
    n_jobs
        Threads. [default: all]
    """

    target: str | None = None
    test: str | None = None
    drop: str | None = None
    group: str | None = None
    weight: str | None = None
    time: str | None = None
    task: str | None = None
    rare_classes: str | None = None
    scoring: str | None = None
    seed: int | None = None
    n_jobs: int | None = None

    @property
    def said(self) -> dict[str, Any]:
        """What is said, as values of a configuration."""
        said = {key: value for key, value in vars(self).items() if value is not None}
        if self.drop is not None:
            said["drop"] = listed(self.drop) or None
        return said


@Parameter(name="*")
@dataclass(frozen=True)
class Searching:
    """What a configuration says of a search, which a fit has not.

    Parameters
    ----------
    timeout
        Seconds in all, the final fit included; or 90s, 1m, 1h30m. [default: 60]
    n_trials
        Configurations to try. [default: as many as the time allows]
    families
        Families to search, separated by commas. [default: all]
    cv
        Folds, or "auto". [default: auto]
    sampler
        tpe, random, grid, gp, smac, cmaes, nelder-mead or powell. [default: tpe]
    bandit
        action-elimination, successive-halving, hyperband or none.
        [default: action-elimination]
    """

    timeout: str | None = None
    n_trials: int | None = None
    families: str | None = None
    cv: str | None = None
    sampler: str | None = None
    bandit: str | None = None


@Parameter(name="*")
@dataclass(frozen=True)
class Settings(Searching, Fitting):
    """What a configuration says, said on the command line. Flags win over the file."""

    @property
    def said(self) -> dict[str, Any]:
        """What is said, as values of a configuration; the families are `names`."""
        said = super().said
        said.pop("families", None)
        with suppress(KeyError, ValueError):  # seconds; or a duration, or neither
            said["timeout"] = float(said["timeout"])
        if self.cv is not None and self.cv.isdigit():
            said["cv"] = int(self.cv)
        return said

    @property
    def names(self) -> list[str]:
        """The families by name."""
        return listed(self.families)


@Parameter(name="*")
@dataclass(frozen=True)
class Where:
    """Where a sweep runs, and remembers.

    Parameters
    ----------
    storage
        Optuna storage URL, also from OPTUNA_STORAGE. [default: SQLite in the output]
    scheduler
        Address of a Dask scheduler to run on.
    """

    storage: str | None = None
    scheduler: str | None = None

    @property
    def given(self) -> dict[str, Any]:
        """As keys of a configuration."""
        storage = self.storage or os.environ.get("OPTUNA_STORAGE") or None
        return {"storage": storage, "scheduler": self.scheduler}


SETTINGS, HERE = Settings(), Where()
FITTING, SEARCHING = Fitting(), Searching()


def check_fit(*given: Any) -> None:
    """Refuse what only a search has, for who fits one model.

    Raises
    ------
    ConfigError
    """
    known = [one.name for kind in (Searching, Where) for one in fields(kind)]
    said = {name for one in given for name, value in vars(one).items() if value is not None}
    if searched := [name for name in known if name in said]:
        option = f"--{searched[0].replace('_', '-')}"
        named = ", and one family is named by `--family`" * (searched[0] == "families")
        raise ConfigError(
            f"`{option}` is an option of a search, and this fits one model: leave it out"
            f"{named}; `mlopt sweep` has it."
        )


def config_of(source: str, settings: Fitting, **given: Any) -> Any:
    """The configuration of a sweep: a file, or data, with what the command line says."""
    from mlopt.sweep.config import Config, load, override

    given |= settings.said
    if source.endswith(".toml"):
        return override(load(Path(source)), **given)
    return override(Config(), path=source, **given)


def listed(names: str | None) -> list[str]:
    """Names that commas separate."""
    return [name.strip() for name in (names or "").split(",") if name.strip()]


def stem_of(path: str) -> str:
    """``data/adult.data.gz`` and ``sklearn:adult`` are both "adult"; ``a.2024-01.csv`` is
    "a.2024-01".
    """
    name = re.sub(r"(?i)\.[a-z]\w*(\.(gz|bz2|xz|zip))?$", "", name_of(path))
    return path.partition("sklearn:")[2] or name
