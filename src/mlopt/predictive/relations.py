"""Names of tables: frames that are given, variables of the caller, files beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from typing import Any

import pandas as pd

from mlopt.errors import InputError, did_you_mean
from mlopt.predictive.clauses import duckdb, quoted
from mlopt.predictive.digits import exact
from mlopt.predictive.functions import Function
from mlopt.rows.source import collected, is_dask
from mlopt.writing import expanded

SUFFIXES = (".parquet", ".csv", ".csv.gz", ".tsv", ".json")
"""Of files that a name may mean: those that DuckDB reads by their names alone."""


_BEFORE = re.compile(r"\A\s*(EXPLAIN|DESCRIBE)\s", re.IGNORECASE)
"""What a query may begin with, beside that of which it is asked."""


def matching(text: str) -> list[str]:
    """The files that a text means as a pattern."""
    return glob(expanded(text), recursive=True)  # noqa: PTH207  (absolute)


class Relations:
    """The tables that a query may name, in a DuckDB of its own.

    Parameters
    ----------
    tables : mapping of str to frame or path
        pandas, polars, Arrow, or a Dask frame, which comes to this process; or a file.
    variables : mapping of str to object
        Where else a name may be a frame.

    Attributes
    ----------
    files : list of str
        Those that were looked up so far.
    """

    def __init__(self, tables: Mapping[str, Any], variables: Mapping[str, Any]) -> None:
        # Else DuckDB would take variables of this code for tables.
        mine = {"python_enable_replacements": False}
        self.connection = duckdb().connect(config=mine)
        self.variables = variables
        self._there: dict[str, str] = {}
        self.files: list[str] = []
        for name, table in tables.items():
            if not self._add(name, table):
                raise InputError(
                    f"`tables[{name!r}]` must be a data frame (pandas, polars, Arrow or "
                    f"Dask) or the path of a file, got {type(table).__name__}."
                )

    def close(self) -> None:
        """Give back what DuckDB holds."""
        self.connection.close()

    def check(self, query: str) -> None:
        """Refuse what is not one SELECT over tables and columns that are there.

        Raises
        ------
        InputError
        """
        with self._told():
            kinds = [one.type.name for one in self.connection.extract_statements(query)]
        if kinds != ["SELECT"]:
            raise InputError(
                f"`query` must be one SELECT, got {' and '.join(kinds) or 'none'}: it "
                "reads tables, and changes none."
            )
        self.frame(f"EXPLAIN {query}")

    def add(self, function: Function, fields: Mapping[str, str]) -> None:
        """Make a function of one structure, of fields with these names and SQL types."""
        parameter = ", ".join(f"{quoted(name)} {kind}" for name, kind in fields.items())
        self.connection.create_function(
            function.name, function, [f"STRUCT({parameter})"], function.kind,
            type="arrow", null_handling="special",
        )  # fmt: skip

    def columns(self, relation: str) -> dict[str, str]:
        """Names and SQL types of the columns of a relation."""
        found = self.frame(f"DESCRIBE SELECT * FROM {relation}")
        return dict(zip(found["column_name"], found["column_type"], strict=True))

    def frame(self, query: str) -> pd.DataFrame:
        """The rows of a query, whose names are looked up first.

        Raises
        ------
        InputError
            DuckDB cannot: with what it says.
        """
        return self._done(query, lambda: self.connection.execute(query).df())

    def answer(self, query: str) -> pd.DataFrame:
        """As `frame`, without a digit lost of whole numbers and decimals."""
        return self._done(query, lambda: exact(self.connection, query))

    def _done(self, query: str, run: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        with self._told(), ThreadPoolExecutor(1) as pool:
            self._find(query)
            # DuckDB hears of a Ctrl-C late, or takes it for a failure of a function.
            rows = pool.submit(run)
            try:
                return rows.result()
            except BaseException:  # whoever stops waiting: a Ctrl-C, a limit of time
                self.connection.interrupt()
                raise

    def names(self, query: str) -> tuple[set[str], set[str]]:
        """Names of tables, and those given by WITH, in lower case; none if unreadable."""
        tables, given = ({one.lower() for one in names} for names in self._parsed(query))
        return tables, given

    def _parsed(self, query: str) -> tuple[list[str], list[str]]:
        tree = "json_extract_string(json_serialize_sql($query), "
        (found,) = self.connection.execute(
            f"SELECT {tree}'$..table_name'), {tree}'$..cte_map.map[*].key')",
            {"query": query},
        ).fetchall()
        tables, given = found
        return tables, given

    def _tables(self, query: str) -> set[str]:
        try:
            return set(self.connection.get_table_names(query))
        except duckdb().ParserException:  # of a list of files, which it can run
            tables, given = self._parsed(_BEFORE.sub("", query))
            return {name for name in tables if name not in given}

    def _find(self, query: str) -> None:
        """Make tables of the names in a query that are none yet."""
        for name in sorted(self._tables(query)):
            if name.lower() in self._there:
                continue
            variable = self.variables.get(name)
            # A text of that name is not meant as the path of a file.
            if isinstance(variable, str | Path) or not self._add(name, variable):
                paths = (Path(f"{name}{suffix}") for suffix in SUFFIXES)
                if not self._add(name, next((p for p in paths if p.is_file()), None)):
                    # What DuckDB reads itself.
                    self.files += matching(name)

    def _add(self, name: str, table: Any) -> bool:
        if isinstance(table, str | Path):
            path = str(Path(table).expanduser())
            self.files.append(path)
            text = path.replace("'", "''")
            self.frame(f"CREATE VIEW {quoted(name)} AS SELECT * FROM '{text}'")
        elif is_dask(table):
            return self._add(name, collected(table))
        elif isinstance(table, pd.DataFrame):
            self.connection.register(name, table.rename(columns=str))
        elif type(table).__module__.partition(".")[0] in ("polars", "pyarrow"):
            self.connection.register(name, table)
        else:
            return False
        self._there[name.lower()] = name
        return True

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What DuckDB says, as errors of ours in one line."""
        db = duckdb()
        try:
            yield
        except db.Error as error:
            said = str(error).partition("\nLINE ")[0]
            found = re.match("Catalog Error: Table with name (.+) does not exist", said)
            said = self._unknown(found[1]) if found else " ".join(said.split())
            raise InputError(said) from error

    def _unknown(self, name: str) -> str:
        frames = [
            n for n, value in self.variables.items() if isinstance(value, pd.DataFrame)
        ]
        return (
            f"There is no table {name}: give it as `tables`, as a variable that is a data "
            f"frame, or as a file {name}.csv or {name}.parquet here."
            f"{did_you_mean(name, [*self._there.values(), *frames])}"
        )
