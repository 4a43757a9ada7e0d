"""Words that texts of ours have beyond those of LLVM IR, and what they stand for.

<NAME>                            a number, or an instruction, that has a name
%v = field ptr %row 8             loads what is so many bytes from the start of a row
%v = item ptr %list %i            loads an item of an array
put i64 %v in field %row 8        stores there
put ptr %v in item %list %i
unless %holds goto no             goes on in a block of its own, or elsewhere; so does `if`
each %i below %n else done        the lines up to `again` for each number below `n`, then elsewhere; also
each %i below %n over %row in %rows by 40 else done           with a row of so many bytes for each
"""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["spelled_out"]

_LABEL = re.compile(r"(\w+):")
_LOAD = re.compile(r"  (%\w+) = (field|item) (\w+) (%\w+) (%?\w+)")
_STORE = re.compile(r"  put (\w+) (\S+) in (field|item) (%\w+) (%?\w+)")
_BRANCH = re.compile(r"  (if|unless) (%\w+) goto (\w+)")
_EACH = re.compile(r"  each (%\w+) below (%\w+)(?: over (%\w+) in (%\w+) by (\d+))? else (\w+)")


def spelled_out(text: str, named: Mapping[str, int | str]) -> str:
    """The text in LLVM IR alone."""
    text = re.sub(r"<([A-Z_]+)>", lambda found: str(named[found[1]]), text)
    lines: list[str] = []
    loops: list[tuple[int, str, re.Match[str]]] = []
    block = ""
    for number, line in enumerate(text.split("\n")):
        if found := _LABEL.fullmatch(line):
            block = found[1]
            lines.append(line)
        elif found := _LOAD.fullmatch(line):
            value, how, kind, base, index = found.groups()
            lines.append(_place(number, how, kind, base, index))
            lines.append(f"  {value} = load {kind}, ptr %at{number}")
        elif found := _STORE.fullmatch(line):
            kind, value, how, base, index = found.groups()
            lines.append(_place(number, how, kind, base, index))
            lines.append(f"  store {kind} {value}, ptr %at{number}")
        elif found := _BRANCH.fullmatch(line):
            how, condition, elsewhere = found.groups()
            block = f"on{number}"
            yes, no = (elsewhere, block) if how == "if" else (block, elsewhere)
            lines += [f"  br i1 {condition}, label %{yes}, label %{no}", f"{block}:"]
        elif found := _EACH.fullmatch(line):
            i, count, *_, done = found.groups()
            loops.append((len(lines), block, found))
            head, block = f"each{number}", f"on{number}"
            lines += [f"  br label %{head}", f"{head}:", "", f"  {i}.end = icmp eq i64 {i}, {count}"]
            lines += [f"  br i1 {i}.end, label %{done}, label %{block}", f"{block}:"]
        elif line == "  again":
            place, before, found = loops.pop()
            lines += _again(lines, place, before, block, found)
        else:
            lines.append(line)
    return "\n".join(lines)


def _place(number: int, how: str, kind: str, base: str, index: str) -> str:
    return f"  %at{number} = getelementptr {'i8' if how == 'field' else kind}, ptr {base}, i64 {index}"


def _again(lines: list[str], place: int, before: str, block: str, each: re.Match[str]) -> list[str]:
    """The end of a loop, whose start gets what its numbers are from there on."""
    i, _, row, rows, nbytes, _ = each.groups()
    phis = [f"  {i} = phi i64 [ 0, %{before} ], [ {i}.next, %{block} ]"]
    ends = [f"  {i}.next = add i64 {i}, 1"]
    if row:
        phis.append(f"  {row} = phi ptr [ {rows}, %{before} ], [ {row}.next, %{block} ]")
        ends.append(f"  {row}.next = getelementptr i8, ptr {row}, i64 {nbytes}")
    lines[place + 2] = "\n".join(phis)
    return [*ends, f"  br label %{lines[place + 1][:-1]}"]
