"""A kernel's instructions as segments: what runs without a branch in between, and where it leads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from ...frozen import frozen, frozen_by_identity
from .faults import Fault, InvalidPtx, Place, Trapped
from .flat import Flat
from .module import Instruction, Word
from .opcodes import OPCODES
from .site import Action, Names, Reader, Site, Writer
from .threads import Threads
from .types import TYPES

__all__ = ["Barrier", "Branch", "Code", "Collective", "Exit", "Fall", "Segment", "Switch", "decode"]


@frozen
class Fall:
    """On to the next segment."""


@frozen
class Branch:
    """To a position if the predicate holds; always, without one."""

    target: int
    predicate: Reader | None


@frozen
class Switch:
    """To one of several positions, chosen by a register."""

    targets: tuple[int, ...]
    index: Reader


@frozen
class Exit:
    """The thread ends."""

    predicate: Reader | None


@frozen
class Barrier:
    """Threads of a block meet. `waits` is False for `bar.arrive`; `vote` combines predicates into `store`."""

    line: int
    number: Reader
    threads: Reader | None
    waits: bool
    predicate: Reader | None
    vote: str = ""
    voted: Reader | None = None
    store: Writer | None = None


@frozen
class Collective:
    """An operation of a warp: the lanes that `members` names do it together. None: all that live."""

    action: Action
    members: Reader | None
    predicate: Reader | None


End = Fall | Branch | Switch | Exit | Barrier | Collective


@frozen_by_identity
class Segment:
    """Actions with their positions in the code, then the end, which is at `position`."""

    steps: tuple[tuple[int, Action], ...]
    end: End
    position: int


@frozen_by_identity
class Code:
    """A decoded kernel: segments by their first position."""

    flat: Flat
    segments: Mapping[int, Segment]

    def place(self, position: int) -> Place:
        """The instruction at a position, for a fault."""
        return place(self.flat, self.flat.body[min(position, len(self.flat.body) - 1)])


def place(flat: Flat, at: Instruction) -> Place:
    """An instruction of a kernel, for a fault."""
    text = f"{at.text} (line {at.loc} of the CUDA source)" if at.loc else at.text
    return Place(flat.kernel.name, at.line, text)


def decode(flat: Flat, names: Names) -> Code:
    """Raises UnknownInstruction and InvalidPtx, which name the line."""
    leaders = {0, *flat.labels.values()}
    parts: dict[int, Action | End] = {}
    for position, instruction in enumerate(flat.body):
        try:
            parts[position] = _part(flat, instruction, names)
        except Fault as fault:
            raise fault.located(place(flat, instruction)) from fault
        except (IndexError, AssertionError, ValueError) as error:
            what = str(error) or "an operand is missing"
            raise InvalidPtx(what, place=place(flat, instruction)) from error
    segments: dict[int, Segment] = {}
    for leader in sorted(leaders | {at + 1 for at, part in parts.items() if not callable(part)}):
        steps: list[tuple[int, Action]] = []
        position = leader
        end: End = Exit(None)
        while position < len(flat.body):
            part = parts[position]
            if not callable(part):
                end = part
                break
            steps.append((position, part))
            position += 1
            if position in leaders:
                end, position = Fall(), position - 1
                break
        segments[leader] = Segment(tuple(steps), end, position)
    return Code(flat, segments)


def _part(flat: Flat, instruction: Instruction, names: Names) -> Action | End:
    site = Site(instruction, names)
    guard = instruction.guard
    predicate = None if guard is None else site.read(guard, "pred")
    match instruction.opcode:
        case "bra":
            return Branch(_target(flat, instruction), predicate)
        case "brx":
            table = site.operands[1]
            assert isinstance(table, Word)
            if predicate is not None:
                raise site.unknown("it has a guard")
            return Switch(tuple(flat.labels[name] for name in flat.tables[table.name]), site.read(0, "u32"))
        case "ret" | "exit":
            return Exit(predicate)
        case "bar" | "barrier" if not site.has("warp"):
            return _barrier(site, predicate)
        case "trap" | "call" | "brkpt":
            return guarded(_trap(instruction), predicate)
    opcode = OPCODES.get("bar.warp" if instruction.opcode == "bar" else instruction.opcode)
    if opcode is None:
        raise site.unknown(f"{instruction.opcode!r} is not an instruction that the interpreter knows")
    opcode.check(site)
    action = opcode.make(site)
    if opcode.members is not None:
        return Collective(action, opcode.members(site), predicate)
    return guarded(action, predicate)


def _target(flat: Flat, instruction: Instruction) -> int:
    target = instruction.operands[0]
    assert isinstance(target, Word)
    if target.name not in flat.labels:
        raise InvalidPtx(f"label {target.name!r} is not defined")
    return flat.labels[target.name]


def guarded(action: Action, predicate: Reader | None) -> Action:
    """The action for those active lanes for which the predicate holds."""
    if predicate is None:
        return action

    def run(threads: Threads) -> None:
        lanes = threads.lanes
        count = threads.count
        chosen = threads.numbers[predicate(threads)]
        if len(chosen) == count:
            action(threads)
        elif len(chosen):
            threads.select(chosen)
            action(threads)
            threads.lanes, threads.count = lanes, count

    return run


def _trap(instruction: Instruction) -> Action:
    called = next((each.name for each in instruction.operands if isinstance(each, Word)), "")
    if called == "__assertfail":
        what = "an assertion does not hold"
    else:
        what = f"it calls {called!r}, which is not simulated" if called else "it stops the kernel"

    def run(threads: Threads) -> NoReturn:
        raise Trapped(what, lane=int(threads.numbers[0]))

    return run


def _barrier(site: Site, predicate: Reader | None) -> Barrier:
    """`bar.sync a, b`, `bar.arrive a, b`, `bar.red.op p, a, b, c`, and the same as `barrier`."""
    allowed = {"sync", "arrive", "red", "aligned", "cta", "popc", "and", "or", "u32", "pred"}
    if unknown := set(site.instruction.modifiers) - allowed:
        raise site.unknown(", ".join(f".{each}" for each in sorted(unknown)))
    if not site.has("red"):
        threads = site.read(1, "u32") if len(site.operands) > 1 else None
        return Barrier(site.instruction.line, site.read(0, "u32"), threads, not site.has("arrive"), predicate)
    vote = site.choice("popc", "and", "or")
    threads = site.read(2, "u32") if len(site.operands) > 3 else None
    voted = site.read(site.operands[-1], "pred")
    store = site.write(0, TYPES["u32"] if vote == "popc" else TYPES["pred"])
    return Barrier(site.instruction.line, site.read(1, "u32"), threads, True, predicate, vote, voted, store)
