"""Random programs of loops: carried names, views that move, slices that follow an index, writes in place.

A program is written statement by statement and run plainly after each one, so that what NumPy refuses is
left out, most of the time. Names tell what they hold: `s` a number, `c` a counter, `b` a bool, `o` None at
first, `u` a vector of length n, `M` a matrix of n by n, `w` a list, `p` a
number and a vector, `d` a dict of them, `i` an index below n, `e` an element,
`r` a row. Numbers stay small and dyadic, so that every sum is exact in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from hypothesis import strategies as st
from operands import NUMBERS, Operands
from written import INDENT, LoopProgram

__all__ = ["loop_programs", "written_from"]

ENTROPY = 1500
MOST = 3
DEPTH = 3
LARGEST = 2.0**19
FINEST = 16  # values are multiples of its inverse
SIZES = (6, 5, 7, 6, 5, 1, 2, 4, 0, 11, 19)
LAYOUTS = ("{0}", "{0}", "{0}", "np.asfortranarray({0})", "{0}.T", "{0}[::-1]", "{0}[:, ::-1]")
ALIASES = ("{0}[::-1]", "{0}", "{0}[:]", "np.concatenate([{0}, {0}])[: len({0})]")
STARTS = {
    "s": ("0.0", "1.0", "x.sum()", "x[:1].sum()", "2.5", "0", "True"),
    "u": ("x.copy()", "np.zeros(n)", "np.zeros_like(x)", "x + 1", "x", "np.arange(n)", "x[::-1]"),
    "c": ("0", "1", "n"),
    "M": ("A.copy()", "np.zeros((n, n))", "A.T", "A * 2", "np.outer(x, x)"),
    "b": ("False", "True"),
    "o": ("None",),
    "w": ("[]",),
    "p": ("(0.0, x)", "(x.sum(), np.zeros(n))", "(1.0, x[::-1])"),
    "d": ('{"a": x.sum(), "b": y}', '{"a": 0.0, "b": x + 1}'),
}
HELPERS = (
    "def {0}(z, q):\n    for j in range(len(z)):\n        z[j] = z[j] + q\n    return z[:1].sum()",
    "def {0}(z, q):\n    t = q\n    for j in range(1, len(z)):\n        t, q = t + z[j], t\n    return t - q",
    "def {0}(z, q):\n    v = z + q\n    for j in range(len(z)):\n        v[j:] += z[j]\n    return v.sum()",
    "def {0}(z, q):\n    for e in z:\n        q = np.maximum(q, e)\n    return q",
    "def {0}(z, q):\n    for j in range(len(z) - 1, 0, -1):\n        z[j] -= z[j - 1]\n    return q",
    "def {0}(z, q):\n    if len(z) > 2:\n        return {0}(z[2:], q + z[0])\n    return q",
)
RANGES = ("n", "len(x)", "1, n", "n - 1", "n - 1, -1, -1", "0, n, 2", "n - 1, 0, -2", "A.shape[1]")
INNER_RANGES = ("{0}, n", "n - {0}", "{0}, -1, -1", "0, n, {0} + 1")
OPEN_RANGES = ("{0}", "{0} + 1, n", "idx[{0}]", "idx[0]")
FUNCTIONS = ("np.add", "np.subtract", "np.maximum", "np.minimum")


def loop_programs() -> st.SearchStrategy[LoopProgram]:
    """Programs of a few statements, most of them loops."""
    return st.binary(min_size=ENTROPY, max_size=ENTROPY).map(written_from)


def written_from(entropy: bytes) -> LoopProgram:
    """The program that these random bytes choose."""
    writer = _Writer(entropy)
    writer.starts()
    for _ in range(writer.integer(1, MOST)):
        writer.top_level()
    return writer.program()


class _Writer(Operands):
    """Writes one program."""

    def __init__(self, entropy: bytes) -> None:
        super().__init__(entropy)
        self.size = self.choose(*SIZES)
        self.bounded = self.integer(0, 1) == 1
        # Small arrays make mistakes, which are errors even in loops that would not run.
        self.may_not_run = self.size > 3 and self.integer(0, 1) == 1
        self.favourite = self.choose(0, 0, 1, 2)
        self.body: list[str] = []
        self.helpers: list[str] = []
        self.features: set[str] = set()
        self.in_loop = 0
        self.indent = ""
        self.ended = False
        self.parameters = ("x", "y", "A", "idx", *(("k", "t") if self.bounded else ()))
        self.calls = self._calls()

    # ---- arguments -----------------------------------------------------------------------------------

    def _calls(self) -> tuple[tuple[str, ...], ...]:
        """The arguments of each call; only the numbers differ, so that compiled code is used again."""
        dtype, n = self.choose("f8", "f8", "i8", "f4", "i4"), self.size
        other_dtype = self.choose(dtype, dtype, "i8")
        layout, alias = self.choose(*LAYOUTS), self.choose("", "", *ALIASES)
        bounds = (self.choose(n, max(n - 2, 0), n // 2), *(self.choose(0, 1, n, n + 1) for _ in "12"))
        steps = (self.choose(5, 6), *(self.choose(0, 1, 2, 7, -1) for _ in "12"))
        calls = []
        for number, (k, t) in enumerate(zip(bounds, steps, strict=True)):
            other = f"np.resize(np.array([{number + 1}, 3, -2, 0, 2.0]), {n}).astype({other_dtype!r})"
            matrix = f"np.resize(np.array([2, -1, 0, 3, 1, -2, 5.0]), ({n}, {n})).astype({dtype!r})"
            lines = (
                f"x = np.resize(np.array([1, 4, {number}, -3, 2, 0.0]), {n}).astype({dtype!r})",
                f"y = {alias.format('x') if alias else other}",
                f"A = {layout.format(f'({matrix})')}",
                f"idx = np.resize(np.array([{number}, 2, -1, 0, 2, 1]) % max({n}, 1), {n})",
            )
            calls.append((*lines, f"k = {k}", f"t = {t}") if self.bounded else lines)
        return tuple(calls if self.bounded else calls[:1])

    # ---- the program ---------------------------------------------------------------------------------

    def starts(self) -> None:
        self.emit("n = len(x)")
        for _ in range(self.integer(2, 6)):
            kind = self.choose("s", "s", "s", "u", "u", "u", "c", "M", "M", "b", "o", "w", "p", "d")
            # What a loop that may run zero times leaves must be of the kind that it would have made.
            options = STARTS[kind][:5] if self.may_not_run else STARTS[kind]
            self.bind(self.fresh(kind), self.choose(*options))

    def top_level(self) -> None:
        """One more statement of the function, unless it cannot run."""
        if self.ended:
            return
        before = (len(self.body), list(self.known), set(self.assigned), set(self.features), len(self.helpers))
        if self.integer(0, 4):
            self.loop()
        else:
            self.statement()
        outcome = self._outcome()
        if outcome == "fine":
            return
        if outcome == "raises" and self.seldom(8):
            self.ended = True
            return
        del self.body[before[0] :], self.helpers[before[4] :]
        self.known, self.assigned, self.features = before[1], before[2], before[3]

    def program(self) -> LoopProgram:
        results = [name for name in self.known if name[0] in "scbouMwpie"]
        maybe = sorted(name for name in self.assigned if name[0] in "sie" and name not in results)
        if maybe and not self.may_not_run and self.seldom(6):
            results.append(self.choose(*maybe))
        shown = [f"*{name}" if name[0] in "wp" else name for name in results]
        return self._program(tuple(shown))

    def _program(self, results: tuple[str, ...]) -> LoopProgram:
        return LoopProgram(
            tuple(self.helpers),
            self.parameters,
            tuple(self.body),
            results,
            self.calls,
            self.may_not_run,
            frozenset(self.features),
        )

    def _outcome(self) -> str:
        """How the program goes in NumPy: "fine", "raises", or "inexact" where order could show."""
        program, makers = self._program((*self.known,)).load()
        raised = 0
        for make in makers:
            arguments = make()
            try:
                with np.errstate(all="ignore"):
                    results = program(*arguments)
            except Exception:
                raised += 1
            else:
                if not all(map(_exact, (*results, *arguments))):
                    return "inexact"
        return "raises" if raised else "fine"

    # ---- lines ---------------------------------------------------------------------------------------

    def emit(self, text: str) -> None:
        self.body.extend(self.indent + line for line in text.split("\n"))

    def bind(self, name: str, text: str) -> None:
        self.emit(f"{name} = {text}")
        self.now_known(name)

    def now_known(self, *names: str) -> None:
        self.known.extend(name for name in names if name not in self.known)
        self.assigned.update(names)

    @contextmanager
    def block(self, header: str, *names: str, indices: tuple[str, ...] = ()) -> Iterator[None]:
        """Lines inside a compound statement; what they bind is not surely bound after it."""
        self.emit(header)
        known, outer = list(self.known), list(self.indices)
        self.now_known(*names)
        self.indices = [*outer, *indices]
        self.indent += INDENT
        start = len(self.body)
        yield
        if len(self.body) == start:
            self.emit("pass")
        self.indent = self.indent[: -len(INDENT)]
        self.known, self.indices = known, outer

    # ---- loops ---------------------------------------------------------------------------------------

    def loop(self) -> None:
        header, names, indices = self._header()
        depth = DEPTH if self.size < 9 else DEPTH - 1
        with self.block(f"for {header}:", *names, indices=indices):
            self.in_loop += 1
            for _ in range(self.integer(1, 3)):
                if self.in_loop < depth and self.integer(0, 4) == 0:
                    self.loop()
                else:
                    self.statement()
            if self.seldom(12):
                self._leave()
            self.in_loop -= 1
        if self.seldom(20):
            with self.block("else:"):
                self.statement()

    def _header(self) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """The text after `for`, the names that it binds and those of them that are indices below n."""
        kind = self.choose("range", "range", "range", "arrays", "steps")
        if kind == "steps":
            return f"_ in range({self.choose('t', 'k') if self.bounded else self.integer(0, 6)})", (), ()
        if kind == "arrays":
            return self._array_header()
        name = self.fresh("i")
        ranges = [*RANGES, *(("k", "k, n") if self.bounded else ())]
        inner = (*INNER_RANGES, *OPEN_RANGES) if self.may_not_run else INNER_RANGES
        ranges += [text.format(outer) for outer in self.indices for text in inner]
        text = f"range({self.choose(*ranges)})"
        if self.seldom(6):
            text = f"reversed({text})"
        return f"{name} in {text}", (name,), (name,)

    def _array_header(self) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        i, e, f, r = (self.fresh(kind) for kind in "ieer")
        vectors = ("x", "y", "x[1:]", "x[::-1]", *self.names("u"))
        matrices = ("A", "A.T", "A[::-1]", "A[1:]", *self.names("M"))
        v, w, m = self.choose(*vectors), self.choose(*vectors), self.choose(*matrices)
        self.features.add("arrays")
        options: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
            (f"{r} in {m}", (r,), ()),
            (f"{e} in {v}", (e,), ()),
            (f"{i}, {r} in enumerate({m})", (i, r), (i,)),
            (f"{i}, {e} in enumerate({v})", (i, e), (i,)),
            (f"{e}, {f} in zip({v}, {w})", (e, f), ()),
            (f"{r}, {e} in zip({m}, {v})", (r, e), ()),
            (f"{i}, {e} in zip(range(n), {v})", (i, e), (i,)),
            (f"{i}, ({e}, {f}) in enumerate(zip({v}, {w}))", (i, e, f), (i,)),
            (f"{r} in reversed({m})", (r,), ()),
            (f"{e} in reversed({v})", (e,), ()),
            (f"{i}, {e} in enumerate(x[1:], 1)", (i, e), (i,)),
        )
        return self.choose(*options)  # type: ignore[no-any-return]

    def _leave(self) -> None:
        self.features.add("break")
        numbers = "".join(f"{name}, " for name in self.names("s"))
        leaving = self.choose("break", "continue", "break", f"return ({numbers})")
        self.emit(f"if {self._condition()}:\n{INDENT}{leaving}")

    # ---- statements ----------------------------------------------------------------------------------

    def statement(self) -> None:
        """Any statement, three times as often one of the program's favourite kinds."""
        names = [self._accumulate, self._recur, self._rebind_vector, self._alias, self._swap, self._pair]
        names += [self._previous, self._count, self._flag, self._find, self._whole]
        memory = [self._store, self._augment, self._chain, self._out, self._exchange, self._rows, self._shift]
        memory += [self._masked, self._scattered]
        control = [self._if, self._append, self._inner, self._nonlocal, self._while, self._call]
        favourites = (names, memory, control)[self.favourite]
        kinds = [*memory, *names, *control, *(3 * favourites)] if self.in_loop else [*memory, *names]
        start = len(self.body)
        while len(self.body) == start:  # some need names of a kind that the program lacks
            self.choose(*kinds)()

    def _accumulate(self) -> None:
        name = self.some("s") or self.fresh("s")
        if name in self.known and self.integer(0, 2):
            self.emit(f"{name} {self.choose('+', '+', '-')}= {self.number()}")
            self.assigned.add(name)
        else:
            self.bind(name, self.number())

    def _recur(self) -> None:
        names = self.names("s")
        if len(names) > 1:
            self.features.add("recurrence")
            first, second = names[0], self.choose(*names[1:])
            self.emit(f"{first}, {second} = {second}, {self.choose(first, self.number())}")

    def _store(self) -> None:
        if self.integer(0, 1):
            self.emit(f"{self.cell()} = {self.number()}")
        else:
            target, length = self.target()
            self.emit(f"{target} = {self.vector(length)}")

    def _augment(self) -> None:
        sign = self.choose("+", "-", "*")
        if self.integer(0, 1):
            self.emit(f"{self.cell()} {sign}= {self.choose(*NUMBERS[:4]) if sign == '*' else self.number()}")
        else:
            target, length = self.target()
            value = self.choose(*NUMBERS[:4]) if sign == "*" else self.vector(length)
            self.emit(f"{target} {sign}= {value}")

    def _rebind_vector(self) -> None:
        self.bind(self.some("u") or self.fresh("u"), self.fresh_vector())

    def _swap(self) -> None:
        names = self.names(self.choose("u", "M"))
        if len(names) > 1:
            self.features.add("swap")
            first, second = names[0], self.choose(*names[1:])
            if first[0] == "u" and self.integer(0, 1):
                self.emit(f"{first}, {second} = {second}, {self.fresh_vector()}")
            else:
                self.emit(f"{first}, {second} = {second}, {first}")

    def _alias(self) -> None:
        """Another name for what a name holds now, which keeps it."""
        kind = self.choose("s", "u", "M")
        if old := self.some(kind):
            self.features.add("alias")
            self.bind(self.choose(*self.names(kind), self.fresh(kind)), old)

    def _previous(self) -> None:
        """A view that moves with an index, read before it moves on."""
        if self.indices:
            self.features.add("moving view")
            self.bind(self.some("u") or self.fresh("u"), self.row())

    def _count(self) -> None:
        name = self.some("c")
        if name:
            self.emit(f"{name} {self.choose('+', '+', '-')}= {self.choose('1', '2', *self.indices)}")
            self.assigned.add(name)
        else:
            self.bind(self.fresh("c"), self.choose("0", *self.indices))

    def _chain(self) -> None:
        target, length = self.target()
        self.emit(f"{target} = {self.target(length)[0]} = {self.vector(length)}")

    def _out(self) -> None:
        target, length = self.target()
        left, right = self.vector_part(length), self.vector_part(length)
        self.emit(f"{self.choose(*FUNCTIONS)}({left}, {right}, out={target})")

    def _exchange(self) -> None:
        first, second = self.cell(), self.cell()
        self.emit(f"{first}, {second} = {second}, {first}")

    def _rows(self) -> None:
        name = self.choose("A", *self.names("M"))
        texts = ["{0}[1:] = {0}[:-1]", "{0} += {0}.T", "{0}[:, 1:] -= {0}[:, :-1]", "{0}[:] = {0}[::-1]"]
        for i in self.indices:
            texts += [f"{{0}}[{i}:, {i}:] += {self.number()}", f"{{0}}[:, {i}] = {{0}}[{i}]"]
            texts += [
                f"{{0}}[{i} + 1:] -= {{0}}[{i}]",
                f"{{0}}[:{i}] *= 2",
                f"{{0}}[{i}:] = {{0}}[: n - {i}]",
            ]
        self.emit(self.choose(*texts).format(name))

    def _shift(self) -> None:
        """Part of a vector stored in another part, in the same direction."""
        name = self.choose("x", "y", *self.names("u"), *self.names("r"))
        shifts = [("1:", ":-1"), (":-1", "1:"), *((f"{i}:", f": n - {i}") for i in self.indices)]
        target, source = self.choose(*shifts, *((f": n - {i}", f"{i}:") for i in self.indices))
        self.emit(f"{name}[{target}] {self.choose('', '+', '-')}= {name}[{source}]")

    def _whole(self) -> None:
        name = self.some("M")
        texts = ["A + 1", "A.T", "A[::-1].copy()", "np.outer(x, y)", "A @ A + 0", "np.tril(A)"]
        if name:
            texts += [f"{name} + A", f"{name}.T", f"{name}.copy()"]
        self.bind(name or self.fresh("M"), self.choose(*texts))

    def _call(self) -> None:
        self.features.add("helper")
        name = f"helper{len(self.helpers)}"
        self.helpers.append(self.choose(*HELPERS).format(name))
        lengths = self.lengths() if self.may_not_run else ("n", "n - 1", "half")
        argument = self.vector_part(self.choose(*lengths))
        self.bind(self.some("s") or self.fresh("s"), f"{name}({argument}, {self.number(0)})")

    def _find(self) -> None:
        name = self.some("o")
        if name and self.in_loop:
            self.features.add("none")
            value = self.number()
            options = (
                f"{name} = {value}",
                f"{name} = {value} if {name} is None else np.maximum({name}, {value})",
                f"if {name} is not None:\n{INDENT}{self.cell()} = {name}\n{name} = {value}",
            )
            self.emit(self.choose(*options))
            self.assigned.add(name)

    def _flag(self) -> None:
        name = self.some("b") or self.fresh("b")
        test = f"({self.number(0)} {self.choose('>', '<=', '==')} {self.number(0)})"
        self.bind(name, f"{name} {self.choose('|', '&', '^')} {test}" if name in self.known else test)

    def _masked(self) -> None:
        self.features.add("mask")
        vector = self.choose("x", "y", *self.names("u"))
        name = self.some("s") or self.fresh("s")
        test = f"{vector} {self.choose('>', '<')} {self.number(0)}"
        options = (
            f"{vector}[{test}] = {self.number(0)}",
            f"{vector}[{test}] += 1",
            f"x[{test}] = {vector}[{test}]",
            f"{name} = {vector}[{test}].sum()",
            f"{name} = np.where({test}, {vector}, 0).sum()",
            f"{name} = np.count_nonzero({test})",
        )
        text = self.choose(*options)
        self.emit(text)
        if text.startswith(name):
            self.now_known(name)

    def _scattered(self) -> None:
        self.features.add("scatter")
        vector = self.choose("x", "y", *self.names("u"))
        options = [
            f"{vector}[idx] = {self.number(0)}",
            f"{vector}[idx] += 1",
            f"np.add.at({vector}, idx, x)",
            f"{vector}[idx] = x[idx[::-1]]",
            "A[idx] = A[::-1]",
            "A[idx, idx[::-1]] += 1",
        ]
        for i in self.indices:
            options += [f"{vector}[idx[{i}]] += {self.number(0)}", f"A[idx[{i}]] -= A[{i}]"]
        self.emit(self.choose(*options))

    def _if(self) -> None:
        self.features.add("if")
        with self.block(f"if {self._condition()}:"):
            self.statement() if self.in_loop < DEPTH else self._store()
        if self.integer(0, 2) == 0:
            with self.block("else:"):
                self._store()

    def _condition(self) -> str:
        texts = ("{0} % 2", "{0} == 3", "{0} > 2", "{0} % 2 == 0", "{0} == n - 1", "not {0}", "{0} < 2")
        options = [text.format(i) for i in self.indices for text in texts]
        if not options or self.seldom():
            options = ["n > 3", *(("k > 1",) if self.bounded else ())]
        return str(self.choose(*options))

    def _pair(self) -> None:
        """A tuple of carried values, put together or taken apart."""
        if name := self.some("p"):
            self.features.add("tuple")
            number, vector = self.some("s") or self.fresh("s"), self.some("u") or self.fresh("u")
            if self.integer(0, 2) == 0:
                self.emit(f"{number}, {vector} = {name}")
                self.now_known(number, vector)
            else:
                old, changed = f"{name}[0]", f"{name}[1]"
                value = self.choose(self.number(), f"{old} + {self.number(0)}", old)
                array = self.choose(self.fresh_vector(), f"{changed}[::-1] + 1", changed, self.row())
                self.bind(name, f"({value}, {array})")

    def _append(self) -> None:
        """A container that the body changes."""
        name, other = self.some("w"), self.some("d")
        if name and self.integer(0, 1):
            self.features.add("container")
            self.emit(f"{name}.append({self.choose(self.number(), self.fresh_vector())})")
        elif other:
            self.features.add("container")
            key = self.choose("'a'", "'b'", *self.indices)
            value = f"{other}['b'] + 1" if key == "'b'" else self.number(0)
            self.emit(f"{other}[{key}] = {value}")
            self.emit(f"{self.cell()} = {other}['a'] + {other}['b'][-1]")

    def _inner(self) -> None:
        """Numbers of a range that a comprehension or a generator takes one by one."""
        self.features.add("comprehension")
        bound = self.choose("n", "3", *self.indices)
        name = self.some("s") or self.fresh("s")
        options = (f"sum(x[j] for j in range({bound}))", f"sum([x[j] * j for j in range({bound})])")
        self.bind(name, self.choose(*options, f"np.sum([y[j] + {self.number(0)} for j in range({bound})])"))

    def _nonlocal(self) -> None:
        """A name of the function's that functions inside it read or assign."""
        name = self.some("s")
        if name is None:
            return
        self.features.add("closure")
        inner = self.fresh("f")
        if self.integer(0, 1):
            self.emit(f"def {inner}(q):\n{INDENT}return {name} + q")
            self.bind(name, f"{inner}({self.number(0)})")
        else:
            self.emit(f"def {inner}(q):\n{INDENT}nonlocal {name}\n{INDENT}{name} = {name} + q")
            self.emit(f"{inner}({self.number(0)})")

    def _while(self) -> None:
        self.features.add("while")
        name = self.fresh("i")
        self.bind(name, self.choose("2", *self.indices))
        with self.block(f"while {name} > 0:", name, indices=(name,)):
            self._store()
            self.emit(f"{name} -= 1")


def _exact(value: Any) -> bool:
    """Whether sums of such numbers are the same in any order."""
    if isinstance(value, (list, tuple, dict)):
        return all(map(_exact, value.values() if isinstance(value, dict) else value))
    if value is None:
        return True
    numbers = np.asarray(value).astype("f8") * FINEST
    return bool(np.all(np.abs(numbers) < LARGEST * FINEST) and np.all(numbers == np.rint(numbers)))
