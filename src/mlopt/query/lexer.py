"""From text to tokens: words, quoted strings and symbols.

A word is whatever stands between blanks and symbols: a keyword, a number, a duration or the
name of a file. The parser knows which of them it expects.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from mlopt.query.text import Span, Text

Kind = Literal["word", "string", "symbol", "end"]

_SKIPPED = re.compile(r"(?:\s+|--[^\n]*)+")
_WORD = re.compile(r"[\w./~+\-]+")
_STRING = re.compile(r"""'(?:[^'\n]|'')*'|"(?:[^"\n]|"")*\"""")
_SYMBOLS = "=;,:()"


@dataclass(frozen=True)
class Token:
    """A piece of the text.

    Parameters
    ----------
    kind : {"word", "string", "symbol", "end"}
    value : str
        The word, the symbol, or the string without its quotes.
    span : Span
    """

    kind: Kind
    value: str
    span: Span

    def is_symbol(self, symbol: str) -> bool:
        """Whether it is this symbol, and not a file of that name in quotes."""
        return self.kind == "symbol" and self.value == symbol

    def __str__(self) -> str:
        """As an error names it."""
        return "the end of the query" if self.kind == "end" else f"`{self.value}`"


def is_word(text: str) -> bool:
    """Whether a text is one word, and not a comment."""
    return bool(_WORD.fullmatch(text)) and not text.startswith("--")


def tokenize(text: Text) -> list[Token]:
    """The tokens of a text; the last one is its end.

    Raises
    ------
    QuerySyntaxError
        A quote that is not closed, or a character that has no meaning.
    """
    content, at, tokens = text.content, 0, []
    while at < len(content):
        if skipped := _SKIPPED.match(content, at):
            at = skipped.end()
            continue
        token = _token(text, at)
        tokens.append(token)
        at = token.span.end
    # What is missing at the end is missing behind the last token, not on an empty line.
    end = tokens[-1].span.end if tokens else len(content.rstrip())
    return [*tokens, Token("end", "", Span(end, end))]


def _token(text: Text, at: int) -> Token:
    content = text.content
    if word := _WORD.match(content, at):
        return Token("word", word.group(), Span(at, word.end()))
    if string := _STRING.match(content, at):
        quote, inside = content[at], string.group()[1:-1]
        return Token("string", inside.replace(quote * 2, quote), Span(at, string.end()))
    char = content[at]
    if char in _SYMBOLS:
        return Token("symbol", char, Span(at, at + 1))
    if char in "'\"":
        raise text.error(Span(at, at + 1), "this quote is not closed on its line.")
    raise text.error(
        Span(at, at + 1),
        f"`{char}` has no meaning here. A file whose name has such characters is written "
        "in quotes.",
    )
