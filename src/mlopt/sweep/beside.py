"""What columns say of rows, beside features and target: their groups, weights and time.

A group is of one part of the data. Weights count in training and in every score. In time,
what judges comes after what trains.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import GroupShuffleSplit

from mlopt.errors import ConfigError, InputError, did_you_mean
from mlopt.hearing import unheard
from mlopt.readers import notation
from mlopt.readers.table import listed
from mlopt.sweep.cells import is_text, numbers_of, row_list
from mlopt.sweep.config import Config, Data
from mlopt.sweep.dates import read_dates
from mlopt.sweep.loading import Source
from mlopt.sweep.roles import roles_of
from mlopt.sweep.target import Target

KEYS = ("group", "weight", "time")
"""The settings that name such a column."""


@dataclass(frozen=True, eq=False)
class Beside:
    """What is known of each row; None where nothing is.

    Parameters
    ----------
    group : (n,) integers, optional
        The number of its group.
    weight : (n,) floats, optional
    time : (n,), optional
        Numbers, or dates, that order the rows.
    """

    group: NDArray[Any] | None = None
    weight: NDArray[Any] | None = None
    time: NDArray[Any] | None = None

    @property
    def scored(self) -> dict[str, Any]:
        """What a scorer is given beside rows and target."""
        return {} if self.weight is None else {"sample_weight": self.weight}

    @property
    def marks(self) -> tuple[Any, ...]:
        """What a study is of, besides its rows in their order."""
        pairs = (("group", self.group), ("weight", self.weight))
        return tuple(pair for pair in pairs if pair[1] is not None)

    def at(self, rows: NDArray[np.int64]) -> Beside:
        """Of some of the rows."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        return Beside(**{n: None if v is None else v[rows] for n, v in given.items()})


NOTHING = Beside()


def check_columns_beside(data: Data, X: Any, target: str) -> None:
    """Refuse names that are no columns beside features and target.

    Raises
    ------
    ConfigError
    """
    named = {key: name for key in KEYS if (name := getattr(data, key)) is not None}
    if "group" in named and "time" in named:
        raise ConfigError(
            "`group` and `time` must not be given together: a group that is whole may have "
            "rows of the past and of the future. Leave one of them out."
        )
    for key, name in named.items():
        if sparse.issparse(X):
            raise ConfigError(
                f"`{key}` names {name!r}, and the columns of a sparse matrix have no "
                "names: give a table."
            )
        if name == target:
            raise ConfigError(f"`{key}` names {name!r}, which is the target.")
        if name not in X.columns:
            raise ConfigError(
                f"`{key}` names {name!r}, which is no column."
                f"{did_you_mean(name, list(X.columns))} Columns: {listed(list(X.columns))}."
            )
    if len(set(named.values())) < len(named):
        raise ConfigError(
            f"{' and '.join(f'`{key}`' for key in named)} must name different columns, "
            f"both name {next(iter(named.values()))!r}."
        )


def set_apart(source: Source, data: Data) -> tuple[Source, Beside]:
    """The table without its columns of groups and weights, and what they and the time say.

    Raises
    ------
    InputError
        Cells without a value, or that are no weight or no time.
    """
    X, group, weight, time = source.X, None, None, None
    if data.group is not None:
        column = X[data.group]
        _check_cells(column.isna().to_numpy(), "group", column, "a value")
        group = pd.factorize(column)[0]
    if data.weight is not None:
        weight = _weights(X[data.weight], source.decimal)
    if data.time is not None:
        time = _times(X[data.time])
    return _without(source, data), Beside(group, weight, time)


