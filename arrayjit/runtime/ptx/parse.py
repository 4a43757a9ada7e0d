"""PTX text to a Module.

Scopes in braces may declare a name again: names of inner scopes get a suffix, so that a function has one
flat list of registers, variables and labels.
"""

from __future__ import annotations

from itertools import count

from .faults import InvalidPtx
from .module import (
    Address,
    Function,
    Instruction,
    Module,
    Number,
    Operand,
    Pair,
    Parameter,
    Variable,
    Vector,
    Word,
)
from .tokens import Reader, Token
from .types import TYPES, Type

__all__ = ["parse"]

_SPACES = {".global", ".const", ".shared", ".local", ".param"}
_LINKAGE = {".visible", ".extern", ".weak", ".common"}
_BOUNDS = {
    ".maxntid",
    ".reqntid",
    ".minnctapersm",
    ".maxnctapersm",
    ".maxnreg",
    ".explicitcluster",
    ".noreturn",
}


def parse(text: str) -> Module:
    """The module of a text. Raises InvalidPtx, which names the line."""
    reader = Reader(text)
    version = target = ""
    functions: dict[str, Function] = {}
    variables: dict[str, Variable] = {}
    while reader.peek().kind != "end":
        match reader.peek().text:
            case ".version":
                version = "".join(token.text for token in reader.rest_of_line()[1:])
            case ".target":
                target = reader.rest_of_line()[1].text
            case ".address_size" | ".file" | ".loc":
                reader.rest_of_line()
            case ".section":
                reader.skip_braces()
            case ";":
                reader.next()
            case _:
                _declaration(reader, functions, variables)
    return Module(target, version, functions, variables)


def _declaration(reader: Reader, functions: dict[str, Function], variables: dict[str, Variable]) -> None:
    while reader.peek().text in _LINKAGE:
        reader.next()
    kind = reader.peek().text
    if kind in (".entry", ".func"):
        reader.next()
        function = _function(reader, is_entry=kind == ".entry")
        if function.name not in functions or function.body:
            functions[function.name] = function
    elif kind in _SPACES:
        variables.update((each.name, each) for each in _variables(reader))
    else:
        raise reader.wrong("a function or a variable was expected")


def _variables(reader: Reader) -> list[Variable]:
    """`.shared .align 4 .b8 name[16] = {...}, other;` from the space to the semicolon."""
    space = reader.next().text[1:]
    made = []
    align, type, lanes = _layout(reader)
    while True:
        name = reader.next().text
        size, is_dynamic = _dimensions(reader)
        initial = _initial(reader) if reader.accept("=") else ()
        align = max(align, type.nbytes * lanes)
        made.append(Variable(name, space, type, size * lanes, align, initial, is_dynamic))
        if not reader.accept(","):
            break
    reader.expect(";")
    return made


def _layout(reader: Reader) -> tuple[int, Type, int]:
    """Alignment, type and number of elements of a vector type."""
    align, lanes = 1, 1
    while True:
        word = reader.next().text
        if word == ".align":
            align = reader.integer()
        elif word in (".v2", ".v4"):
            lanes = int(word[2:])
        elif word[1:] in TYPES:
            break
        elif word != ".managed":
            raise reader.wrong(f"a type was expected after {word!r}")
    kind = TYPES[word[1:]]
    if reader.accept(".ptr"):
        while reader.peek().text in _SPACES or reader.peek().text == ".align":
            if reader.next().text == ".align":
                reader.integer()
    return align, kind, lanes


def _dimensions(reader: Reader) -> tuple[int, bool]:
    """Elements of `[4][8]`; of `[]` none yet."""
    size, is_dynamic = 1, False
    while reader.accept("["):
        if reader.peek().text == "]":
            size, is_dynamic = 0, True
        else:
            size *= reader.integer()
        reader.expect("]")
    return size, is_dynamic


