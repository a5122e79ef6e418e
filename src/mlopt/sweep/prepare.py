"""Everything a sweep needs before it searches: parts of the data, roles, families."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import train_test_split

from mlopt.errors import ArgumentError, ConfigError, InputError, did_you_mean
from mlopt.hearing import unheard
from mlopt.identity import token_of
from mlopt.readers.table import listed
from mlopt.sweep.beside import (
    NOTHING,
    Beside,
    check_columns_beside,
    check_groups,
    check_parts,
    check_test_weights,
    described,
    hold_out,
    set_apart,
    set_apart_of_test,
    wanted_drops,
)
from mlopt.sweep.cells import giveaways, notations, row_list, unreadable
from mlopt.sweep.config import Config
from mlopt.sweep.families import Built, Case
from mlopt.sweep.loading import Source, without
from mlopt.sweep.rare import Rare, least_rows, rare_classes
from mlopt.sweep.registry import families_of
from mlopt.sweep.roles import Roles, roles_of
from mlopt.sweep.tabular import check_columns
from mlopt.sweep.target import Target, align, check_counts, splitter, target_of
from mlopt.tuning.alone import every_row
from mlopt.tuning.crews.fitting import fit_arguments


@dataclass(frozen=True, eq=False)
class Prepared:
    """A sweep that is ready to run.

    Parameters
    ----------
    name : str
        Of the data.
    X, y : (n, d) data frame or CSR matrix, (n,)
        Training rows.
    X_test, y_test
        Rows for the final test.
    test_source : str
        Where the test rows come from.
    case : Case
    families : dict of str to (estimator, space)
    cv, cv_name
        The splitter and what it does, in words.
    scoring : str
    messages : tuple of str
        What was found out, as sentences.
    numbered_from : int or None
        As of `read_table`.
    decimal : str or None
        As of `Table`.
    beside, beside_test : Beside
        Groups and weights of both.
    """

    name: str
    X: Any
    y: NDArray[Any]
    X_test: Any
    y_test: NDArray[Any]
    test_source: str
    case: Case
    families: dict[str, Built]
    cv: Any
    cv_name: str
    scoring: str
    messages: tuple[str, ...]
    numbered_from: int | None = None
    decimal: str | None = None
    beside: Beside = NOTHING
    beside_test: Beside = NOTHING

    @property
    def target(self) -> Target:
        """What is predicted."""
        return self.case.target

    @property
    def fingerprint(self) -> str:
        """A token of the content: all rows, the families and the way of judging."""
        rows = self.X, self.y, self.X_test, self.y_test
        marks = *self.beside.marks, *self.beside_test.marks
        judged = self.families, self.target.name, self.cv, self.scoring
        return token_of((*rows, *judged, *marks))

    @property
    def fitted(self) -> dict[str, Any]:
        """What a search is given beside rows and target."""
        return {"groups": self.beside.group, **self.beside.scored}

    def mark(self, model: Any) -> None:
        """Have a model know how the file that it was trained on numbers its columns, and
        writes numbers.
        """
        if self.numbered_from is not None:
            model.numbered_from_ = self.numbered_from
        if self.decimal is not None:
            model.decimal_ = self.decimal


def prepare(
    config: Config,
    source: Source,
    test: Source | None = None,
    only: Iterable[str] = (),
    *,
    folds: bool = True,
) -> Prepared:
    """Split the data, judge its columns, and set the families up.

    Parameters
    ----------
    config : Config
    source : Source
        Features and target.
    test : Source, optional
        Rows for the final test; by default a part of ``source``.
    only : iterable of str
        Families to keep; empty for all.
    folds : bool, default=True
        Whether any will be cut.

    Raises
    ------
    InputError, ConfigError
        When no sweep can come of these data or settings.
    """
    check_scoring(config.search.scoring)
    data = config.data
    check_columns_beside(data, source.X, str(source.y.name or "target"))
    messages: list[str] = list(source.remarks)
    whole = _known_target(source, messages)
    if len(whole.y) < 20:
        raise InputError(
            f"A sweep needs at least 20 rows with a target; {source.name} has "
            f"{len(whole.y)}."
        )
    target, y = target_of(whole.y, config.data.task)
    messages.append(f"{target.task} of {target.name!r} ({target.why})")
    named, rare = target, _rare(config, target, y, test)
    if rare is not None:
        messages.append(rare.describe())
        y, stay = rare.apply(y)
        whole, y = without(replace(whole, y=pd.Series(y, name=target.name)), ~stay), y[stay]
        target, y = target_of(whole.y, config.data.task)
    check_scorer(config.search.scoring, target, y)
    beside_test, given = NOTHING, whole
    whole, beside = set_apart(given, data)
    if test is None:
        train, held, where = _split(config, y, target, beside, folds)
        parts = _rows(whole.X, train), _rows(whole.X, held), y[train], y[held]
        beside, beside_test = beside.at(train), beside.at(held)
        _check_unknown(target, parts[2], parts[3], messages)
    else:
        tested, y_tested = _tested(test, whole.X, named, rare, messages)
        tested, beside_test = set_apart_of_test(tested, data, given, messages)
        parts, where = (whole.X, tested.X, y, y_tested), test.name
        if beside.time is not None:
            order = np.argsort(beside.time, kind="stable")
            parts = _rows(whole.X, order), tested.X, y[order], y_tested
            beside = beside.at(order)
        if _are_the_same(whole.X, tested.X):
            messages.append(
                "warning: the rows to test on are those to search on: the score of the "
                "test says nothing of others"
            )
    X, X_test, y, y_test = parts
    roles = _roles(X, wanted_drops(data), target.name)
    if test is not None:
        _check_test(test.name, X, X_test, roles)
    if roles is not None:
        messages += roles.describe()
        messages += _noticed(whole.X, X_test if test else None, roles, y, X)
    width = X.shape[1] if roles is None else roles.width
    case = Case(roles, target, X.shape[0], width, config.search.seed)
    cv, cv_name = _splitter(config, target, X.shape[0])
    if data.time is None and data.group is None:  # whose parts have classes by chance
        check_counts(y, target, max(2, cv.get_n_splits()))
    if folds and beside.group is not None:
        check_groups(data, len(np.unique(beside.group)), max(2, cv.get_n_splits()))
    check_parts(config, cv if folds else None, y, beside, target)
    check_test_weights(data, beside_test)
    families = families_of(case, config.families, only)
    if beside.weight is not None:
        check_weighted(config.search.scoring, target, y, beside, families)
    messages += described(data, beside)
    messages.append(f"{len(y):,} rows to search on, {cv_name}; {len(y_test):,} to test on")
    messages.append(f"families: {', '.join(families)}")
    return Prepared(
        source.name,
        X,
        y,
        X_test,
        y_test,
        where,
        case,
        families,
        cv,
        cv_name,
        config.search.scoring or target.scoring,
        tuple(messages),
        source.numbered_from,
        source.decimal,
        beside,
        beside_test,
    )


def check_scoring(name: str | None) -> None:
    """A metric must be one of scikit-learn's.

    Raises
    ------
    ConfigError
    """
    if name is not None and name not in get_scorer_names():
        raise ConfigError(
            f"`scoring` must be one of scikit-learn's scorers; got {name!r}."
            f"{did_you_mean(name, get_scorer_names())}"
        )


def check_scorer(name: str | None, target: Target, y: NDArray[Any]) -> None:
    """A metric must be one of such a target: tried on who always gives the same answer.

    Raises
    ------
    ConfigError
    """
    if name is None:
        return
    # Classes by name: a metric of numbers would take 0 and 1 for such.
    named = np.char.add("class ", y.astype(str)) if target.classifies else y
    if why := _refused(name, target, named):
        if "pos_label" not in why:
            raise ConfigError(
                f"`scoring` must be a metric of a {target.kind} target, as {target.name!r} "
                f"is; {name!r} is none: {why}. Leave it out for {target.scoring!r}."
            )
        if _refused(name, target, y):
            mean = f"{name}_macro"
            known = mean in get_scorer_names()
            raise ConfigError(
                f"`scoring` {name!r} looks for the class 1, and {target.name!r} has "
                f"{listed([str(one) for one in target.classes.tolist()])}. Write the class "
                "that is looked for as 1 and the other as 0"
                + (f", or take {mean!r}, the mean over the classes." if known else ".")
            )


def check_weighted(
    name: str | None,
    target: Target,
    y: NDArray[Any],
    beside: Beside,
    families: Mapping[str, Built],
) -> None:
    """A metric, and every family, must take weights.

    Raises
    ------
    ConfigError
    """
    scoring = name or target.scoring
    if _refused(scoring, target, y, beside.scored) and not _refused(scoring, target, y):
        raise ConfigError(
            f"`scoring` must be a metric that takes weights, {scoring!r} does not: leave "
            f"`weight` out, or `scoring` for {target.scoring!r}."
        )
    rows = every_row(None, y, beside.weight)
    for family, (estimator, _) in families.items():
        try:
            fit_arguments(estimator, rows)
        except ArgumentError:
            raise ConfigError(
                "`weight` needs families whose `fit` takes `sample_weight`; that of "
                f"`{family}` does not: leave it, or `weight`, out."
            ) from None


def looks_for_one(name: str | None) -> bool:
    """Whether a metric asks which class is 1, as it does where classes have names."""
    names = np.array(["no", "yes"])
    target = Target("", "classification", "", names)
    return name is not None and "pos_label" in _refused(name, target, names)


def _refused(
    name: str, target: Target, y: NDArray[Any], scored: Mapping[str, Any] | None = None
) -> str:
    """Why a metric cannot be of ``y``; "" where it can."""
    try:
        with unheard():
            target.score_of_same_answer(name, y, y, scored=scored)
    except (AttributeError, TypeError, ValueError) as error:
        return str(error).rstrip(".")
    return ""


def _known_target(source: Source, messages: list[str]) -> Source:
    """The rows whose target is known: others can neither teach nor test."""
    missing = source.y.isna().to_numpy()
    if not missing.any():
        return source
    rows = np.flatnonzero(missing)
    have, are = ("have", "are") if len(rows) > 1 else ("has", "is")
    messages.append(
        f"{len(rows):,} of {len(missing):,} rows {have} no target and {are} left out: "
        f"{row_list(rows)}"
    )
    return without(source, missing)


def _rare(
    config: Config, target: Target, y: NDArray[Any], test: Source | None
) -> Rare | None:
    """The classes that would not reach every part of the data, if that was asked."""
    if not target.classifies:
        return None
    holdout = config.data.holdout if test is None else None
    rows = round(len(y) * (1 - (holdout or 0.0)))
    folds = _splitter(config, target, rows)[0].get_n_splits()
    return rare_classes(y, config.data.rare_classes, least_rows(folds, holdout))


def _tested(
    test: Source, X: Any, target: Target, rare: Rare | None, messages: list[str]
) -> tuple[Source, NDArray[Any]]:
    """The rows of a test table whose target is known, with labels as training has them."""
    messages += [f"test: {remark}" for remark in test.remarks]
    found: list[str] = []
    whole = _known_target(test, found)
    messages += [f"test: {text}" for text in found]
    if isinstance(X, pd.DataFrame) != isinstance(whole.X, pd.DataFrame):
        raise InputError(
            f"Data and test file must both be tables, or both sparse; {test.name} is "
            "not what the data are."
        )
    y, said = align(whole.y, target)
    messages += [said] if said else []
    if rare is None:
        return whole, y
    y, stay = rare.apply(y)
    return without(whole, ~stay), y[stay]


def _check_test(name: str, X: Any, X_test: Any, roles: Roles | None) -> None:
    """Refuse before the search what the final test would fail on."""
    if roles is not None:
        check_columns(roles.used, X_test.columns)
    elif X.shape[1] != X_test.shape[1]:
        raise InputError(
            f"{name} must have the {X.shape[1]} columns of the data; it has "
            f"{X_test.shape[1]}."
        )


def _noticed(
    whole: pd.DataFrame,
    test: pd.DataFrame | None,
    roles: Roles,
    y: NDArray[Any],
    X: pd.DataFrame,
) -> list[str]:
    """What people should know of single cells and columns."""
    numbers = (*roles.numbers, *roles.codes)
    told = notations(whole, roles.decimals)
    reads = numbers, roles.dates, roles.decimals, roles.vectors
    told += unreadable(whole, *reads)
    if test is not None:
        told += [f"test: {text}" for text in unreadable(test, *reads)]
    told += [
        f"warning: `{name}` determines the target exactly: if it is a copy of it, or known "
        "only when the target is, drop it (`drop`, `--drop`)"
        for name in giveaways(X, roles.cells, y)
    ]
    return told


def _splitter(config: Config, target: Target, rows: int) -> tuple[Any, str]:
    search, data = config.search, config.data
    return splitter(search.cv, target, rows, search.seed, group=data.group, time=data.time)


def _split(
    config: Config, y: NDArray[Any], target: Target, beside: Beside, cuts: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], str]:
    """The rows to search on, those to test on, and how these were found."""
    share = config.data.holdout
    rows = round(len(y) * (1 - share))
    folds = max(2, _splitter(config, target, rows)[0].get_n_splits()) if cuts else 1
    found = hold_out(config.data, beside, folds, config.search.seed)
    if found is not None:
        return found
    # One row of each class must reach the test part, and three must remain.
    check_counts(y, target, 5)
    tested = math.ceil(len(y) * share)
    if min(tested, len(y) - tested) < len(target.classes):
        raise InputError(
            f"`holdout` must leave a row of each of the {len(target.classes)} classes in "
            f"both parts; {share:g} of {len(y)} rows are {tested}. Set another share, or "
            "give a `test` table."
        )
    train, held = train_test_split(
        np.arange(len(y)),
        test_size=share,
        random_state=config.search.seed,
        stratify=y if target.classifies else None,
    )
    return np.sort(train), np.sort(held), f"{share:.0%} of the rows, set aside"


def _check_unknown(
    target: Target, y: NDArray[Any], tested: NDArray[Any], messages: list[str]
) -> None:
    """Whole groups, or the last rows, may have classes that no other rows have."""
    if target.classifies and (unknown := sorted({*tested.tolist()} - {*y.tolist()})):
        messages.append(
            "warning: no model learns what only rows to test on are: "
            + listed([str(one) for one in unknown])
        )


def _rows(X: Any, numbers: NDArray[np.int64]) -> Any:
    return (
        X.iloc[numbers].reset_index(drop=True)
        if isinstance(X, pd.DataFrame)
        else X[numbers]
    )


def _are_the_same(X: Any, other: Any) -> bool:
    if sparse.issparse(X):
        return bool(X.shape == other.shape and abs(X - other).nnz == 0)
    return bool(X.equals(other))


def _roles(X: Any, drop: Iterable[str], target: str) -> Roles | None:
    if sparse.issparse(X):
        if drop := list(drop):
            raise ConfigError(
                f"`drop` names {listed(drop)}, and the columns of a sparse matrix have no "
                "names: leave them out of the file."
            )
        return None
    unknown = [name for name in drop if name not in X.columns]
    if unknown and unknown[0] == target:
        raise ConfigError(f"`drop` names {target!r}, which is the target.")
    if unknown:
        raise ConfigError(
            f"`drop` names {unknown[0]!r}, which is no column."
            f"{did_you_mean(unknown[0], list(X.columns))}"
        )
    roles = roles_of(X, drop)
    if not roles.used:
        raise InputError(
            "The table must have a column to learn from; none is left: "
            + "; ".join(roles.describe())
        )
    return roles
