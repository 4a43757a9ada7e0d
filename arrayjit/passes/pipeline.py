"""THE table of passes, in the order in which they run.

A pass is a pure function in a file of its name; adding one is adding a row. Those for GPUs alone are imported
when they first run, which in most processes they never do. `after` names the passes that must have run and
`why` says what would go wrong otherwise. A pass that changes nothing returns the very object it was given.
Without one that is `optional` programs are right, and some are slower. `explained` tells, once somebody asks,
what a run of the pass did and left undone beside what it noted on the kernel.
"""

from __future__ import annotations

from ..ir.assign import Computation
from ..ir.loops import Kernel
from .bodies.afterwards import afterwards
from .bodies.altogether import altogether
from .bodies.beforehand import beforehand
from .bodies.bytewise import bytewise
from .bodies.carry import carry
from .bodies.certain import certain
from .bodies.convert import convert
from .bodies.divisors import divisors
from .bodies.endwise import endwise
from .bodies.expand import expand
from .bodies.foremost import foremost
from .bodies.group import group
from .bodies.guess import guess
from .bodies.hoist import hoist
from .bodies.invariant import invariant
from .bodies.narrow import narrow
from .bodies.numbers import numbers
from .bodies.once import once
from .bodies.popcount import popcount
from .bodies.rare import rare
from .bodies.reciprocals import reciprocals
from .bodies.regroup import regroup
from .bodies.rows import rows
from .bodies.settle import settle
from .bodies.share import share
from .bodies.short_circuit import short_circuit
from .bodies.simplify import simplify
from .bodies.spell import spell
from .bodies.squares import squares
from .bodies.steady import steady
from .bodies.straight import straight
from .bodies.tabulate import tabulate
from .bodies.totals import totals
from .bodies.unordered import unordered
from .bodies.unroll import explain_unroll, unroll
from .bodies.whereabouts import whereabouts
from .bodies.wrap import wrap
from .products.confine import confine
from .products.contract import contract
from .schedule.abreast import abreast
from .schedule.align import align
from .schedule.along import along
from .schedule.alternate import alternate
from .schedule.apart import apart
from .schedule.append import append
from .schedule.beside import beside
from .schedule.braid import braid
from .schedule.broaden import broaden
from .schedule.bypass import bypass
from .schedule.cascade import cascade
from .schedule.collapse import collapse
from .schedule.crosswise import crosswise
from .schedule.decided import decided
from .schedule.distant import distant
from .schedule.down import down
from .schedule.foresee import foresee
from .schedule.jam import jam
from .schedule.lag import lag
from .schedule.order import order
from .schedule.overlap import overlap
from .schedule.pack import pack
from .schedule.pad import pad
from .schedule.panels import panels
from .schedule.prefetch import prefetch
from .schedule.quarters import quarters
from .schedule.ragged import ragged
from .schedule.relay import relay
from .schedule.retain import retain
from .schedule.reverse import reverse
from .schedule.sections import sections
from .schedule.segments import segments
from .schedule.skew import skew
from .schedule.stream import stream
from .schedule.sweep import sweep
from .schedule.tails import tails
from .schedule.threads import explain_threads, threads
from .schedule.tile import tile
from .schedule.trail import trail
from .schedule.trapezoid import trapezoid
from .schedule.unison import unison
from .schedule.vectorise import explain_vectorise, vectorise
from .structure.again import again
from .structure.ascend import ascend
from .structure.batch import batch
from .structure.chain import chain
from .structure.check import check
from .structure.components import components
from .structure.directly import directly
from .structure.early import early
from .structure.forward import forward
from .structure.fuse import explain_fuse, fuse
from .structure.inline import explain_inline, inline
from .structure.interior import interior
from .structure.invert import invert
from .structure.inward import inward
from .structure.lifetimes import lifetimes
from .structure.log import log
from .structure.lower import lower
from .structure.margins import margins
from .structure.mirror import mirror
from .structure.moved import moved
from .structure.multiples import multiples
from .structure.overwrite import overwrite
from .structure.parallel import parallel
from .structure.peel import peel
from .structure.pieces import pieces
from .structure.place import place
from .structure.portion import portion
from .structure.prune import prune
from .structure.reals import reals
from .structure.rebase import rebase
from .structure.rematerialise import rematerialise
from .structure.reroll import reroll
from .structure.rounds import rounds
from .structure.rowwise import rowwise
from .structure.same import same
from .structure.snapshot import snapshot
from .structure.swap import swap
from .structure.through import through
from .structure.triple import triple
from .structure.within import within
from .table import BOTH, GPU, Pass

