"""The passes on assignments: what a program computes, before there are loops."""

from __future__ import annotations

from ...ir.assign import Computation
from ..structure.again import again
from ..structure.chain import chain
from ..structure.check import check
from ..structure.early import early
from ..structure.forward import forward
from ..structure.inline import explain_inline, inline
from ..structure.log import log
from ..structure.moved import moved
from ..structure.overwrite import overwrite
from ..structure.pieces import pieces
from ..structure.reals import reals
from ..structure.reroll import reroll
from ..structure.rounds import rounds
from ..structure.same import same
from ..structure.through import through
from ..structure.within import within
from ..table import BOTH, Pass

__all__ = ["ON_ASSIGNMENTS"]

ON_ASSIGNMENTS: tuple[Pass[Computation, Computation], ...] = (
    Pass(reals, why="no other pass knows complex numbers", on=BOTH),
    Pass(log, ("reals",), "values are told in the order of before, and nothing has moved yet", on=BOTH),
    Pass(moved, ("reals", "log"), "what is told are bools", optional=True),
    Pass(rounds, ("reals", "log"), "what is there once goes through the passes once", optional=True, on=BOTH),
    Pass(
        reroll,
        ("rounds",),
        "what is done to a round that stands by itself need not be done to the loop",
        on=BOTH,
    ),
    Pass(same, ("reroll",), "a round that joins its loop binds its numbers there", on=BOTH),
    Pass(again, ("same",), "equal numbers have one name by then", on=BOTH),
    Pass(
        forward,
        ("again",),
        "what was done before is a copy, and nothing is looked at yet",
        optional=True,
        on=BOTH,
    ),
    Pass(
        overwrite,
        ("forward",),
        "copies that are left over are needed, or parts of them",
        optional=True,
        on=BOTH,
    ),
    Pass(check, ("forward",), "what is recorded several times is looked at once", on=BOTH),
    Pass(
        within,
        ("check",),
        "what looks for mistakes has been written out, and nothing is inlined yet",
        optional=True,
        on=BOTH,
    ),
    Pass(
        through, ("within",), "positions that lie within are those that arrays hold", optional=True, on=BOTH
    ),
    Pass(early, ("within", "through"), "what need not be looked at moves nothing"),
    Pass(
        inline,
        ("reroll", "same"),
        "two records of one statement no longer look alike once other readers decided what each inlines",
        explained=explain_inline,
        optional=True,
        on=BOTH,
    ),
    Pass(
        pieces,
        ("inline",),
        "an array that is computed where it is read is put together by none",
        optional=True,
        on=BOTH,
    ),
    Pass(
        chain,
        ("pieces",),
        "what is computed where it is read, or piece by piece, is chosen among values by themselves",
        optional=True,
    ),
)
