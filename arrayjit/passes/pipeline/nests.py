"""The first passes on loops: what nests there are, what they share, in which order and blocks they go."""

from __future__ import annotations

from ...ir.loops import Kernel
from ..bodies.afterwards import afterwards
from ..bodies.beforehand import beforehand
from ..bodies.certain import certain
from ..bodies.divisors import divisors
from ..bodies.expand import expand
from ..bodies.group import group
from ..bodies.invariant import invariant
from ..bodies.narrow import narrow
from ..bodies.popcount import popcount
from ..bodies.short_circuit import short_circuit
from ..bodies.simplify import simplify
from ..bodies.squares import squares
from ..bodies.steady import steady
from ..bodies.tabulate import tabulate
from ..bodies.totals import totals
from ..bodies.unroll import explain_unroll, unroll
from ..bodies.wrap import wrap
from ..products.confine import confine
from ..products.contract import contract
from ..schedule.abreast import abreast
from ..schedule.along import along
from ..schedule.apart import apart
from ..schedule.collapse import collapse
from ..schedule.crosswise import crosswise
from ..schedule.down import down
from ..schedule.lag import lag
from ..schedule.order import order
from ..schedule.pack import pack
from ..schedule.pad import pad
from ..schedule.panels import panels
from ..schedule.relay import relay
from ..schedule.retain import retain
from ..schedule.sections import sections
from ..schedule.segments import segments
from ..schedule.sweep import sweep
from ..schedule.tile import tile
from ..structure.ascend import ascend
from ..structure.batch import batch
from ..structure.components import components
from ..structure.directly import directly
from ..structure.fuse import explain_fuse, fuse
from ..structure.interior import interior
from ..structure.invert import invert
from ..structure.inward import inward
from ..structure.margins import margins
from ..structure.mirror import mirror
from ..structure.multiples import multiples
from ..structure.parallel import parallel
from ..structure.peel import peel
from ..structure.place import place
from ..structure.portion import portion
from ..structure.prune import prune
from ..structure.rebase import rebase
from ..structure.rematerialise import rematerialise
from ..structure.rowwise import rowwise
from ..structure.snapshot import snapshot
from ..structure.swap import swap
from ..structure.triple import triple
from ..table import BOTH, GPU, Pass

__all__ = ["ON_NESTS"]