__all__ = ["LOWERING", "ON_ASSIGNMENTS", "ON_LOOPS", "OPTIONAL"]

ON_ASSIGNMENTS: tuple[Pass[Computation, Computation], ...] = (
    Pass(reals, why="no other pass knows complex numbers", on=BOTH),
    Pass(
        log,
        after=("reals",),
        why="values are told in the order of before, and nothing has moved yet",
        on=BOTH,
    ),
    Pass(moved, after=("reals", "log"), why="what is told are bools", optional=True),
    Pass(
        rounds,
        after=("reals", "log"),
        why="what is there once goes through the passes once",
        optional=True,
        on=BOTH,
    ),
    Pass(
        reroll,
        after=("rounds",),
        why="what is done to a round that stands by itself need not be done to the loop",
        on=BOTH,
    ),
    Pass(same, after=("reroll",), why="a round that joins its loop binds its numbers there", on=BOTH),
    Pass(again, after=("same",), why="equal numbers have one name by then", on=BOTH),
    Pass(
        forward,
        after=("again",),
        why="what was done before is a copy, and nothing is looked at yet",
        optional=True,
        on=BOTH,
    ),
    Pass(
        overwrite,
        after=("forward",),
        why="copies that are left over are needed, or parts of them",
        optional=True,
        on=BOTH,
    ),
    Pass(check, after=("forward",), why="what is recorded several times is looked at once", on=BOTH),
    Pass(
        within,
        after=("check",),
        why="what looks for mistakes has been written out, and nothing is inlined yet",
        optional=True,
        on=BOTH,
    ),
    Pass(
        through,
        after=("within",),
        why="positions that lie within are those that arrays hold",
        optional=True,
        on=BOTH,
    ),
    Pass(early, after=("within", "through"), why="what need not be looked at moves nothing"),
    Pass(
        inline,
        after=("reroll", "same"),
        why="two records of one statement no longer look alike once other readers decided what each inlines",
        explained=explain_inline,
        optional=True,
        on=BOTH,
    ),
    Pass(
        pieces,
        after=("inline",),
        why="an array that is computed where it is read is put together by none",
        optional=True,
        on=BOTH,
    ),
    Pass(
        chain,
        after=("pieces",),
        why="what is computed where it is read, or piece by piece, is chosen among values by themselves",
        optional=True,
    ),
)

LOWERING: Pass[Computation, Kernel] = Pass(lower, on=BOTH)

