"""From what a query says back to its text, one statement a line."""

from __future__ import annotations

import re

from mlopt.query import ast
from mlopt.query.durations import format_duration
from mlopt.query.lexer import is_word
from mlopt.query.words import RESERVED

_COLUMNS = re.compile(r"[0-9]{1,9}(-[0-9]{1,9})?")


def format_script(script: ast.Script) -> str:
    """The text of all statements."""
    return "\n".join(f"{format_statement(one)};" for one in script.statements)


def format_statement(statement: ast.Statement) -> str:
    """One statement, without the semicolon."""
    if isinstance(statement, ast.Persist):
        return f"PERSIST {statement.name.value} ON {_path(statement.path)}"
    name = f"{statement.name.value} = " if statement.name else ""
    sources = ", ".join(map(format_source, statement.sources))
    if isinstance(statement, ast.Predict):
        return f"{name}PREDICT ON {sources} WITH {_path(statement.model)}"
    clauses = _having(statement.having) + _using(statement.using)
    return f"{name}RUN {format_term(statement.task)} ON {sources}{clauses}"


def format_source(source: ast.Source) -> str:
    """A file with its parser and its columns."""
    path = _path(source.path)
    text = f"{source.parser.value}({path})" if source.parser else path
    columns = source.columns
    if columns is None:
        return text
    last = "" if columns.last == columns.first else f"-{columns.last}"
    return f"{text}:{columns.first}{last}"


def format_term(term: ast.Name | ast.Call | float) -> str:
    """A name, a call, or a number."""
    if isinstance(term, ast.Name):
        return term.value
    if isinstance(term, ast.Call):
        return f"{term.name}()"
    return f"{term:g}" if float(f"{term:g}") == term else repr(term)


def _having(having: ast.Having) -> str:
    items = []
    if having.time is not None:
        items.append(f"TIME {format_duration(having.time)}")
    if having.epsilon is not None:
        items.append(f"EPSILON {format_term(having.epsilon)}")
    if having.max_iter is not None:
        items.append(f"MAX_ITER {having.max_iter}")
    return f" HAVING {', '.join(items)}" if items else ""


def _using(using: ast.Using) -> str:
    given = {
        "ALGORITHM": using.algorithm,
        "CONVERGENCE": using.convergence,
        "STEP": using.step,
        "SAMPLER": using.sampler,
    }
    items = [
        f"{key} {format_term(term)}" for key, term in given.items() if term is not None
    ]
    return f" USING {', '.join(items)}" if items else ""


def _path(path: ast.Path) -> str:
    """As a bare word where it can only be read as this file."""
    value = path.value
    reserved = value.upper() in RESERVED
    if (
        is_word(value)
        and not reserved
        and not value.endswith(".")
        and not looks_like_columns(value)
    ):
        return value
    escaped = value.replace('"', '""')
    return f'"{escaped}"'


def looks_like_columns(word: str) -> bool:
    """Whether a word is a column or a range of columns: ``2`` or ``4-20``."""
    return bool(_COLUMNS.fullmatch(word))