def _initial(reader: Reader) -> tuple[Number | str, ...]:
    """The values of an initialiser, braces flattened; names stand for addresses."""
    values: list[Number | str] = []
    depth = 0
    while True:
        token = reader.peek()
        if reader.accept("{"):
            depth += 1
        elif reader.accept("}"):
            depth -= 1
        elif reader.accept("generic"):
            reader.expect("(")
            values.append(reader.next().text)
            reader.expect(")")
        elif token.kind == "number" or token.text == "-":
            values.append(reader.number())
        elif not (depth and reader.accept(",")):
            values.append(reader.next().text)
        if not depth:
            return tuple(values)


def _parameters(reader: Reader) -> tuple[Parameter, ...]:
    """`(.param .u64 a, .param .align 8 .b8 b[16])`."""
    made: list[Parameter] = []
    offset = 0
    reader.expect("(")
    while not reader.accept(")"):
        reader.expect(".param")
        align, kind, lanes = _layout(reader)
        align = max(align, kind.nbytes * lanes)
        name = reader.next().text
        nbytes = _dimensions(reader)[0] * kind.nbytes * lanes
        offset = -(-offset // align) * align
        made.append(Parameter(name, kind, offset, nbytes, align))
        offset += nbytes
        reader.accept(",")
    return tuple(made)


def _function(reader: Reader, is_entry: bool) -> Function:
    results = _parameters(reader) if reader.peek().text == "(" else ()
    name = reader.next().text
    parameters = _parameters(reader) if reader.peek().text == "(" else ()
    bounds: dict[str, tuple[int, ...]] = {}
    while reader.peek().text not in ("{", ";"):
        directive = reader.next().text
        if directive not in _BOUNDS:
            raise reader.wrong(f"function {name} has a directive {directive!r} that is not known")
        numbers = []
        while reader.peek().kind == "number":
            numbers.append(reader.integer())
            reader.accept(",")
        bounds[directive] = tuple(numbers)
    body = _Body(reader)
    if not reader.accept(";"):
        body.read()
    return Function(
        name,
        is_entry,
        parameters,
        results,
        body.registers,
        tuple(body.variables),
        body.labels,
        body.tables,
        tuple(body.instructions),
        _three(bounds.get(".maxntid")),
        _three(bounds.get(".reqntid")),
    )


def _three(numbers: tuple[int, ...] | None) -> tuple[int, int, int] | None:
    return None if numbers is None else (*numbers, 1, 1)[:3]  # type: ignore[return-value]


class _Body:
    """What stands between the braces of a function."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.registers: dict[str, Type] = {}
        self.variables: list[Variable] = []
        self.labels: dict[str, int] = {}
        self.tables: dict[str, tuple[str, ...]] = {}
        self.instructions: list[Instruction] = []
        self.scopes: list[dict[str, str]] = []
        self.numbers = count(1)
        self.loc = 0

    def read(self) -> None:
        """From the opening brace to the closing one."""
        while True:
            token = self.reader.peek()
            if token.text == "{":
                self.open()
            elif self.reader.accept("}"):
                self.scopes.pop()
                if not self.scopes:
                    return
            elif token.text.startswith("."):
                self.directive()
            elif self.reader.peek(1).text == ":":
                self.label()
            elif not self.reader.accept(";"):
                self.instructions.append(self.instruction())

    def directive(self) -> None:
        match self.reader.peek().text:
            case ".reg":
                self.declare_registers()
            case ".loc":
                self.loc = int(self.reader.rest_of_line()[2].text)
            case ".pragma":
                while not self.reader.accept(";"):
                    self.reader.next()
            case space if space in _SPACES:
                for each in _variables(self.reader):
                    name = self.declared(each.name)
                    self.variables.append(
                        Variable(
                            name, each.space, each.type, each.count, each.align, each.initial, each.is_dynamic
                        )
                    )
            case _:
                raise self.reader.wrong("a directive that is known was expected")

    def open(self) -> None:
        """A scope. Its labels are known from its beginning."""
        self.reader.next()
        self.scopes.append({})
        depth, ahead = 1, 0
        while depth:
            token = self.reader.peek(ahead)
            if token.kind == "end":
                raise self.reader.wrong("a function does not end")
            depth += {"{": 1, "}": -1}.get(token.text, 0)
            if depth == 1 and token.kind == "word" and self.reader.peek(ahead + 1).text == ":":
                self.declared(token.text)
            ahead += 1

    def declared(self, name: str) -> str:
        """The name by which a declaration of this scope is known in the whole function."""
        known = name if len(self.scopes) == 1 else f"{name}'{next(self.numbers)}"
        self.scopes[-1][name] = known
        return known

    def resolved(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return name

    def declare_registers(self) -> None:
        self.reader.next()
        kind = TYPES.get(self.reader.next().text[1:])
        if kind is None:
            raise self.reader.wrong("registers have a type that is not simulated")
        while True:
            name = self.reader.next().text
            names = [name]
            if self.reader.accept("<"):
                names = [f"{name}{number}" for number in range(self.reader.integer())]
                self.reader.expect(">")
            self.registers.update((self.declared(each), kind) for each in names)
            if not self.reader.accept(","):
                break
        self.reader.expect(";")

    def label(self) -> None:
        name = self.resolved(self.reader.next().text)
        self.reader.expect(":")
        if self.reader.accept(".branchtargets"):
            targets = []
            while not self.reader.accept(";"):
                targets.append(self.resolved(self.reader.next().text))
                self.reader.accept(",")
            self.tables[name] = tuple(targets)
        elif self.reader.peek().text in (".callprototype", ".calltargets"):
            while not self.reader.accept(";"):
                self.reader.next()
        else:
            self.labels[name] = len(self.instructions)

    def instruction(self) -> Instruction:
        first = self.reader.peek()
        guard = self.word() if self.reader.accept("@") else None
        opcode, *modifiers = self.reader.next().text.split(".")
        operands: list[Operand] = []
        while not self.reader.accept(";"):
            operands.append(self.operand())
            if self.reader.peek().text not in (";", ","):
                raise self.reader.wrong(f"{opcode!r} is not followed by operands")
            self.reader.accept(",")
        text = self.source(first)
        return Instruction(opcode, tuple(modifiers), tuple(operands), guard, first.line, text, self.loc)

    def source(self, first: Token) -> str:
        """The text of the instruction that begins with a token and has just been read."""
        return " ".join(self.reader.text[first.start : self.reader.peek(-1).start].split())

    def operand(self) -> Operand:
        token = self.reader.peek()
        if token.text in ("{", "("):
            return self.vector({"{": "}", "(": ")"}[self.reader.next().text])
        if self.reader.accept("["):
            return self.address()
        if token.kind == "number" or token.text == "-":
            return self.reader.number()
        first = self.word()
        if self.reader.accept("|"):
            return Pair(first, self.word())
        if self.reader.accept("+"):
            return Address(first, self.reader.integer())
        return first

    def vector(self, end: str) -> Vector:
        parts: list[Operand] = []
        while not self.reader.accept(end):
            parts.append(self.operand())
            self.reader.accept(",")
        return Vector(tuple(parts))

    def address(self) -> Address:
        start = self.reader.number() if self.reader.peek().kind == "number" else self.word()
        offset = 0
        if self.reader.accept("+") or self.reader.peek().text == "-":
            offset = self.reader.integer()
        self.reader.expect("]")
        return Address(start, offset)

    def word(self) -> Word:
        negated = self.reader.accept("!") or self.reader.accept("-")
        token = self.reader.next()
        if token.kind != "word":
            raise InvalidPtx(f"line {token.line}: a name was expected, and {token.text!r} stands there")
        return Word(self.resolved(token.text), negated)
