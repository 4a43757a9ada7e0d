"""PTX text as words, numbers and signs, and a reader that goes over them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...frozen import frozen
from .faults import InvalidPtx
from .module import Number

__all__ = ["Reader", "Token"]

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<number>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]+U?
                  |\d+\.\d*(?:[eE][+-]?\d+)?|\d+U?)
      | (?P<word>[.%$_A-Za-z](?:[\w$.%]|::)*)
      | (?P<string>"[^"]*")
      | (?P<sign>[@!{}()\[\],;:|=<>+*-])""",
    re.VERBOSE | re.DOTALL,
)


@frozen
class Token:
    """A piece of the text; `kind` is number, word, string, sign or end."""

    kind: str
    text: str
    line: int
    start: int


class Reader:
    """Tokens from left to right. What does not fit raises InvalidPtx with its line."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(_tokens(text))
        self.at = 0

    def peek(self, ahead: int = 0) -> Token:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def next(self) -> Token:
        token = self.peek()
        if token.kind == "end":
            raise self.wrong("the text ends too early")
        self.at += 1
        return token

    def accept(self, text: str) -> bool:
        """Is this the next token? Then go over it."""
        if self.peek().text != text:
            return False
        self.at += 1
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.wrong(f"{text!r} was expected")

    def wrong(self, what: str) -> InvalidPtx:
        token = self.peek()
        return InvalidPtx(f"line {token.line}: {what}, and {token.text or 'the end'!r} stands there")

    def rest_of_line(self) -> list[Token]:
        """What a directive without a semicolon says."""
        line = self.peek().line
        taken = []
        while self.peek().line == line and self.peek().kind != "end":
            taken.append(self.next())
        return taken

    def skip_braces(self) -> None:
        """Go over `{...}` and what precedes it."""
        while not self.accept("{"):
            self.next()
        while not self.accept("}"):
            self.next()

    def integer(self) -> int:
        value = self.number().value
        if not isinstance(value, int):
            raise self.wrong("an integer was expected")
        return value

    def number(self) -> Number:
        """A literal with its sign."""
        sign = -1 if self.accept("-") else 1
        if self.peek().kind != "number":
            raise self.wrong("a number was expected")
        text = self.next().text
        if text[:2].lower() in ("0f", "0d"):
            return Number(int(text[2:], 16), 4 * len(text[2:]))
        if "." in text:
            return Number(sign * float(text))
        digits = text.rstrip("U")
        is_octal = digits.isdigit() and digits.startswith("0")
        return Number(sign * int(digits, 8 if is_octal else 0))


def _tokens(text: str) -> Iterator[Token]:
    position, line = 0, 1
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise InvalidPtx(f"line {line}: {text[position]!r} begins nothing in PTX")
        kind, piece = found.lastgroup or "", found.group()
        if kind != "space":
            yield Token(kind, piece, line, position)
        line += piece.count("\n")
        position = found.end()
    yield Token("end", "", line, position)
