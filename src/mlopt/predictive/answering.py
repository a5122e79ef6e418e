"""`mlopt.sql`: each PREDICT becomes a function of plain SQL, which DuckDB answers.

``query -> clauses -> models -> SQL -> rows``
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from mlopt import events
from mlopt.errors import (
    ConfigError,
    InputError,
    MissingColumnError,
    UnsupportedError,
    did_you_mean,
)
from mlopt.plan import Choice, Plan
from mlopt.predictive.catalogue import Catalogue
from mlopt.predictive.clauses import (
    Clause,
    Column,
    Token,
    clauses_of,
    quoted,
    replaced,
    tokens_of,
)
from mlopt.predictive.functions import Function, renamed
from mlopt.predictive.planner import Planner
from mlopt.predictive.relations import Relations, matching
from mlopt.sweep.config import Search, settled
from mlopt.sweep.rare import OTHER
from mlopt.writing import check_outputs


def sql(
    query: str,
    tables: Mapping[str, Any] | None = None,
    *,
    catalogue: Path | str | Literal[False] | None = None,
    families: Iterable[str] = (),
    client: Any = None,
    observer: events.Observer = events.ignore,
    **settings: Any,
) -> Any:
    """Answer a query over tables, some columns of which are predicted.

    ``PREDICT(target, predictors...) GIVEN relation`` is a column as any other: the target,
    as a model says it that has learnt from the relation, a table, ``'a file'`` or ``(SELECT
    ...)``; without predictors from all its other columns. A model is searched for once, by
    `mlopt.sweep`; the same query on the same rows finds it in the catalogue. All else is
    DuckDB's SQL.

    Parameters
    ----------
    query : str
        One SELECT. With EXPLAIN before it: its plan; nothing is trained.
    tables : mapping of str to data frame or path, optional
        pandas, polars, Arrow; files of CSV or Parquet; a Dask frame comes to this process.
        Other names are variables of the caller that are data frames, then files here:
        ``Pictures.parquet``, ``Pictures.csv``.
    catalogue : path or False, optional
        Folder of models. [default: MLOPT_CATALOGUE, or one in the user's home] False: keep
        none, use none.
    families : iterable of str
        Families to search, as of `mlopt.sweep`; empty for all.
    client : distributed.Client, optional
    observer : callable
        Called with every event of the sweeps.
    **settings
        Of the sweeps: ``timeout="2m"``, ``n_trials``, ``scoring``, ``seed``, ...

    Returns
    -------
    DataFrame
        The rows; ``attrs["plan"]`` says how they came about. Or, of an EXPLAIN, a `Plan`.

    Raises
    ------
    InputError, ConfigError
        The query cannot be read, a table or column is not there, or no model can come of
        the rows.
    SweepInterrupted
        After Ctrl-C; with a catalogue the same query goes on where it was.

    Source: TuPAQ, section 1 (the clause), 2 (the catalogue of plans).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import mlopt
    >>> labelled = load_iris(as_frame=True).frame.rename(columns=lambda n: n[:9].strip())
    >>> flowers = labelled.drop(columns="target").iloc[::50]
    >>> query = '''SELECT PREDICT(target) GIVEN labelled AS kind, count(*) AS n
    ...            FROM flowers GROUP BY kind ORDER BY kind'''
    >>> mlopt.sql(query, families=["linear"], n_trials=2, catalogue=False)
       kind  n
    0     0  1
    1     1  1
    2     2  1
    """
    if not isinstance(query, str):
        raise InputError(
            f"`query` must be the text of a SELECT, got {type(query).__name__}."
        )
    check_settings(settings)
    caller = sys._getframe(1)
    variables = {**caller.f_globals, **caller.f_locals}
    models = None if catalogue is False else Catalogue(catalogue)
    planner = Planner(models, tuple(families), client, observer, settings)
    return answered(query, tables or {}, variables, planner)


def answered(
    query: str,
    tables: Mapping[str, Any],
    variables: Mapping[str, Any],
    planner: Planner,
    output: Path | None = None,
) -> Any:
    """As `sql`; ``output`` must be none of the files that are read."""
    tokens = tokens_of(query)
    explained = bool(tokens) and tokens[0].says("explain")
    if explained:
        query = query.encode()[tokens[0].end :].decode()
    with closing(Relations(tables, variables)) as relations:
        asked = _Query(query, relations, planner)
        if output is not None:
            # A text may be the file of a function, as of read_csv('people.csv').
            texts = [t.text[1:-1] for t in tokens if t.kind == "string_const"]
            read = [file for text in _read(tokens) for file in matching(text)]
            check_outputs([output], [*relations.files, *texts, *read])
        return asked.explain() if explained else asked.answer()


_READERS = re.compile("(read|parquet|sniff)_.*|glob|.*_scan", re.IGNORECASE)
"""Functions of DuckDB that read files."""


def _read(tokens: Sequence[Token]) -> Iterator[str]:
    """The texts in calls of functions that read files."""
    depth, inside = 0, 0
    for before, token in pairwise(tokens):
        if token.says("("):
            depth += 1
            if not inside and before.named and _READERS.fullmatch(before.name):
                inside = depth
        elif token.says(")"):
            inside = 0 if inside == depth else inside
            depth -= 1
        elif inside and token.kind == "string_const":
            yield token.text[1:-1]


_NUMBERS = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL\(.+\)")
"""SQL types of numbers, of which lists are learnt from, too."""
_SAID = ("path", "target", "drop")
"""Settings of a sweep that a query says in its words."""
_NO_VALUE = ("BLOB", "BIT", "INTERVAL", "STRUCT", "MAP", "UNION")
"""SQL types that no model learns from, nor from other lists; a model would read them
otherwise than DuckDB writes them."""


@dataclass(frozen=True)
class _Columns:
    """The columns of a clause, as its relation spells them, and their SQL types.

    Parameters
    ----------
    target : str
    predictors : tuple of Column
        With the prefixes of the query.
    types : dict of str to str
    """

    target: str
    predictors: tuple[Column, ...]
    types: dict[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """The predictors, then the target."""
        return (*(column.name for column in self.predictors), self.target)

    @property
    def packed(self) -> str:
        """SQL of the predictors of a row, as the model has learnt them."""
        values = (
            f"{quoted(c.name)} := CAST({c.prefix}{quoted(c.name)} AS {self.types[c.name]})"
            for c in self.predictors
        )
        return f"struct_pack({', '.join(values)})"


class _Query:
    """A query, whose clauses become functions of DuckDB."""

    def __init__(self, text: str, relations: Relations, planner: Planner) -> None:
        self.text, self.relations, self.planner = text, relations, planner
        self.functions: dict[tuple[str, ...], Function] = {}
        # All that needs no model, before minutes go into one.
        self.relations.check(self._plain(text, self._stand_in))

    def answer(self) -> pd.DataFrame:
        """The rows."""
        started = time.perf_counter()
        plain = self._plain(self.text, self._prediction)
        began = time.perf_counter()
        try:
            rows = self.relations.answer(plain)
        except InputError:
            for function in self.functions.values():
                if function.error:  # what a model says, and not that a function failed
                    raise function.error from None
            raise
        ended = time.perf_counter()
        rows.columns = renamed(rows.columns, self.functions.values())
        choices = [function.choice() for function in self.functions.values()]
        choices.append(Choice("answer", "SQL", "DuckDB", measured=ended - began))
        rows.attrs["plan"] = Plan(
            "query", tuple(choices), measured=ended - started
        ).explain()
        return rows

    def explain(self) -> Plan:
        """The plan; trains nothing."""
        choices = []
        for clause in clauses_of(self.text):
            if clauses_of(clause.relation):
                raise UnsupportedError(
                    "EXPLAIN trains nothing, so that the rows of a GIVEN with a PREDICT of "
                    "its own are not known: explain that one alone."
                )
            columns = self._columns(clause, clause.relation)
            rows = self._labelled(clause, clause.relation, columns)
            choices.append(self.planner.explain(clause, rows))
        predicted = sum(choice.predicted or 0.0 for choice in choices)
        answer = Choice("answer", "SQL", "DuckDB")
        return Plan("query", (*choices, answer), predicted=predicted)

    def _plain(self, text: str, sql_of: Callable[[Clause, str], str]) -> str:
        """Without PREDICT: what stands for a clause is told its relation in plain SQL."""
        clauses = clauses_of(text)
        self._check_names(text, clauses)
        inner = [self._plain(clause.relation, sql_of) for clause in clauses]
        return replaced(text, clauses, list(map(sql_of, clauses, inner)))

    def _check_names(self, text: str, clauses: Sequence[Clause]) -> None:
        """Refuse names of WITH as what is given, where another table would be meant."""
        _, hidden = self.relations.names(_blank(text))
        for clause in clauses:
            names, own = self.relations.names(f"SELECT * FROM {_blank(clause.relation)}")
            if found := sorted((names - own) & hidden):
                raise InputError(
                    f"{clause}: `{found[0]}` is a name of WITH, which is not seen after "
                    "GIVEN: write there what it stands for, (SELECT ...)."
                )

    def _stand_in(self, clause: Clause, relation: str) -> str:
        columns = self._columns(clause, relation)
        nothing = f"CAST(NULL AS {columns.types[columns.target]})"
        return f"CASE WHEN {columns.packed} IS NULL THEN {nothing} END"

    def _prediction(self, clause: Clause, relation: str) -> str:
        columns = self._columns(clause, relation)
        types, target = columns.types, columns.target
        key = (relation, *columns.names)
        if key not in self.functions:
            rows = self._labelled(clause, relation, columns)
            model, choice = self.planner.model(clause, rows)
            name = f"mlopt_predict_{len(self.functions)}"
            function = Function(name, target, model, choice)
            self.relations.add(
                function, {n: types[n] for n in columns.names if n != target}
            )
            self.functions[key] = function
        function = self.functions[key]
        kind = types[target] if function.classifies else function.kind
        if OTHER in map(str, getattr(function.model, "classes_", ())):
            kind = "VARCHAR"  # rare classes were merged: the type may not have the new one
        return f"CAST({function.name}({columns.packed}) AS {kind})"

    def _columns(self, clause: Clause, relation: str) -> _Columns:
        types = self.relations.columns(relation)
        target = _found(clause.target, types, clause).name
        columns = tuple(_found(one, types, clause) for one in clause.predictors)
        if not columns:
            prefix = clause.target.prefix
            columns = tuple(Column(prefix, name) for name in types if name != target)
        names = [column.name for column in columns]
        if not names or target in names or len({*names}) < len(names):
            raise InputError(
                f"{clause} must name columns beside its target, each once; the relation "
                f"has {', '.join(types)}."
            )
        for name in (*names, target):
            vector = name != target and _NUMBERS.fullmatch(types[name].rpartition("[")[0])
            list_ = types[name].endswith("]") and not vector
            if types[name].startswith(_NO_VALUE) or list_:
                raise InputError(
                    f"{clause}: `{name}` must be a number, a truth value, a text, a "
                    "category, a date or a list of numbers to learn from, it is "
                    f"{types[name]}. Name other columns, or give (SELECT ...) with its "
                    "parts as columns."
                )
        plain = {name: _any_like(kind) for name, kind in types.items()}
        return _Columns(target, columns, {**plain, target: types[target]})

    def _labelled(self, clause: Clause, relation: str, columns: _Columns) -> pd.DataFrame:
        """Rows with a target, which is the last column."""
        target = quoted(columns.target)
        wanted = ", ".join(map(quoted, columns.names))
        rows = self.relations.frame(
            f"SELECT {wanted} FROM {relation} WHERE {target} IS NOT NULL "
            # Threads join and group in any order: the same rows are the same table.
            f"ORDER BY hash({wanted})"
        )
        if rows.empty:
            raise InputError(f"{clause} must have rows with a {target}: there is none.")
        return rows


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse what no sweep knows, and what the query says itself."""
    settled(None, **settings)
    if settings.get("scheduler") is not None:
        raise ConfigError("A query takes a `client` in the place of `scheduler`.")
    allowed = {*Search.__struct_fields__, "task", "holdout", "rare_classes"}
    if said := sorted({*settings} - allowed):
        why = "The query says it" if said[0] in _SAID else "A query has no such setting"
        raise ConfigError(f"{why}: leave out `{said[0]}`.")


def _any_like(kind: str) -> str:
    """The SQL type of values that a model takes, which has learnt from some of ``kind``.

    Other rows need not have the categories of these, nor whole numbers, as small ones, nor
    days without a time: a model reads all numbers as floats.
    """
    if kind.startswith("ENUM"):
        return "VARCHAR"
    if kind.endswith("]"):
        return "DOUBLE[]"
    return "DOUBLE" if _NUMBERS.fullmatch(kind) else "TIMESTAMP" if kind == "DATE" else kind


def _blank(text: str) -> str:
    """A query that DuckDB can read: what is predicted is not there."""
    clauses = clauses_of(text)
    return replaced(text, clauses, ["NULL"] * len(clauses))


def _found(column: Column, kinds: Mapping[str, str], clause: Clause) -> Column:
    """The column as its relation spells it: SQL does not tell cases apart."""
    for name in kinds:
        if name.lower() == column.name.lower():
            return Column(column.prefix, name)
    raise MissingColumnError(
        f"{clause}: `{column.name}` must be a column of the relation."
        f"{did_you_mean(column.name, kinds)} Columns: {', '.join(kinds)}.",
        (column.name,),
    )
