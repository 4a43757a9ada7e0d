"""The user's lines, for debuggers: metadata of which LLVM makes DWARF.

    store double %t3, ptr %t4, !dbg !7              ; an instruction of a statement of model.py, line 12

    !3 = !DIFile(filename: "model.py", directory: "")
    !6 = distinct !DISubprogram(name: "blur_kernel", file: !3, line: 12, ...)
    !7 = !DILocation(line: 12, scope: !6)

An instruction is of the line of the statement that it is printed for. Functions that only hand over what they
are called with are of none. The format is LLVM's: https://llvm.org/docs/SourceLevelDebugging.html.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import count

from ..errors import Location
from ..ir.loops import For, If, Kernel, Stmt, While, walk_statements
from .bodies import place

__all__ = ["Lines", "lines_of"]

_LANGUAGE = "DW_LANG_C99"
"""gdb knows no Python; in C it computes with addresses and registers."""

_FIRST = 3
"""The number of the first node; those before have another meaning."""

_FLAGS = ('i32 2, !"Debug Info Version", i32 3', 'i32 7, !"Dwarf Version", i32 4')


def lines_of(kernel: Kernel, declarations: dict[str, None]) -> Lines:
    """Of the first function of a kernel's module, which has these declarations."""
    first = _first(kernel.body)
    if first is None:
        return Lines()
    places: dict[int, Location] = {}
    _locate(kernel.body, first, places)
    return _Known(_Nodes(declarations, first.file), places, first)


class Lines:
    """The lines that the instructions of one function are of, where nobody asks for them."""

    @property
    def suffix(self) -> str:
        """What instructions end with that stand for the statement which is being printed."""
        return ""

    def at(self, stmt: Stmt) -> AbstractContextManager[None]:
        """What is printed within the block is for the statement."""
        return nullcontext()

    def part(self) -> Lines:
        """For a function that stands for a part of this one."""
        return self

    def declared(self, name: str) -> str:
        """What ends the head of the function, which is called so."""
        return ""


class _Known(Lines):
    """Where a debugger is to know."""

    def __init__(self, nodes: _Nodes, places: dict[int, Location], first: Location) -> None:
        self._nodes = nodes
        self._places = places
        self._place = self._first = first
        self._number = nodes.reserve()

    @property
    def suffix(self) -> str:
        here, scope = self._place, self._number
        if here.file != self._first.file:
            file = self._nodes.file(here.file)
            scope = self._nodes.node(f"!DILexicalBlockFile(scope: {scope}, file: {file}, discriminator: 0)")
        return f", !dbg {self._nodes.node(f'!DILocation(line: {here.line}, scope: {scope})')}"

    @contextmanager
    def at(self, stmt: Stmt) -> Iterator[None]:
        around = self._place
        self._place = self._places.get(id(stmt), around)
        yield
        self._place = around

    def part(self) -> Lines:
        return _Known(self._nodes, self._places, self._place)

    def declared(self, name: str) -> str:
        self._nodes.function(self._number, name.removesuffix(".body"), self._first)
        return f" !dbg {self._number}"


class _Nodes:
    """The numbered nodes of a module, each printed once."""

    def __init__(self, declarations: dict[str, None], file: str) -> None:
        self._declarations = declarations
        self._numbers = count(_FIRST)
        self._known: dict[str, str] = {}
        self._unit = self.node(
            f"distinct !DICompileUnit(language: {_LANGUAGE}, file: {self.file(file)}, "
            'producer: "arrayjit", isOptimized: true, runtimeVersion: 0, emissionKind: FullDebug)'
        )
        self._type = self.node("!DISubroutineType(types: !{})")
        flags = ", ".join(self.node(f"!{{{flag}}}") for flag in _FLAGS)
        declarations |= {
            f"!llvm.dbg.cu = !{{{self._unit}}}": None,
            f"!llvm.module.flags = !{{{flags}}}": None,
        }

    def reserve(self) -> str:
        return f"!{next(self._numbers)}"

    def node(self, content: str) -> str:
        """The number of a node."""
        if content not in self._known:
            self._known[content] = self.reserve()
            self._declarations[f"{self._known[content]} = {content}"] = None
        return self._known[content]

    def file(self, name: str) -> str:
        return self.node(f'!DIFile(filename: "{_quoted(name)}", directory: "")')

    def function(self, number: str, name: str, first: Location) -> None:
        """The function of a reserved number, and where its text begins."""
        file = self.file(first.file)
        self._declarations[
            f'{number} = distinct !DISubprogram(name: "{_quoted(name)}", scope: {file}, file: {file}, '
            f"line: {first.line}, type: {self._type}, unit: {self._unit}, "
            "spFlags: DISPFlagDefinition | DISPFlagOptimized)"
        ] = None


def _locate(body: tuple[Stmt, ...], around: Location, places: dict[int, Location]) -> None:
    """Find a place for each statement of a body: that of the first line in it, after it, or before it, else
    what is `around` the body."""
    own = [_first((stmt,)) for stmt in body]
    here = next((found for found in reversed(own) if found is not None), around)
    for stmt, found in zip(reversed(body), reversed(own), strict=True):
        here = found or here
        places[id(stmt)] = here
        match stmt:
            case For(body=inner):
                _locate(inner, here, places)
            case If(body=inner, orelse=other) | While(test=other, body=inner):
                _locate(inner, here, places)
                _locate(other, here, places)
            case _:
                pass


def _first(body: tuple[Stmt, ...]) -> Location | None:
    return next((found for stmt in walk_statements(body) if (found := place(stmt)) is not None), None)


def _quoted(text: str) -> str:
    """Within the quotes of a string of LLVM's."""
    return "".join(
        chr(code) if 32 <= code < 127 and code not in b'"\\' else f"\\{code:02X}" for code in text.encode()
    )
