"""What the bytecode of the user's function says: is this a `for` statement, which names are read again.

Only the names of instructions and their jump targets are used, by way of `dis`, so that one text serves
CPython 3.10 to 3.15.
"""

from __future__ import annotations

import dis
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from types import CodeType, FrameType

from ...frozen import frozen

__all__ = [
    "Liveness",
    "asks_early",
    "asks_which_bool",
    "breaks_off",
    "comprehension",
    "for_statement",
    "generator",
    "goes_on_as_ended",
    "has_made_list",
    "liveness",
    "read_in_an_iteration",
]

_ACCESS = re.compile(r"(LOAD|STORE|DELETE)_(?:FAST|DEREF|CLOSURE|CLASSDEREF)(?:_BORROW)?")
_LEAVES = frozenset(("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"))
_JUMPS_ALWAYS = frozenset(("JUMP_FORWARD", "JUMP_ABSOLUTE", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"))
_DROPS = frozenset(("POP_TOP", "POP_ITER"))
_SEES_ALL = frozenset(("locals", "vars", "eval", "exec", "dir"))
_BUILDS = frozenset(("LIST_APPEND", "SET_ADD", "MAP_ADD"))
_IS = dis.opmap["IS_OP"]
_OF_NAMES = ("LOAD_FAST", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_NAME")
_SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


@frozen
class Liveness:
    """The names that may be read before they are assigned: when the loop is about to go on or end (`head`),
    by its body (`body`), after it (`after`). Names that functions share may be read at any time, except in
    `after_itself`, which has what the frame's own code reads."""

    head: frozenset[str]
    body: frozenset[str]
    after: frozenset[str]
    after_itself: frozenset[str]

    def of_part(self) -> Liveness:
        """The names of some iterations, after which others follow."""
        return replace(self, after=self.head, after_itself=self.head)


@frozen
class _Instruction:
    name: str
    arg: int
    target: int | None
    reads: frozenset[str]
    writes: frozenset[str]


def for_statement(frame: FrameType) -> int | None:
    """The offset of the FOR_ITER instruction, when the frame is asking for the iterator of a `for` statement
    of an ordinary function; comprehensions, generators and calls such as `list(...)` give None."""
    code = frame.f_code
    if code.co_flags & _SUSPENDS or not code.co_flags & inspect.CO_OPTIMIZED:
        return None
    instructions = _instructions(code)
    here, following = instructions.get(frame.f_lasti), _following(code).get(frame.f_lasti)
    if here is None or following is None or here.name != "GET_ITER":
        return None
    if instructions[following].name != "FOR_ITER" or _builds(code, following) is not None:
        return None
    return following


def asks_early(frame: FrameType) -> bool:
    """Whether the frame is asking for an iterator before it begins a loop: that of a comprehension or of a
    generator, which from CPython 3.15 on asks when it is called, by a frame that cannot be seen."""
    code = frame.f_code
    here, following = _instructions(code).get(frame.f_lasti), _following(code).get(frame.f_lasti)
    if here is None or following is None:
        return False
    if here.name == "GET_ITER":
        return _instructions(code)[following].name != "FOR_ITER"
    return here.name == "CALL" and here.arg == 0


@lru_cache(maxsize=256)
def asks_which_bool(code: CodeType) -> bool:
    """Whether the code, or a function in it, asks by `is` for True or False, or whether two values are the
    same, of which both may be bools."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    if any(map(asks_which_bool, inner)):
        return True
    if _IS not in code.co_code[::2]:
        return False
    steps = [*_instructions(code).values()]
    return any(step.name == "IS_OP" and _may_be_bools(code, steps[n - 2 : n]) for n, step in enumerate(steps))


def _may_be_bools(code: CodeType, loads: Sequence[_Instruction]) -> bool:
    """May the operands that these two instructions end be bools? Calls that are compared with a global are
    `type(x) is float`."""
    left, right = loads
    are_both = right.name.count("LOAD_FAST") > 1
    known = [load for load in loads if load.name == "LOAD_CONST" and not are_both]
    if known and (right in known or right.name.startswith(_OF_NAMES)):
        return any(type(code.co_consts[load.arg]) is bool for load in known)
    return not (left.name.startswith("CALL") and right.name == "LOAD_GLOBAL")


def has_made_list(frame: FrameType) -> bool:
    """Whether the frame is asking for the iterator of a list comprehension and has made its list already, as
    it does from CPython 3.15 on."""
    code, place = frame.f_code, frame.f_lasti
    before = [one.name for offset, one in _instructions(code).items() if offset <= place]
    return before[-3:] == ["BUILD_LIST", "SWAP", "GET_ITER"]


def comprehension(frame: FrameType) -> int | None:
    """The offset of the FOR_ITER instruction, when the frame is asking for an item of the outermost loop of a
    list comprehension in an ordinary function."""
    code = frame.f_code
    if code.co_flags & _SUSPENDS or not code.co_flags & inspect.CO_OPTIMIZED:
        return None
    here = _instructions(code).get(frame.f_lasti)
    if here is None or here.name != "FOR_ITER" or _builds(code, frame.f_lasti) != "LIST_APPEND":
        return None
    return frame.f_lasti


def generator(frame: FrameType) -> int | None:
    """The offset of the FOR_ITER instruction, when the frame is asking for an item of the outermost loop of a
    generator expression."""
    here = _instructions(frame.f_code).get(frame.f_lasti)
    is_one = frame.f_code.co_name == "<genexpr>" and here is not None and here.name == "FOR_ITER"
    return frame.f_lasti if is_one else None


def breaks_off(frame: FrameType) -> bool:
    """Whether the frame is dropping the iterator of a loop: it stands at a `break`, or at a `return` within
    the loop, and nothing was raised."""
    here = _instructions(frame.f_code).get(frame.f_lasti)
    return here is not None and here.name in _DROPS


def goes_on_as_ended(frame: FrameType, offset: int) -> bool:
    """Whether the frame, which is dropping the iterator of the loop at FOR_ITER, does then what it does when
    that loop has ended: it breaks it off, and there is no `else`."""
    code = frame.f_code
    instructions, following = _instructions(code), _following(code)
    target = instructions[offset].target
    assert target is not None
    ended = _at_or_after(code, target)
    drops = 0 if instructions[ended].name != "END_FOR" else 2 if sys.version_info >= (3, 13) else 1
    for _ in range(drops):
        ended = following[ended]
    return _do_the_same(code, following.get(frame.f_lasti), ended)


def _do_the_same(code: CodeType, one: int | None, other: int | None) -> bool:
    """Whether code goes on alike from two instructions: by the same ones, or by copies of them that end."""
    instructions, following = _instructions(code), _following(code)
    for _ in instructions:
        one, other = _past_jumps(code, one), _past_jumps(code, other)
        if one is None or other is None or one == other:
            return one == other
        first, second = instructions[one], instructions[other]
        if first.target is not None or first != second:
            return False
        if first.name in _LEAVES:
            return True
        one, other = following.get(one), following.get(other)
    return False


def _past_jumps(code: CodeType, offset: int | None) -> int | None:
    """The next instruction from an offset on that does anything."""
    instructions = _instructions(code)
    for _ in instructions:
        if offset is None:
            return None
        here = instructions[offset]
        if here.name in _JUMPS_ALWAYS and here.target is not None:
            offset = _at_or_after(code, here.target)
        elif here.name == "NOP":
            offset = _following(code).get(offset)
        else:
            return offset
    return None


@lru_cache(maxsize=256)
def _builds(code: CodeType, offset: int) -> str | None:
    """By which instruction the loop at FOR_ITER builds a list, a set or a dict: one of a comprehension."""
    instructions, following = _instructions(code), _following(code)
    end = instructions[offset].target
    assert end is not None
    place, before = following[offset], ["", "FOR_ITER"]
    while place < end:
        here = instructions[place]
        # A comprehension's loop begins when its list is made, before the iterator is asked for or after.
        is_inner = before[-1] == "GET_ITER" and before[-2] != "SWAP"
        if here.name == "FOR_ITER" and not is_inner and here.target is not None:
            place = _at_or_after(code, here.target)
            before += ["", ""]
            continue
        if here.name in _BUILDS and here.arg > 1:
            return here.name
        before.append(here.name)
        if place not in following:
            break
        place = following[place]
    return None


@lru_cache(maxsize=256)
def read_in_an_iteration(code: CodeType, offset: int) -> frozenset[str]:
    """The names that an iteration of the loop of the FOR_ITER instruction at `offset` may read before it
    assigns them, besides those that functions share."""
    return _live(code, offset)[_following(code)[offset]]


@lru_cache(maxsize=256)
def liveness(code: CodeType, offset: int) -> Liveness:
    """The live names at the FOR_ITER instruction at `offset`."""
    live = _live(code)
    inside, target = _following(code)[offset], _instructions(code)[offset].target
    assert target is not None
    shared = frozenset(code.co_cellvars) | frozenset(code.co_freevars)
    if _SEES_ALL & set(code.co_names):
        shared |= frozenset(code.co_varnames)
    after = live[_at_or_after(code, target)] | frozenset(code.co_freevars)
    return Liveness(live[offset] | shared, live[inside] | shared, after | shared, after)


@lru_cache(maxsize=256)
def _instructions(code: CodeType) -> dict[int, _Instruction]:
    """The instructions by offset, without prefixes and caches."""
    jumps = {*dis.hasjrel, *dis.hasjabs}
    return {
        item.offset: _Instruction(
            item.opname,
            item.arg or 0,
            item.argval if item.opcode in jumps else None,
            *_accesses(item.opname, item.argval),
        )
        for item in dis.get_instructions(code)
        if item.opname not in ("EXTENDED_ARG", "CACHE")
    }


def _accesses(name: str, value: object) -> tuple[frozenset[str], frozenset[str]]:
    """The local names that an instruction reads before it writes, and those that it writes."""
    reads: set[str] = set()
    writes: set[str] = set()
    kinds = _ACCESS.findall(name)
    names = value if kinds and isinstance(value, tuple) else (value,) * len(kinds)
    for kind, local in zip(kinds, names, strict=True):
        if kind != "LOAD":
            writes.add(local)
        elif local not in writes:
            reads.add(local)
    return frozenset(reads), frozenset(writes)


@lru_cache(maxsize=64)
def _live(code: CodeType, end: int | None = None) -> dict[int, frozenset[str]]:
    """The names live before each instruction (backward dataflow to the fixed point), none at the `end`."""
    instructions = _instructions(code)
    successors = {offset: tuple(_successors(code, offset)) for offset in instructions}
    live: dict[int, frozenset[str]] = dict.fromkeys(instructions, frozenset())
    changed = True
    while changed:
        changed = False
        for offset in reversed(instructions):
            after = frozenset().union(*(live[n] for n in successors[offset]))
            instruction = instructions[offset]
            before = (after - instruction.writes) | instruction.reads if offset != end else frozenset()
            if before != live[offset]:
                live[offset] = before
                changed = True
    return live


def _successors(code: CodeType, offset: int) -> Iterator[int]:
    instructions = _instructions(code)
    instruction = instructions[offset]
    if instruction.target is not None:
        yield _at_or_after(code, instruction.target)
    falls_through = instruction.name not in _LEAVES and instruction.name not in _JUMPS_ALWAYS
    if falls_through and offset in _following(code):
        yield _following(code)[offset]
    for first, last, handler in _handlers(code):
        if first <= offset < last:
            yield _at_or_after(code, handler)


@lru_cache(maxsize=64)
def _following(code: CodeType) -> dict[int, int]:
    """The offset of the next instruction for that of each but the last."""
    offsets = list(_instructions(code))
    return dict(pairwise(offsets))


def _at_or_after(code: CodeType, offset: int) -> int:
    """The instruction at an offset, past its prefixes."""
    instructions = _instructions(code)
    while offset not in instructions:
        offset += 2
    return offset


@lru_cache(maxsize=64)
def _handlers(code: CodeType) -> tuple[tuple[int, int, int], ...]:
    """Spans of code with the offset of their exception handler; older versions jump by instructions."""
    entries = getattr(dis.Bytecode(code), "exception_entries", ())
    return tuple((entry.start, entry.end, entry.target) for entry in entries)
