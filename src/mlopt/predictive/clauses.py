"""Clauses ``PREDICT(target [, predictors]) GIVEN relation`` in the text of a query.

All else is DuckDB's: its tokens tell a clause from strings and comments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlopt.errors import ConfigError, QuerySyntaxError

_WORD, _GIVEN = "predict", "given"
_ENDS = (
    _WORD, ",", ";", "and", "or", "as",
    "from", "where", "group", "having", "order", "limit",
)  # fmt: skip
"""Before these GIVEN must have come: they begin something else."""
_COLUMNS = "PREDICT takes names of columns, with commas between them"
_RELATION = "GIVEN needs a table, a file in quotes, or (SELECT ...)"


@dataclass(frozen=True)
class Token:
    """A piece of a query; ``start`` and ``end`` are of its bytes."""

    kind: str
    text: str
    start: int
    end: int

    def says(self, word: str) -> bool:
        """Whether it is that word, or sign, unquoted."""
        return self.kind not in ("string_const", "comment") and self.text.lower() == word

    @property
    def named(self) -> bool:
        """Whether it can be the name of a column or a table."""
        return self.kind in ("identifier", "keyword")

    @property
    def name(self) -> str:
        """The name that it is, without quotes."""
        quoted = self.text.startswith('"')
        return self.text[1:-1].replace('""', '"') if quoted else self.text


@dataclass(frozen=True)
class Column:
    """A column as it is named in a query: ``p.photo`` is ``p.`` and ``photo``."""

    prefix: str
    name: str


@dataclass(frozen=True)
class Clause:
    """One PREDICT.

    Parameters
    ----------
    target : Column
    predictors : tuple of Column
        Empty: all other columns of the relation.
    relation : str
        SQL after FROM: a table, a file in quotes, or a query in parentheses.
    span, given : pair of int
        The bytes of the query that hold ``PREDICT(...)`` and ``GIVEN relation``; a
        comparison may be between, as in TuPAQ: ``PREDICT(tag) = 'Plant' GIVEN Labelled``.
    """

    target: Column
    predictors: tuple[Column, ...]
    relation: str
    span: tuple[int, int]
    given: tuple[int, int]

    def __str__(self) -> str:
        names = ", ".join(column.name for column in (self.target, *self.predictors))
        return f"PREDICT({names}) GIVEN {self.relation}"


def clauses_of(query: str) -> list[Clause]:
    """The clauses of a query, in their order; none within another's relation.

    Raises
    ------
    QuerySyntaxError
        A PREDICT that is not followed by columns and GIVEN with a relation.
    """
    found: list[Clause] = []
    tokens = tokens_of(query)
    at = 0
    while at < len(tokens):
        if tokens[at].says(_WORD) and at + 1 < len(tokens) and tokens[at + 1].text == "(":
            clause, at = _Reader(query, tokens, at).clause()
            found.append(clause)
        else:
            at += 1
    return found


def replaced(query: str, clauses: Sequence[Clause], with_: Sequence[str]) -> str:
    """The query with each clause as other SQL."""
    content, parts, done = query.encode(), [], 0
    for clause, text in zip(clauses, with_, strict=True):
        start, end = clause.span
        parts += [content[done:start], text.encode(), content[end : clause.given[0]]]
        done = clause.given[1]
    return b"".join([*parts, content[done:]]).decode()


def tokens_of(query: str) -> list[Token]:
    """A query in pieces, without comments."""
    content = query.encode()
    found = duckdb().tokenize(query)
    ends = [*(start for start, _ in found), len(content)][1:]
    tokens = []
    for (start, kind), end in zip(found, ends, strict=True):
        text = content[start:end].decode().rstrip()
        tokens.append(Token(kind.name, text, start, start + len(text.encode())))
    return [token for token in tokens if token.kind != "comment"]


def quoted(name: str) -> str:
    """A name as SQL writes it, whatever its characters are."""
    return '"' + name.replace('"', '""') + '"'


def duckdb() -> Any:
    """The package, an extra of mlopt.

    Raises
    ------
    ConfigError
        It is not installed.
    """
    try:
        import duckdb
    except ImportError:
        raise ConfigError("SQL needs duckdb: pip install 'mlopt[sql]'.") from None
    return duckdb


class _Reader:
    """Reads one clause, from its PREDICT on."""

    def __init__(self, query: str, tokens: Sequence[Token], at: int) -> None:
        self.query, self.tokens, self.at = query, tokens, at
        self.first = tokens[at]

    def clause(self) -> tuple[Clause, int]:
        """The clause, and the number of the token after it."""
        self.at += 2
        columns = [self._column()]
        while self._takes(","):
            columns.append(self._column())
        if not self._takes(")"):
            raise self._error(_COLUMNS)
        end = self.tokens[self.at - 1].end
        given = self._given()
        start = self._token(_RELATION).start
        stop = self._relation()
        relation = self.query.encode()[start:stop].decode()
        spans = (self.first.start, end), (given, stop)
        return Clause(columns[0], tuple(columns[1:]), relation, *spans), self.at

    def _given(self) -> int:
        """Skip what is compared, and GIVEN; where that begins."""
        depth = 0
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            depth += (token.text == "(") - (token.text == ")")
            if depth < 0 or any(map(token.says, _ENDS if depth == 0 else (_WORD,))):
                break
            self.at += 1
            if depth == 0 and token.says(_GIVEN):
                return token.start
        raise self._error(
            "PREDICT(...) must be followed by GIVEN and the rows to learn from: "
            "PREDICT(tag, photo) GIVEN LabeledPhotos"
        )

    def _column(self) -> Column:
        parts = [self._name(_COLUMNS)]
        while self._takes("."):
            parts.append(self._name("After the dot must be the name of a column"))
        prefix = "".join(f"{quoted(part)}." for part in parts[:-1])
        return Column(prefix, parts[-1])

    def _relation(self) -> int:
        """Skip the relation; where it ends."""
        if self._takes("("):
            depth = 1
            while depth:
                token = self._token("The parenthesis after GIVEN must be closed")
                depth += (token.text == "(") - (token.text == ")")
                self.at += 1
        elif self._token(_RELATION).kind == "string_const":
            self.at += 1
        else:
            self._name(_RELATION)
            while self._takes("."):
                self._name("After the dot must be the name of a table")
        return self.tokens[self.at - 1].end

    def _name(self, needed: str) -> str:
        token = self._token(needed)
        if not token.named:
            raise self._error(needed)
        self.at += 1
        return token.name

    def _takes(self, word: str) -> bool:
        found = self.at < len(self.tokens) and self.tokens[self.at].says(word)
        self.at += found
        return found

    def _token(self, needed: str) -> Token:
        if self.at >= len(self.tokens):
            raise self._error(needed)
        return self.tokens[self.at]

    def _error(self, needed: str) -> QuerySyntaxError:
        ended = self.at >= len(self.tokens)
        token = None if ended else self.tokens[self.at]
        place = len(self.query.encode()) if token is None else token.start
        before = self.query.encode()[:place].decode()
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        got = "the end of the query" if token is None else f"`{token.text[:40]}`"
        return QuerySyntaxError(
            f"{needed}; got {got} (line {line}, column {column}).", line, column
        )
