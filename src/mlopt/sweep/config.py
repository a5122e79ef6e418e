"""The settings of a sweep: a strict TOML file, or the defaults, with command line on top.

::

    [data]
    path = "adult.csv"
    target = "income"

    [search]
    timeout = 120
    scoring = "roc_auc"

    [families.forest]
    estimator = "RandomForestClassifier"
    params = { n_estimators = 200 }
    space.max_features = { low = 0.1, high = 1.0 }

An unknown key, a value of the wrong type or out of range is an error that names the file,
the key and what is allowed.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from mlopt.errors import ConfigError, did_you_mean
from mlopt.query.durations import parse_duration
from mlopt.sweep.strict import Strict, convert
from mlopt.writing import expanded

Task = Literal["auto", "classification", "regression"]
Sampler = Literal["random", "grid", "tpe", "gp", "smac", "cmaes", "nelder-mead", "powell"]
RareClasses = Literal["keep", "drop", "merge"]
Bandit = Literal["action-elimination", "successive-halving", "hyperband", "none"]
Positive = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(gt=0, lt=1)]
Folds = Annotated[int, Meta(ge=2)]


class Data(Strict, frozen=True):
    """What is read, and what is to be predicted.

    Parameters
    ----------
    path : str
        CSV, TSV, Parquet, LIBSVM or .npz, also compressed, or ``sklearn:NAME``.
    target : str
        Column to predict; may be left out where the format itself knows (LIBSVM, .npz).
    test : str, optional
        File to test on at the end. Without one, ``holdout`` of the rows are set aside.
    drop : tuple of str
        Columns that must not be used.
    group : str, optional
        Column of groups, as of patients: the rows of one are in one part of the data. No
        feature, and not together with ``time``.
    weight : str, optional
        Column of weights of rows, 0 or more: in training and in every score. No feature.
    time : str, optional
        Column of dates or numbers that order the rows: the last ones test, and folds judge
        by later rows than they train on. A feature as any other.
    rare_classes : str
        What becomes of classes with too few rows for every part of the data: "keep", which
        refuses them; "drop" leaves their rows out; "merge" makes one class of them.
    """

    path: str = ""
    target: str | None = None
    test: str | None = None
    holdout: Share = 0.2
    task: Task = "auto"
    drop: tuple[str, ...] = ()
    group: str | None = None
    weight: str | None = None
    time: str | None = None
    rare_classes: RareClasses = "keep"


class Search(Strict, frozen=True):
    """Budgets, who proposes, who prunes, how trials are judged, where it is remembered.

    Parameters
    ----------
    timeout : float or str
        Seconds for the whole sweep: reading, search and the final fit; or "1m", "1h30m".
        None, in Python, for no limit.
    n_trials : int, optional
        Configurations to try; None for as many as the time allows.
    storage : str, optional
        Optuna storage URL. By default an SQLite file in the output directory.
    """

    timeout: Positive | None = 60.0
    n_trials: Count | None = None
    max_passes: Count | None = None
    sampler: Sampler = "tpe"
    bandit: Bandit = "action-elimination"
    batch_size: Count | Literal["auto"] = "auto"
    cv: Folds | Literal["auto"] = "auto"
    scoring: str | None = None
    seed: Annotated[int, Meta(ge=0)] = 0
    storage: str | None = None
    study_name: str | None = None
    scheduler: str | None = None
    n_jobs: Count | None = None


class Output(Strict, frozen=True):
    """Where results are written, and in which formats."""

    directory: str | None = None
    joblib: bool = False
    trials: Literal["parquet", "csv"] = "parquet"


class Family(Strict, frozen=True):
    """One model family: a default one with other values, or an estimator by its name.

    Parameters
    ----------
    estimator : str, optional
    params : mapping of str to values
        What the model is given. A default family does not vary these.
    space : mapping of str to values
        What is varied, in place of what a default family varies.
    enabled : bool
        False leaves it out: of those configured, or of the default families where no
        other is configured.
    """

    estimator: str | None = None
    params: dict[str, Any] = msgspec.field(default_factory=dict)
    space: dict[str, Any] = msgspec.field(default_factory=dict)
    enabled: bool = True


class Config(Strict, frozen=True):
    """All settings of one sweep."""

    data: Data = Data()
    search: Search = Search()
    output: Output = Output()
    families: dict[str, Family] = msgspec.field(default_factory=dict)


def load(path: Path) -> Config:
    """Read a TOML file.

    Raises
    ------
    ConfigError
        The file cannot be read, is not TOML, or has keys or values that are not allowed.
    """
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} must be UTF-8; byte {error.start} is not.") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from None
    if isinstance(tree.get("search"), dict):
        tree["search"] = _in_seconds(tree["search"], f"{path}: `search.timeout`")
    data = tree.get("data")
    if isinstance(data, dict) and type(data.get("target")) is int:
        data["target"] = str(data["target"])  # the number of a column
    config = convert(tree, Config, f"{path}: ")
    if not config.data.path:
        raise ConfigError(f"{path}: `data.path` must name the data, it is missing.")
    return _beside(config, path.parent)


def settled(config: Config | None, **given: Any) -> Config:
    """As `override`, of what a user writes in Python: only keys that there are.

    ``timeout=None`` is no limit, as in `ModelSearchCV`.

    Raises
    ------
    ConfigError
        An unknown key, a value of the wrong type or out of range.
    """
    known = [key for one in (Data, Search, Output) for key in one.__struct_fields__]
    if unknown := sorted(set(given) - set(known)):
        raise ConfigError(
            f"unknown setting `{unknown[0]}`.{did_you_mean(unknown[0], known)} "
            f"Settings: {', '.join(known)}."
        )
    found = override(config or Config(), **given)
    if given.get("timeout", 0.0) is not None:
        return found
    endless = msgspec.structs.replace(found.search, timeout=None)
    return msgspec.structs.replace(found, search=endless)


def override(config: Config, **given: Any) -> Config:
    """``config`` with every value of ``given`` that is not None, by the key's own name.

    Raises
    ------
    ConfigError
        A value of the wrong type or out of range.
    """
    given = {key: value for key, value in given.items() if value is not None}
    given = _in_seconds(given, "`timeout`")
    changed = {}
    for section, struct in (("data", Data), ("search", Search), ("output", Output)):
        old = msgspec.structs.asdict(getattr(config, section))
        new = {key: given[key] for key in struct.__struct_fields__ if key in given}
        changed[section] = convert(old | new, struct, "")
    return msgspec.structs.replace(config, **changed)


def _in_seconds(given: dict[str, Any], name: str) -> dict[str, Any]:
    """A time limit such as "1h30m" as seconds; anything but text as it is."""
    text = given.get("timeout")
    if not isinstance(text, str):
        return given
    if (seconds := parse_duration(text)) is None:
        raise ConfigError(f'{name} must be a float or text as "1h30m", got {text!r}.')
    return given | {"timeout": seconds}


def _beside(config: Config, folder: Path) -> Config:
    """Files named in a configuration are looked for beside it."""

    def place(name: str | None) -> str | None:
        elsewhere = name is None or name.startswith("sklearn:")
        return name if elsewhere else str(folder / expanded(str(name)))

    data = config.data
    placed = msgspec.structs.replace(data, path=place(data.path), test=place(data.test))
    return msgspec.structs.replace(config, data=placed)