def set_apart_of_test(
    test: Source, data: Data, whole: Source, messages: list[str]
) -> tuple[Source, Beside]:
    """The same of a table to test on, which needs no groups and no time.

    Raises
    ------
    InputError
        It has no weights, and training has.
    """
    weight = None
    if data.weight is not None:
        if data.weight not in test.X.columns:
            raise InputError(
                f"{test.name} must have weights as the data have, but no column "
                f"{data.weight!r}: write it there, with 1 for rows that count alike."
            )
        weight = _weights(test.X[data.weight], test.decimal)
    if data.group is not None and data.group in test.X.columns:
        known = whole.X[data.group].unique()
        both = test.X[data.group].drop_duplicates().isin(known).sum()
        if both:
            messages.append(
                f"warning: {both:,} of the groups of {data.group!r} to test on are among "
                "those to search on: the score of the test says little of others"
            )
    return _without(test, data), Beside(weight=weight)


def wanted_drops(data: Data) -> tuple[str, ...]:
    """The columns to drop that would be features."""
    return tuple(name for name in data.drop if name not in (data.group, data.weight))


def hold_out(
    data: Data, beside: Beside, folds: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], str] | None:
    """The rows to search on, those to test on, and how they were found: whole groups, or
    the last rows in time; None where rows are alike.

    Raises
    ------
    InputError
        Too few groups, or too few different times.
    """
    share = data.holdout
    if beside.group is not None:
        many = len(np.unique(beside.group))
        check_groups(data, many, folds + 1)
        held = int(np.clip(round(share * many), 1, many - folds))
        one = GroupShuffleSplit(1, test_size=held, random_state=seed)
        train, test = next(one.split(beside.group, groups=beside.group))
        said = f"{held:,} of {many:,} groups of {data.group!r}, set aside"
        return np.sort(train), np.sort(test), said
    if beside.time is not None:
        order = np.argsort(beside.time, kind="stable")
        sorted_, wanted = beside.time[order], (1 - share) * len(order)
        # Rows of one time are on one side: they may be of one event.
        first = sorted_[min(len(order) - 1, round(wanted))]
        sides = {int(np.searchsorted(sorted_, first, side)) for side in ("left", "right")}
        if not (sides := sides - {0, len(order)}):
            raise _one_time(data.time)
        cut = min(sides, key=lambda place: (abs(place - wanted), place))
        said = f"the last {1 - cut / len(order):.0%} of the rows by {data.time!r}"
        return order[:cut], order[cut:], said
    return None


def check_groups(data: Data, many: int, least: int) -> None:
    """Every fold, and the part to test on, must have a group.

    Raises
    ------
    InputError
    """
    if many < least:
        raise InputError(
            f"`group` must name a column of at least {least} groups, so that every part of "
            f"the data has one; {data.group!r} has {many}. Ask for fewer folds (`cv`), or "
            "name a finer column."
        )


def check_parts(
    config: Config, cv: Any, y: NDArray[Any], beside: Beside, target: Target
) -> None:
    """Whole groups, and rows in time, must leave each part something to learn and judge.
    Without ``cv`` there is one part, of all rows.

    Raises
    ------
    InputError
        A part without rows, weights, a second class to learn, or a score.
    """
    data, scoring = config.data, config.search.scoring or target.scoring
    key = next((key for key in KEYS if getattr(data, key) is not None), None)
    if key is None:
        return
    rows = np.arange(len(y))
    try:
        with unheard():  # of few rows of a class; the search warns
            several = () if cv is None else cv.split(rows[:, None], y, beside.group)
            cuts = [(rows, rows)] if cv is None else [*several]
    except ValueError as error:  # as scikit-learn says it
        raise InputError(f"Folds (`cv`) must be possible with `{key}`: {error}") from None
    for fold, (train, test) in enumerate(cuts, 1):
        lacks = ""
        if not len(test):
            lacks = "no rows to judge by"
        elif target.classifies and len(np.unique(y[train])) < 2:
            lacks = f"only rows of {y[train][0].item()!r} to learn from"
        elif beside.weight is not None:
            whole = beside.weight[train].sum(), beside.weight[test].sum()
            lacks = "" if min(whole) > 0 else "rows without any weight"
        if not lacks and cv is not None and not _scores(scoring, y, train, test, target):
            lacks = f"no {scoring}: its rows to judge by have other classes, or only one"
        if lacks:
            where = "the rows" if cv is None else f"fold {fold}"
            fewer = "" if cv is None else "Ask for fewer folds (`cv`), or leave"
            raise InputError(
                f"`{key}` {getattr(data, key)!r} leaves {where} {lacks}. "
                f"{fewer or 'Leave'} it out."
            )


