"""Tensor nodes: the arrays of programs written by hand.

A node has a shape, an element type that is settled late, and a memory mode that only gets finer. It holds
no data: which buffer does is a context's affair. Indexing a node gives a cell, an operand or a target:
`x[i, j + 1]`, or `x[...]` for all axes in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from types import EllipsisType
from typing import Any, NoReturn, Union
from weakref import WeakValueDictionary

import numpy as np

from ..errors import DTypeError, IndexOutOfRange, LinkError, ShapeError, UnsupportedError
from ..frozen import frozen, frozen_by_identity
from ..ir.dtype import F64, DType, from_numpy, real_from_numpy
from ..ir.index import Affine, Symbol, SymbolKind, affine
from ..ir.tensor import Tensor
from .here import here
from .modes import Decision, Mode, common
from .values import Value

__all__ = [
    "LOCAL_BYTES",
    "Cell",
    "Concat",
    "MergeBuffer",
    "Node",
    "Position",
    "all_or_nothing",
    "live_nodes",
    "merge",
]

LOCAL_BYTES = 16 * 1024
"""A node that nobody wants in a context is local up to this size."""

_DECIDED = ("_forced", "_inferred", "_tensor", "mode", "provenance")

_ids = count()
_live: WeakValueDictionary[int, Node] = WeakValueDictionary()


@frozen
class Concat:
    """An axis made of several, one after the other: each symbol runs over a part of its own."""

    symbols: tuple[Symbol, ...]


Position = Union[int, Symbol, Affine, Concat]
Key = tuple[Union[Position, EllipsisType], ...]


@frozen_by_identity
class Cell(Value):
    """One cell of a node, or of merge buffer `slot` that holds the node's values."""

    node: Node
    key: Key
    slot: int | None = None

    @property
    def index(self) -> tuple[Affine, ...]:
        """The positions; `...` and concatenations must have been resolved."""
        plain = [position for position in self.key if not isinstance(position, (Concat, EllipsisType))]
        assert len(plain) == len(self.key), f"{self} is not resolved"
        return affine(plain)

    def __repr__(self) -> str:
        inside = ", ".join("..." if position is ... else _spelled(position) for position in self.key)
        return f"{self.node.name}{'' if self.slot is None else '.merge'}[{inside or '()'}]"


def _spelled(position: Position) -> str:
    match position:
        case Concat(symbols=symbols):
            return " ^ ".join(symbol.hint for symbol in symbols)
        case _:
            return str(Affine.of(position))


def _key(name: str, rank: int, key: Any) -> Key:
    """What stands in brackets, checked."""
    parts = key if isinstance(key, tuple) else (key,)
    open_ended = sum(part is ... for part in parts)
    for part in parts:
        if part is not ... and not isinstance(part, (int, np.integer, Symbol, Affine, Concat)):
            raise IndexOutOfRange(
                f"{part!r} is no position in {name}",
                loc=here(),
                fix="index with numbers, symbols, sums of them, concat(i, j) or `...`",
            )
    if open_ended > 1 or len(parts) - open_ended > rank or (not open_ended and len(parts) != rank):
        raise IndexOutOfRange(
            f"{name} has {rank} axes and is indexed with {len(parts) - open_ended}",
            loc=here(),
            fix="give a position for each axis; one `...` stands for those left out",
        )
    return tuple(int(part) if isinstance(part, np.integer) else part for part in parts)


