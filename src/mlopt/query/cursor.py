"""A place in the tokens of a query: looks at the next one, takes it, or complains."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mlopt.errors import QuerySyntaxError, did_you_mean
from mlopt.query import ast
from mlopt.query.lexer import Token, tokenize
from mlopt.query.text import Span, Text
from mlopt.query.words import RESERVED

_NAME = re.compile(r"[^\W\d]\w*")


class Cursor:
    """Moves through the tokens of a text.

    Parameters
    ----------
    text : Text
    """

    def __init__(self, text: Text) -> None:
        self.text = text
        self._tokens = tokenize(text)
        self._at = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self._tokens[self._at]

    @property
    def following(self) -> Token:
        """The one after it."""
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)]

    @property
    def last(self) -> Span:
        """Where the token stands that was taken last."""
        return self._tokens[max(self._at - 1, 0)].span

    @property
    def keyword(self) -> str:
        """The next token in capitals if it is a word, else nothing."""
        return self.token.value.upper() if self.token.kind == "word" else ""

    @property
    def at_end(self) -> bool:
        """Whether the statement ends here."""
        token = self.token
        return token.kind == "end" or token.is_symbol(";")

    def advance(self) -> Token:
        """Take the next token."""
        token = self.token
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def accept(self, wanted: str) -> bool:
        """Take the next token if it is this keyword or symbol."""
        if self.token.is_symbol(wanted) or self.keyword == wanted:
            self.advance()
            return True
        return False

    def expect(self, wanted: str, described: str) -> None:
        """Take this keyword or symbol.

        Raises
        ------
        QuerySyntaxError
            The next token is another one.
        """
        if not self.accept(wanted):
            raise self.unexpected(described)

    def name(self, described: str) -> ast.Name:
        """Take a name: letters, digits and ``_``, and no keyword.

        Raises
        ------
        QuerySyntaxError
            The next token is none.
        """
        token = self.token
        if self.keyword in RESERVED:
            raise self.unexpected(described)
        if token.kind != "word" or not _NAME.fullmatch(token.value):
            rule = (
                " A name has letters, digits and `_` only." if token.kind == "word" else ""
            )
            raise self.error(f"expected {described}, found {token}.{rule}")
        self.advance()
        return ast.Name(token.value, span=token.span)

    def error(self, message: str, span: Span | None = None) -> QuerySyntaxError:
        """An error at ``span``, or at the next token."""
        return self.text.error(self.token.span if span is None else span, message)

    def unexpected(self, wanted: str, near: Iterable[str] = ()) -> QuerySyntaxError:
        """An error that says what was expected; ``near`` are spellings to propose."""
        hint = did_you_mean(self.token.value, near) if self.token.kind == "word" else ""
        return self.error(f"expected {wanted}, found {self.token}.{hint}")