ON_LOOPS: tuple[Pass[Kernel, Kernel], ...] = (
    Pass(margins, after=("lower",), why="lowering shows which cells are written", optional=True),
    Pass(prune, after=("margins",), why="what only filled an array is needed no more", on=BOTH),
    Pass(
        directly, after=("margins", "prune"), why="edges are told by nests that fill the rest", optional=True
    ),
    Pass(batch, after=("prune",), why="a product nobody reads is not worth a matrix", on=BOTH),
    Pass(invert, after=("batch",), why="a product inside the cells is no product of matrices", on=BOTH),
    Pass(
        snapshot,
        after=("invert",),
        why="a product that has left its loop reads what it did at once",
        optional=True,
    ),
    Pass(
        triple,
        after=("invert",),
        why="a product that leaves its loop has its columns, and sums join the loop that makes their terms",
        optional=True,
    ),
    Pass(
        rowwise, after=("invert", "triple"), why="steps of cells are inside, nests still apart", optional=True
    ),
    Pass(
        fuse,
        after=("invert", "snapshot", "triple"),
        why="a product that has joined other statements cannot leave its loop, nor cells that joined loops "
        "overwrite be copied before",
        explained=explain_fuse,
        optional=True,
        on=BOTH,
    ),
    Pass(mirror, after=("fuse",), why="what joined loops hand on needs no array anyway", optional=True),
    Pass(
        components,
        after=("fuse",),
        why="only joined loops make in an iteration what it uses, and rows of few cells are still cells",
        optional=True,
    ),
    Pass(place, after=("fuse",), why="only joined loops let a temporary shrink to a variable", on=BOTH),
    Pass(
        rematerialise,
        after=("place",),
        why="temporaries are as small as they get, and numbers that rows share are variables",
        optional=True,
    ),
    Pass(rebase, after=("place",), why="a program's own loops are as they will be"),
    Pass(peel, after=("rebase",), why="where cells are is told from 0 on", optional=True),
    Pass(
        parallel,
        after=("place", "rebase", "peel"),
        why="what an iteration makes for itself is a variable by then, and where cells are is told from 0 on",
        on=BOTH,
    ),
    Pass(
        inward,
        after=("parallel",),
        why="only then are a program's own loops known to be independent, and their temporaries locals",
    ),
    Pass(ascend, after=("inward",), why="columns of steps are known to be independent"),
    Pass(
        beforehand,
        after=("ascend",),
        why="what may be done in any order is not done otherwise in one of two forms",
        optional=True,
    ),
    Pass(
        group,
        after=("beforehand",),
        why="sums of rounds are not yet divided among lanes, and steps with positions are still one",
    ),
    Pass(
        "attend",
        after=("parallel",),
        why="a product that is a grid by itself hands its result to other launches",
        on=GPU,
        optional=True,
    ),
    Pass(
        "fragments",
        after=("attend",),
        why="which nests are independent is known by then, and small floats are still small floats",
        on=GPU,
        optional=True,
    ),
    Pass(
        wrap, after=("place",), why="what indices are divided by is a definition of many steps later", on=BOTH
    ),
    Pass(certain, after=("wrap",), why="a position is tested at once by then, from both ends of its axis"),
    Pass(
        afterwards,
        after=("certain",),
        why="what can be raised at all is what is left, and integers that find no memory are locals",
    ),
    Pass(
        short_circuit,
        after=("certain",),
        why="exceptions of a second condition that cannot be raised do not keep it where it is",
        optional=True,
    ),
    Pass(popcount, after=("certain",), why="a step that may raise one takes more than a bit", optional=True),
    Pass(totals, after=("popcount",), why="loops that may raise exceptions are in order", optional=True),
    Pass(
        apart,
        after=("totals",),
        why="what is accumulated in any order keeps no iteration from going beside others",
    ),
    Pass("scan", after=("parallel",), why="rows that are independent are seen to be so", on=GPU),
    Pass(segments, after=("parallel",), why="what is shared by threads already has no need of them"),
    Pass(
        multiples,
        after=("parallel",),
        why="what steps stride through is seen to be filled alone",
        optional=True,
    ),
    Pass(
        portion,
        after=("parallel", "multiples"),
        why="a loop whose iterations are independent is seen to be so, and all of a step's numbers are known",
        optional=True,
    ),
    Pass(
        "atomics",
        after=("scan",),
        why="what still is in order then is so for what it finds in memory alone",
        on=GPU,
    ),
    Pass(
        tabulate,
        after=("apart",),
        why="what steps find out by themselves goes in vectors, which look nothing up",
        optional=True,
    ),
    Pass(
        divisors,
        after=("certain",),
        why="numbers that are known not to be negative are divided without a sign",
        optional=True,
    ),
    Pass(
        squares,
        after=("certain",),
        why="exceptions of roots that cannot be raised are gone, and absolute values are not written out",
        optional=True,
    ),
    Pass(invariant, after=("squares",), why="what takes long by then is still one operation", optional=True),
    Pass(
        relay,
        after=("invariant",),
        why="loops over chains are in order by then, and bodies short",
        optional=True,
    ),
    Pass(
        expand, after=("wrap",), why="definitions are written over variables, not over array cells", on=BOTH
    ),
    Pass(simplify, after=("expand",), why="definitions leave constants to fold", on=BOTH),
    Pass(
        narrow,
        after=("simplify",),
        why="shifts and choices by known numbers are seen to be such",
        optional=True,
    ),
    Pass(order, after=("simplify",), why="only loops that run more than once need a place", optional=True),
    Pass(
        steady,
        after=("simplify",),
        why="what an exception depends on is in locals, and what never raises one is gone",
        optional=True,
    ),
    Pass(
        swap,
        after=("order", "steady"),
        why="only loops that run more than once copy again and again, and what stops two steps is told once",
        optional=True,
    ),
    Pass(
        interior,
        after=("swap",),
        why="a nest that changes one of two arrays no longer changes the one that it looks around in",
    ),
    Pass(
        pad, after=("interior",), why="which arrays take turns is settled, and rows are loops", optional=True
    ),
    Pass(
        lag,
        after=("pad",),
        why="what is not copied is not waited for, and rows are those of memory",
        optional=True,
    ),
    Pass(
        sweep,
        after=("lag",),
        why="of a temporary that a nest hands on row by row two rows are left, whatever follows",
        optional=True,
    ),
    Pass(
        along, after=("sweep",), why="what follows a nest row by row is no longer in the way", optional=True
    ),
    Pass(
        retain,
        after=("along",),
        why="rows that go in order for another reason are seen, and a row's own loops are still apart",
        optional=True,
    ),
    Pass(
        sections,
        after=("along",),
        why="nests that go row by row beside one another need no sections, and rows are those of memory",
        optional=True,
    ),
    Pass(
        collapse, after=("sections",), why="a nest that joins another keeps its rows", optional=True, on=BOTH
    ),
    Pass("offload", after=("collapse",), why="short rows would leave most threads idle", on=GPU),
    Pass("keep", after=("offload",), why="which threads take a row is settled by then", on=GPU),
    Pass("house", after=("keep",), why="who shares a temporary follows from who runs what", on=GPU),
    Pass(
        confine,
        after=("order", "sweep"),
        why="conditions on positions are comparisons, and what joined other nests stays with them",
        optional=True,
    ),
    Pass(
        contract,
        after=("order", "confine"),
        why="which loop runs along the result is settled by then, and which cells have products",
        optional=True,
    ),
    Pass(
        abreast, after=("contract",), why="what is a product is no longer a triangle of sums", optional=True
    ),
    Pass(pack, after=("order",), why="which loop runs over the columns is settled by then", optional=True),
    Pass(tile, after=("pack",), why="a packing copy reads across memory too", optional=True),
    Pass(
        crosswise,
        after=("tile",),
        why="what is read across memory goes in blocks by then, and short rows are still loops",
        optional=True,
    ),
    Pass(
        unroll,
        after=("tile", "crosswise"),
        why="what may become vectors along memory has become so",
        explained=explain_unroll,
    ),
    Pass(
        panels,
        after=("unroll",),
        why="what is read across memory goes in blocks by then, and products are what they will be",
        optional=True,
    ),
    Pass(
        down,
        after=("panels",),
        why="cells of which a group of steps takes turns do so already",
        optional=True,
    ),
    Pass(
        hoist,
        after=("down",),
        why="what it puts between two loops keeps them from being interchanged",
        on=BOTH,
    ),
    Pass(share, after=("hoist",), why="neighbouring loops hoist equal values", on=BOTH),
    Pass(rows, after=("share",), why="places that do not change in a loop are locals by then", optional=True),
    Pass(whereabouts, after=("share",), why="what is compared in two loops is written alike", optional=True),
    Pass(
        vectorise,
        after=("rows",),
        why="lanes follow from what is left in the body",
        explained=explain_vectorise,
    ),
    Pass(beside, after=("vectorise",), why="which loop has lanes is known by then", optional=True),
    Pass(align, after=("vectorise",), why="what is read in vectors is known by then"),
    Pass(
        trail,
        after=("vectorise",),
        why="lanes follow from what a row does for itself, and so the order of sums",
        optional=True,
    ),
    Pass(
        distant, after=("vectorise",), why="what goes in vectors anyway asks for nothing first", optional=True
    ),
    Pass(reverse, after=("vectorise",), why="which sums take their terms in vectors is known", optional=True),
    Pass(altogether, after=("vectorise",), why="both forms of a row add up by the same lanes", optional=True),
    Pass(
        straight,
        after=("altogether",),
        why="both forms of a loop add up by the same lanes, and what is looked through before is no more",
        optional=True,
    ),
    Pass(skew, after=("vectorise",), why="a table that goes in vectors needs no other way"),
    Pass(
        carry,
        after=("skew",),
        why="what goes in lockstep hands nothing on, and rows hand on to one another",
        on=BOTH,
    ),
    Pass(regroup, after=("carry",), why="what steps hand on is in locals by then", optional=True),
    Pass(settle, after=("carry",), why="what steps hand on is in locals by then"),
    Pass(
        bytewise,
        after=("settle",),
        why="what steps hand on is in locals by then, and nothing is put between them any more",
        optional=True,
    ),
    Pass(once, after=("settle",), why="what stays in a register is still stored and read back", on=BOTH),
    Pass(
        foremost,
        after=("once",),
        why="an extreme that was stored is read back from a local by then",
        optional=True,
    ),
    Pass(
        broaden,
        after=("settle", "once"),
        why="what steps hand on is in locals by then, and they end where they change nothing more",
        optional=True,
    ),
    Pass(
        braid,
        after=("broaden",),
        why="what goes in vectors does not go row by row, and what steps hand on is in locals by then",
        optional=True,
    ),
    Pass(decided, after=("straight",), why="which loop has lanes, and how many, is settled", optional=True),
    Pass(quarters, after=("decided",), why="both forms of a loop add up by the same lanes"),
    Pass(cascade, after=("quarters",), why="its trees are built per lane, in each form of a loop"),
    Pass(trapezoid, after=("cascade",), why="a few rows share vector loops over columns", optional=True),
    Pass(jam, after=("trapezoid",), why="rows are interleaved around vector loops", optional=True),
    Pass(stream, after=("jam",), why="what rows of a product share is read once already", optional=True),
    Pass(bypass, after=("stream",), why="a row is as long as it will be", optional=True),
    Pass(tails, after=("bypass",), why="a loop and its tail are no longer one nest", optional=True),
    Pass(guess, after=("tails",), why="loops with branches are not rearranged", optional=True),
    Pass(
        reciprocals, after=("guess",), why="what has branches is not rearranged as others are", optional=True
    ),
    Pass(numbers, after=("guess",), why="a loop that may run twice is not rearranged", optional=True),
    Pass(rare, after=("guess",), why="what is seldom needed is not waited for", optional=True, on=BOTH),
    Pass(
        append, after=("rare",), why="what is selected is found by what is in the loop by then", optional=True
    ),
    Pass(ragged, after=("append",), why="what is added up in order has no other way by then", optional=True),
    Pass(
        endwise, after=("append",), why="what is put side by side has no branches of its own", optional=True
    ),
    Pass(spell, after=("endwise", "ragged"), why="what is left in order stays so"),
    Pass(threads, after=("spell",), why="what a thread gets is no longer moved", explained=explain_threads),
    Pass(alternate, after=("threads",), why="rows that threads share are not taken in turns", optional=True),
    Pass(
        prefetch,
        after=("threads",),
        why="what a row is gone through for does not change any more",
        optional=True,
    ),
    Pass(
        foresee,
        after=("prefetch",),
        why="long rows ask ahead for themselves, and how many cells go at once is settled",
        optional=True,
    ),
    Pass(
        unordered,
        after=("foresee",),
        why="threads share, and ask ahead for, sums and their like",
        optional=True,
    ),
    Pass(unison, after=("unordered",), why="extremes that may go by a few steps do so"),
    Pass(convert, after=("unison",), why="which loops have lanes, and how many, is the same on all CPUs"),
    Pass(overlap, after=("convert",), why="no pass after it knows of parts", optional=True),
    Pass("widen", after=("rare",), why="what is seldom needed is not read with the rest", on=GPU),
    Pass("barriers", after=("once",), why="what stays in a register is waited for by no one", on=GPU),
    Pass(lifetimes, after=("threads",), why="no later pass may move a use of a temporary", on=BOTH),
)

OPTIONAL = frozenset(
    (
        *(step.name for step in ON_ASSIGNMENTS if step.optional),
        *(step.name for step in ON_LOOPS if step.optional),
    )
)
"""A schedule may leave these out."""
