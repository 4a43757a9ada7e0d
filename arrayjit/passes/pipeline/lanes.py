"""The last passes on loops: which go in vectors and by threads, and what a step of their bodies does."""

from __future__ import annotations

from ...ir.loops import Kernel
from ..bodies.altogether import altogether
from ..bodies.bytewise import bytewise
from ..bodies.carry import carry
from ..bodies.convert import convert
from ..bodies.endwise import endwise
from ..bodies.foremost import foremost
from ..bodies.guess import guess
from ..bodies.hoist import hoist
from ..bodies.if_conversion import if_conversion
from ..bodies.numbers import numbers
from ..bodies.once import once
from ..bodies.rare import rare
from ..bodies.reciprocals import reciprocals
from ..bodies.regroup import regroup
from ..bodies.rows import rows
from ..bodies.settle import settle
from ..bodies.share import share
from ..bodies.spell import spell
from ..bodies.straight import straight
from ..bodies.unchosen import unchosen
from ..bodies.unordered import unordered
from ..bodies.whereabouts import whereabouts
from ..schedule.align import align
from ..schedule.alternate import alternate
from ..schedule.append import append
from ..schedule.beside import beside
from ..schedule.braid import braid
from ..schedule.broaden import broaden
from ..schedule.bypass import bypass
from ..schedule.cascade import cascade
from ..schedule.decided import decided
from ..schedule.distant import distant
from ..schedule.foresee import foresee
from ..schedule.jam import jam
from ..schedule.lengthwise import lengthwise
from ..schedule.overlap import overlap
from ..schedule.prefetch import prefetch
from ..schedule.quarters import quarters
from ..schedule.ragged import ragged
from ..schedule.reverse import reverse
from ..schedule.ring import ring
from ..schedule.skew import skew
from ..schedule.stream import stream
from ..schedule.tails import tails
from ..schedule.threads import explain_threads, threads
from ..schedule.trail import trail
from ..schedule.trapezoid import trapezoid
from ..schedule.unison import unison
from ..schedule.vectorise import explain_vectorise, vectorise
from ..structure.lifetimes import lifetimes
from ..structure.upright import upright
from ..table import BOTH, GPU, Pass

__all__ = ["ON_LANES"]

ON_LANES: tuple[Pass[Kernel, Kernel], ...] = (
    Pass(
        if_conversion,
        ("down",),
        "loops are as vectors find them, and nothing has left a branch yet",
        optional=True,
    ),
    Pass(hoist, ("down",), "what it puts between two loops keeps them from being interchanged", on=BOTH),
    Pass(share, ("hoist",), "neighbouring loops hoist equal values", on=BOTH),
    Pass(rows, ("share",), "places that do not change in a loop are locals by then", optional=True),
    Pass(whereabouts, ("share",), "what is compared in two loops is written alike", optional=True),
    Pass(
        lengthwise,
        ("rows",),
        "loops are as vectors find them, and what is no temporary any more is known",
        optional=True,
    ),
    Pass(
        vectorise, ("lengthwise",), "lanes follow from what is left in the body", explained=explain_vectorise
    ),
    Pass(upright, ("vectorise",), "which loop has lanes is known by then", optional=True),
    Pass(beside, ("upright",), "which loop has lanes is known by then", optional=True),
    Pass(align, ("vectorise",), "what is read in vectors is known by then"),
    Pass(
        trail,
        ("vectorise",),
        "lanes follow from what a row does for itself, and so the order of sums",
        optional=True,
    ),
    Pass(distant, ("vectorise",), "what goes in vectors anyway asks for nothing first", optional=True),
    Pass(reverse, ("vectorise",), "which sums take their terms in vectors is known", optional=True),
    Pass(altogether, ("vectorise",), "both forms of a row add up by the same lanes", optional=True),
    Pass(
        straight,
        ("altogether",),
        "both forms of a loop add up by the same lanes, and what is looked through before is no more",
        optional=True,
    ),
    Pass(skew, ("vectorise",), "a table that goes in vectors needs no other way"),
    Pass(
        carry, ("skew",), "what goes in lockstep hands nothing on, and rows hand on to one another", on=BOTH
    ),
    Pass(regroup, ("carry",), "what steps hand on is in locals by then", optional=True),
    Pass(settle, ("carry",), "what steps hand on is in locals by then"),
    Pass(
        bytewise,
        ("settle",),
        "what steps hand on is in locals by then, and nothing is put between them any more",
        optional=True,
    ),
    Pass(once, ("settle",), "what stays in a register is still stored and read back", on=BOTH),
    Pass(foremost, ("once",), "an extreme that was stored is read back from a local by then", optional=True),
    Pass(
        broaden,
        ("settle", "once"),
        "what steps hand on is in locals by then, and they end where they change nothing more",
        optional=True,
    ),
    Pass(
        braid,
        ("broaden",),
        "what goes in vectors does not go row by row, and what steps hand on is in locals by then",
        optional=True,
    ),
    Pass(decided, ("straight",), "which loop has lanes, and how many, is settled", optional=True),
    Pass(quarters, ("decided",), "both forms of a loop add up by the same lanes"),
    Pass(cascade, ("quarters",), "its trees are built per lane, in each form of a loop"),
    Pass(trapezoid, ("cascade",), "a few rows share vector loops over columns", optional=True),
    Pass(jam, ("trapezoid",), "rows are interleaved around vector loops", optional=True),
    Pass(stream, ("jam",), "what rows of a product share is read once already", optional=True),
    Pass(bypass, ("stream",), "a row is as long as it will be", optional=True),
    Pass(tails, ("bypass",), "a loop and its tail are no longer one nest", optional=True),
    Pass(guess, ("tails",), "loops with branches are not rearranged", optional=True),
    Pass(unchosen, ("tails",), "loops in branches are not rearranged", optional=True),
    Pass(reciprocals, ("guess",), "what has branches is not rearranged as others are", optional=True),
    Pass(numbers, ("guess",), "a loop that may run twice is not rearranged", optional=True),
    Pass(rare, ("guess",), "what is seldom needed is not waited for", optional=True, on=BOTH),
    Pass(append, ("rare",), "what is selected is found by what is in the loop by then", optional=True),
    Pass(ragged, ("append",), "what is added up in order has no other way by then", optional=True),
    Pass(endwise, ("append",), "what is put side by side has no branches of its own", optional=True),
    Pass(spell, ("endwise", "ragged"), "what is left in order stays so"),
    Pass(threads, ("spell",), "what a thread gets is no longer moved", explained=explain_threads),
    Pass(alternate, ("threads",), "rows that threads share go back in each share", optional=True),
    Pass(prefetch, ("threads",), "what a row is gone through for does not change any more", optional=True),
    Pass(
        foresee,
        ("prefetch",),
        "long rows ask ahead for themselves, and how many cells go at once is settled",
        optional=True,
    ),
    Pass(
        ring,
        ("foresee",),
        "who touches which row, and asks for it ahead, does not change any more",
        optional=True,
    ),
    Pass(unordered, ("ring",), "threads share, and ask ahead for, sums and their like", optional=True),
    Pass(unison, ("unordered",), "extremes that may go by a few steps do so"),
    Pass(convert, ("unison",), "which loops have lanes, and how many, is the same on all CPUs"),
    Pass(overlap, ("convert",), "no pass after it knows of parts", optional=True),
    Pass("widen", ("rare",), "what is seldom needed is not read with the rest", on=GPU),
    Pass("barriers", ("once",), "what stays in a register is waited for by no one", on=GPU),
    Pass(lifetimes, ("threads",), "no later pass may move a use of a temporary", on=BOTH),
)