class Node:
    """An array of hand-written programs; compares by identity.

    `mode` is what is decided about its memory and `provenance` how it came about; `wanted` is the part of
    it that the user asked for. `alias` is (parent, static symbol) for a slice, which owns no memory.
    """

    __slots__ = (
        "__weakref__",
        "_forced",
        "_inferred",
        "_specified",
        "_tensor",
        "alias",
        "id",
        "labels",
        "mode",
        "provenance",
        "shape",
        "wanted",
    )

    def __init__(
        self,
        label: str | Sequence[str],
        shape: int | Sequence[int] = (),
        dtype: DType | np.dtype[Any] | type | str | None = None,
        mode: Mode = Mode.UNDECIDED,
    ) -> None:
        self.id = next(_ids)
        self.labels = (label,) if isinstance(label, str) else tuple(label)
        self.shape = (shape,) if isinstance(shape, int) else tuple(int(extent) for extent in shape)
        if any(extent < 0 for extent in self.shape):
            raise ShapeError(f"{self.name} cannot have the shape {self.shape}", loc=here())
        self.alias: tuple[Node, Symbol] | None = None
        self.mode = self.wanted = Mode.UNDECIDED
        self.provenance: tuple[Decision, ...] = ()
        self._specified: DType | None = None
        self._inferred: tuple[DType, ...] = ()
        self._forced: DType | None = None
        self._tensor: Tensor | None = None
        _live[self.id] = self
        if dtype is not None:
            self.set_dtype(dtype)
        if mode is not Mode.UNDECIDED:
            self.refine(mode)

    @property
    def name(self) -> str:
        """The labels joined, a repeated one once; the text of a program tells equal names apart."""
        return "_".join(dict.fromkeys(self.labels)) or f"n{self.id}"

    @property
    def size(self) -> int:
        """Number of cells."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __getitem__(self, key: Any) -> Cell:
        return Cell(self, _key(self.name, len(self.shape), key))

    def __setitem__(self, key: Any, value: object) -> NoReturn:
        raise UnsupportedError(
            f"a cell of {self.name} is no place to write to",
            loc=here(),
            fix="make a statement: assign(cell, value), accumulate('add', cell, value)",
        )

    def __repr__(self) -> str:
        dtype = self._forced or self._specified
        return f"{self.name}: {dtype.short if dtype else '?'}{list(self.shape)}, {self.mode.value}"

    # element type

    @property
    def dtype(self) -> DType:
        """The element type, which is settled by asking: what the user said, else what was inferred, else
        float64."""
        if self.alias is not None:
            return self.alias[0].dtype
        if self._forced is None:
            self._forced = self._specified or self._promoted() or F64
        return self._forced

    @property
    def has_dtype(self) -> bool:
        """Whether the element type is settled, or said by the user."""
        return self.alias is not None or self._forced is not None or self._specified is not None

    def _promoted(self) -> DType | None:
        names = [dtype.numpy for dtype in self._inferred]
        return from_numpy(np.result_type(*names)) if names else None

    def set_dtype(self, dtype: DType | np.dtype[Any] | type | str) -> None:
        """Say the element type, which goes before any inference."""
        row = dtype if isinstance(dtype, DType) else real_from_numpy(dtype)
        self._refuse_change(row)
        self._specified = row

    def infer_dtype(self, dtype: DType) -> None:
        """Note that values of this type are put in; several are promoted as NumPy does."""
        if not self._specified:
            promoted = [known for known in (self._promoted(), dtype) if known is not None]
            self._refuse_change(from_numpy(np.result_type(*(known.numpy for known in promoted))))
            self._inferred = (*self._inferred, dtype)

    def _refuse_change(self, dtype: DType) -> None:
        settled = self.dtype if self.alias is not None else self._forced
        if settled is not None and dtype is not settled:
            raise DTypeError(
                f"{self.name} is {settled.name} already and cannot become {dtype.name}",
                loc=here(),
                fix="say the dtype before the node is used in a program or in a context",
            )

    # memory

    @property
    def tensor(self) -> Tensor:
        """The tensor that contexts and transfers know this node by; always the same. Settles the dtype."""
        self._refuse_slice()
        if self._tensor is None:
            self._tensor = Tensor.of(self.name, self.shape, self.dtype)
        return self._tensor

    def _refuse_slice(self) -> None:
        if self.alias is not None:
            parent, symbol = self.alias
            raise LinkError(
                f"{self.name} is a slice of {parent.name} and has no memory of its own",
                loc=here(),
                fix=f"use {parent.name}, and take the part at {symbol.hint}",
            )

    def refine(self, mode: Mode) -> None:
        """Say more about this node's memory. Raises LinkError when that contradicts what is decided."""
        self.conclude(mode, "asked for")
        self.wanted = common(self.wanted, mode) or mode

    def conclude(self, mode: Mode, why: str) -> None:
        """Decide more about this node's memory, for a reason. Raises LinkError as `refine` does."""
        self._refuse_slice()
        step = Decision(mode, why, here())
        found = common(self.mode, mode)
        if found is None:
            raise LinkError(
                f"{self.name} is {self.mode.value} and cannot be {mode.value}",
                loc=step.loc,
                details=tuple(map(str, (*self.provenance, step))),
                fix="make it materialized before the first program that uses it"
                if Mode.LOCAL in (self.mode, mode)
                else "leave one of the two out, or use two nodes",
            )
        if found is not self.mode:
            self.mode = found
            self.provenance = (*self.provenance, step)

    def settle(self) -> Mode:
        """Decide the rest: what is undecided or constant is virtual, what has to be stored is local if it
        is small and nobody wants it in a context."""
        if self.mode in (Mode.UNDECIDED, Mode.EFFECTIVELY_CONSTANT):
            self.conclude(Mode.VIRTUAL, "nothing says that it has to be stored")
        elif self.mode in (Mode.NEVER_VIRTUAL, Mode.DEVICE_ONLY):
            small = self.size * self.dtype.itemsize <= LOCAL_BYTES
            says = "at most" if small else "more than"
            self.conclude(Mode.LOCAL if small else Mode.ON_DEVICE, f"it has {says} {LOCAL_BYTES} bytes")
        elif self.mode is Mode.MATERIALIZED:
            self.conclude(Mode.ON_DEVICE, "contexts hold what is materialized")
        return self.mode

    def known(self, mode: Mode) -> bool:
        """Whether it is decided that the node is `mode`, or something finer."""
        return self.mode.refines(mode)

    def excludes(self, mode: Mode) -> bool:
        """Whether it is decided that the node can never be `mode`."""
        return common(self.mode, mode) is None

    def at(self, symbol: Symbol) -> Node:
        """The slice at position `symbol` of the first axis: no copy; what is written there reaches this
        node."""
        first = self.shape[0] if self.shape else 0
        ends = (symbol.lower, symbol.upper) if symbol.kind is SymbolKind.STATIC else (None, None)
        if ends[0] is None or ends[1] is None or ends[0] < 0 or ends[1] > first:
            raise IndexOutOfRange(
                f"{symbol.hint} is no static symbol within the {first} slices of {self.name}",
                loc=here(),
                fix=f"use static({symbol.hint!r}, 0, {first})",
            )
        if self.alias is None:
            self.conclude(Mode.MATERIALIZED, "a slice of it is taken")
        part = Node((*self.labels, f"at_{symbol.hint}"), self.shape[1:])
        part.alias = (self, symbol)
        return part


class MergeBuffer:
    """The stream's merge buffer number `slot`, holding values of `node` from elsewhere: an operand only."""

    __slots__ = ("node", "slot")

    def __init__(self, node: Node, slot: int) -> None:
        self.node = node
        self.slot = slot

    def __getitem__(self, key: Any) -> Cell:
        return Cell(self.node, _key(f"{self.node.name}.merge", len(self.node.shape), key), self.slot)


def merge(node: Node, slot: int = 0) -> MergeBuffer:
    """The values of `node` that a transfer brings: `merge(grad)[i, j]`, or `merge(grad, 1)` for a second
    buffer."""
    return MergeBuffer(node, slot)


@contextmanager
def all_or_nothing(nodes: Iterable[Node]) -> Iterator[None]:
    """What is decided about the nodes inside is undone if it ends in an error."""
    before = [(node, name, getattr(node, name)) for node in nodes for name in _DECIDED]
    try:
        yield
    except BaseException:
        for node, name, value in before:
            setattr(node, name, value)
        raise


def live_nodes() -> tuple[Node, ...]:
    """Every node that is still in use, by age."""
    return tuple(sorted(_live.values(), key=lambda node: node.id))
