"""share: what was computed or loaded once is not computed or loaded again.

    y[i] = multiply(subtract(x[i], m), subtract(x[i], m))
    z[i] = y[i]
->
    t0 = subtract(x[i], m)
    t1 = multiply(t0, t0)
    y[i] = t1
    z[i] = t1

Values are numbered: a node's number follows from its op and its operands' numbers, a load's from its
cell and from how often its storage may have been written, a local's from its definition. Equal numbers
are equal values. A first walk numbers and counts, a second one writes; what is used once stays where it
stood. A store names the value that later loads of its cell give, a copy of a local that changes what that is
until it does. A condition that raised would have raised before: whatever else raises on it is left out.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from itertools import count
from typing import Union

from ...frozen import slotted
from ...ir.code import Caps
from ...ir.expr import Apply, Cast, Const, Expr, Gather, Index, Load, Local, Variable, dtype_of
from ...ir.loops import Copy, Define, Fill, For, If, Kernel, Multiply, Raise, Stmt, Store, Update, While
from ...ir.tensor import Tensor
from ...ir.walk import children, expressions, rebuild, rewrite_bodies, rewrite_expressions

__all__ = ["share"]


def share(kernel: Kernel, caps: Caps) -> Kernel:
    """Equal values computed once."""
    numbering = _Numbering()
    numbering.body(kernel.body)
    if not numbering.repeats:
        return kernel
    return replace(kernel, body=_Writer(numbering).body(kernel.body))


Mutable = Union[Tensor, Variable]
"""What a statement may change: a storage or a local."""

NEVER = -1
"""The root of a statement that never raises."""


@slotted
class _Value:
    """One distinct value: a node over numbered operands; `uses` counts the places that need it, and
    `variable` is the local that holds it, once there is one. A `Local` here is one that changes, so its
    value is this one for a while only."""

    expr: Expr
    operands: tuple[int, ...]
    uses: int = 0
    variable: Variable | None = None


class _Numbering:
    """The first walk. `roots` are the numbers of the statements' expressions in program order."""

    def __init__(self) -> None:
        self.values: list[_Value] = []
        self.roots: list[int] = []
        self.repeats = False
        self.changing: set[Variable] = set()
        self._known: dict[Hashable, int] = {}
        self._trail: list[Hashable] = []
        self._definitions: dict[Variable, int] = {}
        self._versions: dict[Mutable, int] = {}
        self._fresh = count(1)
        self._changed: dict[int, set[Mutable]] = {}

    def body(self, body: tuple[Stmt, ...]) -> None:
        """Number a whole kernel."""
        changed = self._changes(body)
        self.changing = {item for item in changed if isinstance(item, Variable)}
        self._body(body)

    def _changes(self, body: tuple[Stmt, ...]) -> set[Mutable]:
        """What a body changes; remembered for each statement that holds bodies."""
        found: set[Mutable] = set()
        for stmt in body:
            match stmt:
                case Store(tensor=tensor) | Fill(tensor=tensor) | Copy(into=tensor) | Multiply(total=tensor):
                    found.add(tensor.storage)
                case Update(variable=variable):
                    found.add(variable)
                case For(body=inner):
                    self._changed[id(stmt)] = self._changes(inner)
                    found |= self._changed[id(stmt)]
                case If(body=inner, orelse=orelse):
                    self._changed[id(stmt)] = self._changes(inner) | self._changes(orelse)
                    found |= self._changed[id(stmt)]
                case While(test=test, body=inner):
                    self._changed[id(stmt)] = self._changes(test) | self._changes(inner)
                    found |= self._changed[id(stmt)]
                case _:
                    pass
        return found

    def _body(self, body: tuple[Stmt, ...]) -> None:
        mark = len(self._trail)
        self._statements(body)
        self._forget(mark)

    def _statements(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            if isinstance(stmt, While):
                self._while(stmt)
            elif isinstance(stmt, Raise):
                self._raise(stmt)
            else:
                self._effect(stmt, self._rooted(_parts(stmt)))

    def _while(self, loop: While) -> None:
        """Test, condition and body in the order in which an iteration meets them."""
        mark = len(self._trail)
        self._touch(self._changed[id(loop)])
        self._statements(loop.test)
        self._rooted((loop.condition,))
        self._statements(loop.body)
        self._touch(self._changed[id(loop)])
        self._forget(mark)

    def _raise(self, stmt: Raise) -> None:
        number = self._number(stmt.condition)
        raised = "raised", number
        if raised in self._known:
            self.roots.append(NEVER)
            self.repeats = True
        else:
            self.values[number].uses += 1
            self.roots.append(number)
            self._learn(raised, number)

    def _rooted(self, exprs: tuple[Expr, ...]) -> list[int]:
        roots = [self._number(expr) for expr in exprs]
        for root in roots:
            self.values[root].uses += 1
        self.roots.extend(roots)
        return roots

    def _forget(self, mark: int) -> None:
        """Leave the body in which all values from `mark` on became known, some of them anew."""
        for key in self._trail[mark:]:
            self._known.pop(key, None)
        del self._trail[mark:]

    def _effect(self, stmt: Stmt, roots: list[int]) -> None:
        match stmt:
            case Define(variable=variable) if variable not in self.changing:
                self._define(variable, roots[0])
            case Define(variable=variable) | Update(variable=variable):
                self._touch({variable})
            case Store(tensor=tensor, index=index, accum=None):
                self._touch({tensor.storage})
                if not isinstance(self.values[roots[0]].expr, Local):
                    self._learn(("load", tensor, index, self._versions[tensor.storage]), roots[0])
            case Store(tensor=tensor) | Fill(tensor=tensor) | Copy(into=tensor) | Multiply(total=tensor):
                self._touch({tensor.storage})
            case For(body=body):
                self._touch(self._changed[id(stmt)])
                self._body(body)
                self._touch(self._changed[id(stmt)])
            case If(body=body, orelse=orelse):
                self._body(body)
                self._touch(self._changed[id(stmt)])
                self._body(orelse)
                self._touch(self._changed[id(stmt)])
            case _:
                pass

    def _define(self, variable: Variable, number: int) -> None:
        """What a local is from then on. A copy of one that changes stands for it until it does."""
        match self.values[number].expr:
            case Local(variable=copied) if copied in self.changing:
                here = "local", copied, self._versions.get(copied, 0)
                self._learn(here, self._number(Local(variable)))
            case _:
                self._definitions[variable] = number

    def _touch(self, changed: set[Mutable]) -> None:
        for item in changed:
            self._versions[item] = next(self._fresh)

    def _learn(self, key: Hashable, number: int) -> None:
        self._known[key] = number
        self._trail.append(key)

    def _number(self, expr: Expr) -> int:
        if isinstance(expr, Local) and expr.variable in self._definitions:
            return self._definitions[expr.variable]
        operands = tuple(self._number(child) for child in children(expr))
        key = self._key(expr, operands)
        number = self._known.get(key)
        if number is not None:
            self.repeats = self.repeats or not isinstance(expr, (Const, Index, Local))
            return number
        for operand in operands:
            self.values[operand].uses += 1
        self.values.append(_Value(expr, operands))
        self._learn(key, len(self.values) - 1)
        return len(self.values) - 1

    def _key(self, expr: Expr, operands: tuple[int, ...]) -> Hashable:
        match expr:
            case Const(value=value, dtype=dtype):
                return "const", repr(value), dtype
            case Index(value=affine):
                return "index", affine
            case Local(variable=variable):
                return "local", variable, self._versions.get(variable, 0)
            case Load(tensor=tensor, index=index):
                return "load", tensor, index, self._versions.get(tensor.storage, 0)
            case Gather(tensor=tensor):
                return "gather", tensor, operands, self._versions.get(tensor.storage, 0)
            case Cast(dtype=dtype):
                return "cast", operands, dtype
            case Apply(op=op, dtype=dtype):
                return op, tuple(sorted(operands)) if op.commutative else operands, dtype


def _parts(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions of a statement that may be replaced one by one."""
    if isinstance(stmt, Update) and stmt.contract:
        return children(stmt.value)
    return expressions(stmt)


class _Writer:
    """The second walk, which meets the roots in the order of the first."""

    def __init__(self, numbering: _Numbering) -> None:
        self._values = numbering.values
        self._roots = iter(numbering.roots)
        self._changing = numbering.changing

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Define) and stmt.variable not in self._changing:
                self._define(stmt, self._values[next(self._roots)], out)
                continue
            if isinstance(stmt, While):
                test = list(self.body(stmt.test))
                condition = self._expression(next(self._roots), test)
                out.append(While(tuple(test), condition, self.body(stmt.body)))
                continue
            if isinstance(stmt, Raise):
                self._raise(stmt, next(self._roots), out)
                continue
            new = rewrite_expressions(stmt, lambda _: self._expression(next(self._roots), out))
            new = rewrite_bodies(new, self.body)
            match new:
                case For(body=()) | If(body=(), orelse=()):
                    pass  # It held nothing but exceptions that were raised before.
                case _:
                    out.append(new)
        return tuple(out)

    def _define(self, stmt: Define, value: _Value, lines: list[Stmt]) -> None:
        """A definition stays unless another local holds its value already."""
        is_copy = isinstance(value.expr, Local) and value.expr.variable not in self._changing
        if value.variable is not None or is_copy:
            return
        lines.append(Define(stmt.variable, self._over_operands(value, lines)))
        if not isinstance(value.expr, (Const, Index, Local)):
            value.variable = stmt.variable

    def _raise(self, stmt: Raise, root: int, lines: list[Stmt]) -> None:
        if root != NEVER:
            lines.append(replace(stmt, condition=self._expression(root, lines)))

    def _over_operands(self, value: _Value, lines: list[Stmt]) -> Expr:
        return rebuild(value.expr, tuple(self._expression(number, lines) for number in value.operands))

    def _expression(self, number: int, lines: list[Stmt]) -> Expr:
        """The expression for a value; definitions that it needs are appended to `lines`."""
        value = self._values[number]
        if value.variable is not None:
            return Local(value.variable)
        expr = self._over_operands(value, lines)
        if value.uses == 1 or isinstance(expr, (Const, Index, Local)):
            return expr
        value.variable = Variable("t", dtype_of(expr))
        lines.append(Define(value.variable, expr))
        return Local(value.variable)
