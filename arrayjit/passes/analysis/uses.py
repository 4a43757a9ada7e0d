"""Every use of the temporaries of a kernel, with the loops and branches around it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import field

from ...frozen import frozen_by_identity, slotted, slotted_by_identity
from ...ir.index import Affine
from ...ir.loops import (
    Copy,
    Fill,
    For,
    If,
    Kernel,
    Multiply,
    Stmt,
    Store,
    Used,
    While,
    touched,
    walk_statements,
)
from ...ir.tensor import Tensor
from .access import given, reads

__all__ = ["Frame", "Path", "Use", "common_path", "counts", "makes_anew", "uses_of", "uses_of_temporaries"]


@slotted_by_identity
class Frame:
    """A loop; one side of an If or a While when `loop` is None; statements `first` to `last` stand in it."""

    loop: For | None
    first: int
    last: int = 0


Path = tuple[Frame, ...]


@frozen_by_identity
class Use:
    """One access by statement number `at`; `index` is None when it is computed at run time, or for a
    Fill."""

    tensor: Tensor
    index: tuple[Affine, ...] | None
    path: Path
    stmt: Stmt
    at: int
    writes: bool


@slotted
class _Collection:
    """The uses found so far; `count` numbers the statements in program order."""

    given: frozenset[Tensor]
    found: dict[Tensor, list[Use]] = field(default_factory=dict)
    count: int = 0

    def body(self, body: tuple[Stmt, ...], path: Path) -> None:
        for stmt in body:
            at = self.count
            self.count += 1
            if not isinstance(stmt, While):
                self.reads(stmt, path, at)
            match stmt:
                case Store(tensor=tensor, index=index):
                    self.add(Use(tensor, index, path, stmt, at, True))
                case Fill() | Copy() | Multiply():
                    into, *sources = touched(stmt)
                    for source in sources:
                        self.add(Use(source, None, path, stmt, at, False))
                    self.add(Use(into, None, path, stmt, at, True))
                case For(body=inner):
                    self.inside(Frame(stmt, at), inner, path)
                case If(body=inner, orelse=other):
                    self.inside(Frame(None, at), inner, path)
                    self.inside(Frame(None, at), other, path)
                case While(test=test, body=inner):
                    frame = Frame(None, at)
                    self.inside(frame, test, path)
                    self.reads(stmt, (*path, frame), self.count)
                    self.count += 1
                    self.inside(frame, inner, path)
                case _:
                    pass

    def reads(self, stmt: Stmt, path: Path, at: int) -> None:
        for tensor, index in reads(stmt):
            self.add(Use(tensor, index, path, stmt, at, False))

    def inside(self, frame: Frame, body: tuple[Stmt, ...], path: Path) -> None:
        self.body(body, (*path, frame))
        frame.last = self.count - 1

    def add(self, use: Use) -> None:
        if use.tensor.storage not in self.given:
            self.found.setdefault(use.tensor.storage, []).append(use)


def uses_of_temporaries(kernel: Kernel) -> dict[Tensor, list[Use]]:
    """The uses of each temporary's storage in program order; a statement reads before it writes."""
    try:
        found: dict[Tensor, list[Use]] = kernel.uses
    except AttributeError:
        found = uses_of(kernel.body, given(kernel.params))
        _keep_uses(kernel, found)
    return found


_keep_uses = vars(Used)["uses"].__set__


def uses_of(body: tuple[Stmt, ...], but: frozenset[Tensor] = frozenset()) -> dict[Tensor, list[Use]]:
    """The same of each storage but those."""
    collection = _Collection(but)
    collection.body(body, ())
    return collection.found


def common_path(paths: Iterable[Path]) -> Path:
    """The loops and branches around all uses."""
    remaining = iter(paths)
    common = next(remaining)
    for path in remaining:
        length = 0
        for mine, theirs in zip(common, path, strict=False):
            if mine is not theirs:
                break
            length += 1
        common = common[:length]
    return common


def makes_anew(uses: Sequence[Use], common: Path, axes: Sequence[int]) -> bool:
    """Whether each iteration of the common loops first writes all cells along `axes` of the tensor, so
    that no value passes from one iteration to another."""
    first = uses[0]
    inner = {frame.loop.symbol: frame.loop for frame in first.path[len(common) :] if frame.loop}
    if not first.writes or first.index is None or len(inner) < len(first.path) - len(common):
        return False
    for axis in axes:
        symbol = first.index[axis].symbol
        loop = inner.pop(symbol, None) if symbol is not None else None
        if loop is None or loop.bounds != (Affine.of(0), first.tensor.shape[axis], 1):
            return False
    return all(loop.trips for loop in inner.values())


def counts(body: Iterable[Stmt]) -> Counter[Tensor]:
    """How often each storage is used."""
    used: list[Tensor] = []
    for stmt in walk_statements(body):
        used += [tensor.storage for tensor in touched(stmt)]
        used += [tensor.storage for tensor, _ in reads(stmt)]
    return Counter(used)