def check_test_weights(data: Data, beside: Beside) -> None:
    """The rows that are set aside must count.

    Raises
    ------
    InputError
    """
    if beside.weight is not None and not beside.weight.sum() > 0:
        raise InputError(
            f"`weight` {data.weight!r} must be above 0 in the rows that are set aside to "
            "test on, and is 0 in all of them. Set another `holdout`, or leave it out."
        )


def _scores(scoring: str, y: NDArray[Any], train: Any, test: Any, target: Target) -> bool:
    """Whether a fold can be scored, whoever is asked."""
    try:
        with unheard():
            return bool(
                np.isfinite(target.score_of_same_answer(scoring, y[train], y[test]))
            )
    except ValueError:
        return False


def described(data: Data, beside: Beside) -> list[str]:
    """A sentence for each that is used."""
    told = []
    if beside.group is not None:
        many = len(np.unique(beside.group))
        told.append(
            f"groups of {data.group!r}: {many:,} to search on, each whole in one fold"
        )
    if beside.weight is not None:
        told.append(f"weights of {data.weight!r}: they count in training and in all scores")
    if beside.time is not None:
        told.append(
            f"in the order of {data.time!r}: later rows judge what earlier ones taught"
        )
    return told


def _without(source: Source, data: Data) -> Source:
    """A table without what is no feature; of the time its roles decide."""
    apart = [name for name in (data.group, data.weight) if name is not None]
    if not apart:
        return source
    return replace(source, X=source.X.drop(columns=apart, errors="ignore"))


def _weights(column: pd.Series, decimal: str | None) -> NDArray[np.float64]:
    moments = pd.api.types.is_datetime64_any_dtype(column.dtype)
    sign = decimal or (notation.decimal_of(column.astype(str)) if is_text(column) else ".")
    weights = np.full(len(column), np.nan) if moments else numbers_of(column, sign)
    _check_cells(~(weights >= 0), "weight", column, "a finite number of at least 0")
    if not weights.sum() > 0:
        raise InputError(
            f"`weight` must be above 0 somewhere; {column.name!r} is 0 in all."
        )
    return weights


def _times(column: pd.Series) -> NDArray[Any]:
    """Dates or numbers, as the roles of columns have them read."""
    name = str(column.name)
    _check_cells(column.isna().to_numpy(), "time", column, "a date or a number")
    if column.nunique() < 2:
        raise _one_time(name)
    roles = roles_of(column.to_frame(name))
    if name in roles.dates:
        dates = read_dates(column, roles.dates[name])
        _check_cells(dates.isna().to_numpy(), "time", column, "a date")
        return np.asarray(dates.to_numpy())
    numbers = numbers_of(column, roles.decimals.get(name) or ".")
    _check_cells(np.isnan(numbers), "time", column, "a date or a number")
    return numbers


def _one_time(name: str | None) -> InputError:
    return InputError(
        f"`time` must order the rows, but {name!r} is the same in all of them. Name "
        "another column, or leave it out."
    )


def _check_cells(wrong: NDArray[np.bool_], key: str, column: pd.Series, what: str) -> None:
    if wrong.any():
        rows = np.flatnonzero(wrong)
        cell = column.iloc[rows[0]]
        cell = cell.item() if isinstance(cell, np.generic) else cell
        raise InputError(
            f"`{key}` must have {what} in every row; {column.name!r} has {cell!r} in "
            f"{row_list(rows)}. Fill these cells, or leave the rows out."
        )