ON_NESTS: tuple[Pass[Kernel, Kernel], ...] = (
    Pass(margins, ("lower",), "lowering shows which cells are written", optional=True),
    Pass(prune, ("margins",), "what only filled an array is needed no more", on=BOTH),
    Pass(directly, ("margins", "prune"), "edges are told by nests that fill the rest", optional=True),
    Pass(batch, ("prune",), "a product nobody reads is not worth a matrix", on=BOTH),
    Pass(invert, ("batch",), "a product inside the cells is no product of matrices", on=BOTH),
    Pass(snapshot, ("invert",), "a product that has left its loop reads what it did at once", optional=True),
    Pass(
        triple,
        ("invert",),
        "a product that leaves its loop has its columns, and sums join the loop that makes their terms",
        optional=True,
    ),
    Pass(rowwise, ("invert", "triple"), "steps of cells are inside, nests still apart", optional=True),
    Pass(
        fuse,
        ("invert", "snapshot", "triple"),
        "a product that has joined other statements cannot leave its loop, nor cells that joined loops "
        "overwrite be copied before",
        explained=explain_fuse,
        optional=True,
        on=BOTH,
    ),
    Pass(mirror, ("fuse",), "what joined loops hand on needs no array anyway", optional=True),
    Pass(
        components,
        ("fuse",),
        "only joined loops make in an iteration what it uses, and rows of few cells are still cells",
        optional=True,
    ),
    Pass(place, ("fuse",), "only joined loops let a temporary shrink to a variable", on=BOTH),
    Pass(
        rematerialise,
        ("place",),
        "temporaries are as small as they get, and numbers that rows share are variables",
        optional=True,
    ),
    Pass(rebase, ("place",), "a program's own loops are as they will be"),
    Pass(peel, ("rebase",), "where cells are is told from 0 on", optional=True),
    Pass(
        parallel,
        ("place", "rebase", "peel"),
        "what an iteration makes for itself is a variable by then, and where cells are is told from 0 on",
        on=BOTH,
    ),
    Pass(
        inward,
        ("parallel",),
        "only then are a program's own loops known to be independent, and their temporaries locals",
    ),
    Pass(ascend, ("inward",), "columns of steps are known to be independent"),
    Pass(
        beforehand,
        ("ascend",),
        "what may be done in any order is not done otherwise in one of two forms",
        optional=True,
    ),
    Pass(
        group,
        ("beforehand",),
        "sums of rounds are not yet divided among lanes, and steps with positions are still one",
    ),
    Pass(
        "attend",
        ("parallel",),
        "a product that is a grid by itself hands its result to other launches",
        on=GPU,
        optional=True,
    ),
    Pass(
        "fragments",
        ("attend",),
        "which nests are independent is known by then, and small floats are still small floats",
        on=GPU,
        optional=True,
    ),
    Pass(wrap, ("place",), "what indices are divided by is a definition of many steps later", on=BOTH),
    Pass(certain, ("wrap",), "a position is tested at once by then, from both ends of its axis"),
    Pass(
        afterwards,
        ("certain",),
        "what can be raised at all is what is left, and integers that find no memory are locals",
    ),
    Pass(
        short_circuit,
        ("certain",),
        "exceptions of a second condition that cannot be raised do not keep it where it is",
        optional=True,
    ),
    Pass(popcount, ("certain",), "a step that may raise one takes more than a bit", optional=True),
    Pass(totals, ("popcount",), "loops that may raise exceptions are in order", optional=True),
    Pass(apart, ("totals",), "what is accumulated in any order keeps no iteration from going beside others"),
    Pass("scan", ("parallel",), "rows that are independent are seen to be so", on=GPU),
    Pass(segments, ("parallel",), "what is shared by threads already has no need of them"),
    Pass(multiples, ("parallel",), "what steps stride through is seen to be filled alone", optional=True),
    Pass(
        portion,
        ("parallel", "multiples"),
        "a loop whose iterations are independent is seen to be so, and all of a step's numbers are known",
        optional=True,
    ),
    Pass("atomics", ("scan",), "what still is in order then is so for what it finds in memory alone", on=GPU),
    Pass(
        tabulate,
        ("apart",),
        "what steps find out by themselves goes in vectors, which look nothing up",
        optional=True,
    ),
    Pass(
        divisors,
        ("certain",),
        "numbers that are known not to be negative are divided without a sign",
        optional=True,
    ),
    Pass(
        squares,
        ("certain",),
        "exceptions of roots that cannot be raised are gone, and absolute values are not written out",
        optional=True,
    ),
    Pass(invariant, ("squares",), "what takes long by then is still one operation", optional=True),
    Pass(relay, ("invariant",), "loops over chains are in order by then, and bodies short", optional=True),
    Pass(expand, ("wrap",), "definitions are written over variables, not over array cells", on=BOTH),
    Pass(simplify, ("expand",), "definitions leave constants to fold", on=BOTH),
    Pass(narrow, ("simplify",), "shifts and choices by known numbers are seen to be such", optional=True),
    Pass(order, ("simplify",), "only loops that run more than once need a place", optional=True),
    Pass(
        steady,
        ("simplify",),
        "what an exception depends on is in locals, and what never raises one is gone",
        optional=True,
    ),
    Pass(
        swap,
        ("order", "steady"),
        "only loops that run more than once copy again and again, and what stops two steps is told once",
        optional=True,
    ),
    Pass(
        interior,
        ("swap",),
        "a nest that changes one of two arrays no longer changes the one that it looks around in",
    ),
    Pass(pad, ("interior",), "which arrays take turns is settled, and rows are loops", optional=True),
    Pass(lag, ("pad",), "what is not copied is not waited for, and rows are those of memory", optional=True),
    Pass(
        sweep,
        ("lag",),
        "of a temporary that a nest hands on row by row two rows are left, whatever follows",
        optional=True,
    ),
    Pass(along, ("sweep",), "what follows a nest row by row is no longer in the way", optional=True),
    Pass(
        retain,
        ("along",),
        "rows that go in order for another reason are seen, and a row's own loops are still apart",
        optional=True,
    ),
    Pass(
        sections,
        ("along",),
        "nests that go row by row beside one another need no sections, and rows are those of memory",
        optional=True,
    ),
    Pass(collapse, ("sections",), "a nest that joins another keeps its rows", optional=True, on=BOTH),
    Pass("offload", ("collapse",), "short rows would leave most threads idle", on=GPU),
    Pass("keep", ("offload",), "which threads take a row is settled by then", on=GPU),
    Pass("house", ("keep",), "who shares a temporary follows from who runs what", on=GPU),
    Pass(
        confine,
        ("order", "sweep"),
        "conditions on positions are comparisons, and what joined other nests stays with them",
        optional=True,
    ),
    Pass(
        contract,
        ("order", "confine"),
        "which loop runs along the result is settled by then, and which cells have products",
        optional=True,
    ),
    Pass(abreast, ("contract",), "what is a product is no longer a triangle of sums", optional=True),
    Pass(pack, ("order",), "which loop runs over the columns is settled by then", optional=True),
    Pass(tile, ("pack",), "a packing copy reads across memory too", optional=True),
    Pass(
        crosswise,
        ("tile",),
        "what is read across memory goes in blocks by then, and short rows are still loops",
        optional=True,
    ),
    Pass(
        unroll,
        ("tile", "crosswise"),
        "what may become vectors along memory has become so",
        explained=explain_unroll,
    ),
    Pass(
        panels,
        ("unroll",),
        "what is read across memory goes in blocks by then, and products are what they will be",
        optional=True,
    ),
    Pass(down, ("panels",), "cells of which a group of steps takes turns do so already", optional=True),
)
