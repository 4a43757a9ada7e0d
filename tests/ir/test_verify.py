"""Each rule of the verifier is broken once, and its message names what is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest
from corpus import computation, kernel
from work import calls_in

from arrayjit.errors import InvalidProgram
from arrayjit.ir.assign import ArrayParam, Assign, Computation, IndexParam
from arrayjit.ir.dtype import F32, F64, I32, I64
from arrayjit.ir.expr import Apply, Const, Load, Local, Variable
from arrayjit.ir.index import Affine, Symbol, SymbolKind
from arrayjit.ir.loops import Bind, Define, Fill, For, Kernel, LoopKind, Store, Update
from arrayjit.ir.ops import op
from arrayjit.ir.tensor import Tensor, Wish
from arrayjit.ir.verify import verify_computation, verify_kernel

HEAD = "def f(x: read[f32, 8], y: write[f32, 8], m: read[bool, 8], k: read[i64, 8]):\n"
KERNEL_HEAD = HEAD.replace("):", ") -> kernel:")
OWN = "t: temporary[f32, 8, 2] = place('own', 0, 'its number')\n"
TILES = (
    "s: temporary[f32, 32, 1, 2, 2, 2] = place('own', 0, 'fragments')\n"
    "a: temporary[f16, 2, 16, 16] = place('shared', 0, 'slices')\n"
    "b: temporary[f16, 2, 16, 16] = place('shared', 0, 'slices')\n"
    "c: temporary[f16, 2, 16, 16] = place('arena', 0, 'a matrix')\n"
    "o: temporary[f16, 32, 1, 2, 2, 2] = place('own', 0, 'a factor')\n"
    "p: temporary[f16, 32, 1, 4, 2, 2] = place('own', 0, 'a factor')\n"
)
PRODUCT = "s, a, b, 0, (False, False), (1, 1)"
ZERO = Affine.of(0)


def loop(kind: str, *body: str) -> str:
    return f"for i in {kind}:\n" + "\n".join(f"    {line}" for line in body)


BROKEN = {
    "a symbol outside its loop": (
        loop("parallel(0, 8)", "y[i] = x[i]") + "\ny[i] = x[0]",
        "symbol i is used outside its loop",
    ),
    "a bound outside its loop": (
        loop("parallel(0, 8)", "y[i] = x[i]") + "\nfor j in sequential(0, i):\n    y[j] = x[j]",
        "symbol i is used outside its loop",
    ),
    "an index as a number outside its loop": (
        loop("parallel(0, 8)", "y[i] = x[i]") + "\nt: i64 = index(i)",
        "symbol i is used outside its loop",
    ),
    "too few positions": ("y[()] = x[0]", "y: f32[8] has 1 axes and is indexed with 0"),
    "too many positions": ("y[0] = x[0, 1]", "x: f32[8] has 1 axes and is indexed with 2"),
    "too many computed positions": ("y[0] = x.at(k[0], k[1])", "x: f32[8] is gathered with 2 indices"),
    "a computed position that is no int64": ("y[0] = x.at(x[0])", "an index of x: f32[8] is f32, i64 is"),
    "below the first cell": (loop("parallel(0, 8)", "y[i] = x[i - 1]"), "x: f32[8] is indexed from -1 to 6"),
    "above the last cell": (loop("parallel(0, 8)", "y[i + 1] = x[i]"), "y: f32[8] is indexed from 1 to 8"),
    "above the last cell, downwards": (
        loop("sequential(8, 0, -3)", "y[i] = x[0]"),
        "y: f32[8] is indexed from 2 to 8",
    ),
    "a stored value of another dtype": ("y[0] = f64(1.0)", "the value stored in y: f32[8] is f64, f32 is"),
    "an op that combines no values": ("y[0] = reduce(divide, y[0], x[0])", "divide cannot accumulate"),
    "a store that combines in lanes": (
        loop("vector(0, 8, lanes=4)", "y[i] = reduce(add, y[i], x[i])"),
        "y: f32[8] is accumulated into inside a vector loop",
    ),
    "a filling value of another dtype": ("fill(y, i32(1))", "the value that fills y: f32[8] is i32, f32 is"),
    "a variable of another dtype": ("t: f64 = x[0]", "the value of variable t is f32, f64 is needed"),
    "an updating value of another dtype": (
        "t: f32 = x[0]\nt = f64(1.0)",
        "the value of variable t is f64, f32 is needed",
    ),
    "a condition that is no bool": ("if x[0]:\n    y[0] = x[0]", "a condition is f32, bool is needed"),
    "a raising condition that is no bool": ("raise_(k[0], 'ValueError', '')", "a condition is i64, bool is"),
    "too few arguments": ("y[0] = add[f32](x[0])", "add takes 2 arguments, not 1"),
    "arguments of two dtypes": (
        "y[0] = add[f32](x[0], f64(1.0))",
        "add is given f32, f64, and computes in f64, f64",
    ),
    "a result of another dtype": (
        "y[0] = less[f32](x[0], x[1])",
        "the result of less of f32, f32 is f32, bool is needed",
    ),
    "dtypes that an op does not take": ("t: f32 = bitwise_and[f32](x[0], x[1])", "bitwise_and of f32, f32"),
    "an op that cannot accumulate": (
        "t: f32 = x[0]\nt = reduce(subtract, t, x[1])",
        "subtract cannot accumulate: it has no identity",
    ),
    "a contraction without a product": (
        "t: f32 = x[0]\nt = reduce(add, t, x[1], fused=True)",
        "contract needs a float multiply accumulated by add",
    ),
    "a contraction by another op": (
        "t: f32 = x[0]\nt = reduce(maximum, t, multiply[f32](x[1], x[1]), fused=True)",
        "contract needs a float multiply accumulated by add",
    ),
    "a parameter that is only read": (
        "fill(x, f32(1.0))",
        "x: f32[8] is a parameter that may only be read, and is written",
    ),
    "a loop that stands still": (loop("sequential(0, 8, 0)", "y[i] = x[i]"), "loop i has step 0"),
    "a variable before its definition": (
        loop("sequential(0, 8)", "t: f32 = x[i]", "y[i] = t") + "\ny[0] = t",
        "variable t is used where it is not defined",
    ),
    "an update before the definition": (
        loop("sequential(0, 8)", "t: f32 = x[i]", "y[i] = t") + "\nt = x[0]",
        "variable t is updated where it is not defined",
    ),
    "a value carried by a parallel loop": (
        "t: f32 = x[0]\n" + loop("parallel(0, 8)", "t = x[i]"),
        "variable t is carried by a loop whose iterations are independent",
    ),
    "a value carried by a vector loop": (
        "t: f32 = x[0]\n" + loop("vector(0, 8, lanes=4)", "t = x[i]"),
        "variable t is carried by a loop whose iterations are independent",
    ),
    "a sum in lockstep that is looked at": (
        "t: f32 = x[0]\n" + loop("lockstep(0, 8, lanes=4)", "t = reduce(add, t, x[i])", "y[i] = t"),
        "variable t is accumulated and read in one vector loop",
    ),
    "a way out of no loop": ("stay(m[0])", "a Stay stands in no loop, or not directly in one"),
    "a way out that stands in a branch": (
        loop("sequential(0, 8)", "if m[i]:", "    stay(m[0])"),
        "a Stay stands in no loop, or not directly in one",
    ),
    "a way out by a number": (loop("sequential(0, 8)", "stay(x[i])"), "a condition is f32, bool is needed"),
    "an exception inside a vector loop": (
        loop("vector(0, 8, lanes=4)", "raise_(m[i], 'ValueError', '')"),
        "a Raise stands inside a vector loop",
    ),
    "a grid in a grid": (
        loop("grid(0, 8)", "for j in grid(0, 8):", "    y[j] = f32(1.0)"),
        "grid loop j does not stand in sequential loops only",
    ),
    "a grid in a branch": (
        "if m[0]:\n    for l in grid(0, 8):\n        y[l] = f32(1.0)",
        "grid loop l does not stand in sequential loops only",
    ),
    "a block's loop outside of grids": (
        loop("block(0, 8, lanes=32)", "y[i] = f32(1.0)"),
        "block loop i does not stand in a grid loop",
    ),
    "a block's loop in another": (
        loop(
            "grid(0, 1)",
            "for j in block(0, 8, lanes=32):",
            "    for l in block(0, 8, lanes=32):",
            "        y[l] = f32(1.0)",
        ),
        "block loop l does not stand in a grid loop",
    ),
    "blocks of two sizes": (
        loop(
            "grid(0, 1)",
            "for j in block(0, 8, lanes=32):",
            "    y[j] = f32(1.0)",
            "for l in block(0, 8, lanes=64):",
            "    y[l] = f32(1.0)",
        ),
        "block loops in grid loop i have several sizes",
    ),
    "a grid of threads and of blocks": (
        loop("grid(0, 8, lanes=32)", "for j in block(0, 8, lanes=32):", "    y[j] = f32(1.0)"),
        "grid loop i has 32 lanes and block loops",
    ),
    "a store by all threads": (
        loop("grid(0, 1)", "for j in block(0, 8, lanes=32):", "    y[j] = f32(1.0)", "y[i] = f32(2.0)"),
        "y: f32[8] is stored by all threads of a block",
    ),
    "a barrier for some iterations": (
        loop("grid(0, 1)", "for j in block(0, 8, lanes=32):", "    barrier()", "    y[j] = f32(1.0)"),
        "a Barrier stands inside a block loop",
    ),
    "a barrier inside a vector loop": (
        loop("vector(0, 8, lanes=4)", "barrier()"),
        "a Barrier stands inside a vector loop",
    ),
    "a tile that is read by its cells": (
        TILES + loop("grid(0, 1)", f"multiply_matrices({PRODUCT})", "t: f16 = a[0, 0, 0]"),
        "a: f16[2, 16, 16] is for tensor cores, and reached by its cells",
    ),
    "matrices multiplied by each thread": (
        TILES + loop("grid(0, 1)", "for j in block(0, 32, lanes=32):", f"    multiply_matrices({PRODUCT})"),
        "a Multiply stands where it is not for its threads to run it",
    ),
    "matrices multiplied by other threads than a block has": (
        TILES
        + loop(
            "grid(0, 1)", f"multiply_matrices({PRODUCT})", "for j in block(0, 8, lanes=8):", "    y[j] = x[j]"
        ),
        "block loops in grid loop i have several sizes",
    ),
    "a stage too far": (
        TILES + loop("grid(0, 1)", "multiply_matrices(s, a, b, 2, (False, False), (1, 1))"),
        "a: f16[2, 16, 16] is indexed from 2 to 2",
    ),
    "sums that do not fit the warps": (
        TILES + loop("grid(0, 1)", "multiply_matrices(s, a, b, 0, (False, False), (1, 2))"),
        "a: f16[2, 16, 16] and b: f16[2, 16, 16] are no whole tiles of 1 by 2 warps",
    ),
    "sums of another layout": (
        TILES + loop("grid(0, 1)", "multiply_matrices(a, s, b, 0, (False, False), (1, 1))"),
        "s: f32[32, 1, 2, 2, 2] and b: f16[2, 16, 16] are added to a: f16[2, 16, 16]",
    ),
    "a factor that threads own and are to turn": (
        TILES + loop("grid(0, 1)", "multiply_matrices(s, o, b, 0, (True, False), (1, 1))"),
        "o: f16[32, 1, 2, 2, 2] does not lie as sums do",
    ),
    "a factor that threads own, of another depth": (
        TILES + loop("grid(0, 1)", "multiply_matrices(s, p, b, 0, (False, False), (1, 1))"),
        "p: f16[32, 1, 4, 2, 2] does not lie as sums do",
    ),
    "a factor that threads own, in memory that they share": (
        TILES.replace("place('own', 0, 'a factor')", "place('shared', 0, 'a factor')")
        + loop("grid(0, 1)", "multiply_matrices(s, o, b, 0, (False, False), (1, 1))"),
        "o: f16[32, 1, 2, 2, 2] is not own",
    ),
    "copies into what tensor cores do not read": (
        TILES
        + loop(
            "grid(0, 1)", "for j in block(0, 2, lanes=32):", "    copy(c[0, 0, 8*j], a[0, 0, 0], 8, i64(8))"
        ),
        "c: f16[2, 16, 16] is copied into, and no tensor core reads it",
    ),
    "copies of another dtype": (
        TILES
        + loop(
            "grid(0, 1)",
            "for j in block(0, 2, lanes=32):",
            "    copy(a[0, 0, 8*j], x[0], 8, i64(8))",
            f"multiply_matrices({PRODUCT})",
        ),
        "x: f32[8] is copied into a: f16[2, 16, 16]",
    ),
    "copies beyond a row": (
        TILES
        + loop(
            "grid(0, 1)",
            "for j in block(0, 3, lanes=32):",
            "    copy(a[0, 0, 8*j], c[0, 0, 0], 8, i64(8))",
            f"multiply_matrices({PRODUCT})",
        ),
        "a: f16[2, 16, 16] is indexed from 0 to 16",
    ),
    "copies by all threads": (
        TILES
        + loop("grid(0, 1)", "copy(a[0, 0, 0], c[0, 0, 0], 8, i64(8))", f"multiply_matrices({PRODUCT})"),
        "a Copy stands where it is not for its threads to run it",
    ),
    "what threads own, all together": (
        OWN + loop("grid(0, 1)", "for j in block(0, 8, lanes=8):", "    y[j] = t[0, 0]"),
        "t: f32[8, 2] is not reached by the thread's number",
    ),
    "what threads own, in another thread": (
        OWN + loop("grid(0, 1)", "for j in block(0, 8, lanes=8):", "    t[-j + 7, 0] = x[j]"),
        "t: f32[8, 2] is not reached by the thread's number",
    ),
    "what threads own, by turns": (
        OWN + loop("grid(0, 1)", "for j in block(0, 8, lanes=4):", "    t[j, 0] = x[j]"),
        "t: f32[8, 2] is not reached by the thread's number",
    ),
    "what threads own, outside of their loops": (
        OWN + loop("grid(0, 8, lanes=8)", "t[i, 0] = x[i]"),
        "t: f32[8, 2] is not reached by the thread's number",
    ),
    "what threads own, by a computed number": (
        OWN + loop("grid(0, 1)", "for j in block(0, 8, lanes=8):", "    y[j] = t.at(k[j], i64(0))"),
        "t: f32[8, 2] is gathered, and is the threads' own",
    ),
    "a clock inside a vector loop": (
        loop("vector(0, 8, lanes=4)", "lap(k, 0)"),
        "a Lap stands inside a vector loop",
    ),
    "a clock that writes floats": ("lap(x, 0)", "a Lap cannot write to x: f32[8]"),
    "a place to come that is none": ("prefetch(x[0, 0])", "x: f32[8] has 1 axes and is indexed with 2"),
    "a place to come by an unknown symbol": (
        loop("sequential(0, 8)", "y[i] = x[i]") + "\nprefetch(x[i])",
        "symbol i is used outside its loop",
    ),
    "a cache that is none": ("prefetch(x[0], 3)", "x: f32[8] cannot be brought into cache 3"),
    "three lanes": (
        loop("vector(0, 8, lanes=3)", "y[i] = x[i]"),
        "loop i has 3 lanes, which is no power of two",
    ),
    "lanes of what is in order": (
        loop("sequential(0, 8, lanes=4)", "y[i] = x[i]"),
        "loop i has lanes, and does not append",
    ),
    "no lanes": (loop("vector(0, 8, lanes=0)", "y[i] = x[i]"), "loop i has 0 lanes"),
    "a vector loop inside another": (
        loop("vector(0, 8, lanes=4)", "for j in vector(0, 8, lanes=4):", "    y[i] = x[j]"),
        "vector loop j stands inside another",
    ),
    "a vector loop that stores to one cell": (
        loop("vector(0, 8, lanes=4)", "y[0] = x[i]"),
        "vector loop i stores to the same cell of y: f32[8] again",
    ),
    "two ways to accumulate in a vector loop": (
        "t: f32 = x[0]\n"
        + loop("vector(0, 8, lanes=4)", "t = reduce(add, t, x[i])", "t = reduce(maximum, t, x[i])"),
        "variable t accumulates by add and by maximum",
    ),
    "a partial sum that is read": (
        "t: f32 = x[0]\n" + loop("vector(0, 8, lanes=4)", "t = reduce(add, t, x[i])", "y[i] = t"),
        "variable t is accumulated and read in one vector loop",
    ),
    "a temporary without a place": (
        "t: temporary[f32, 8] = place('stack', 0, 'small')\nu: temporary[f32, 8]\n"
        "fill(t, f32(0.0))\nfill(u, f32(0.0))",
        "temporary u: f32[8] has no place",
    ),
    "a flat form of another dtype": (
        "t: temporary[i32, 8, flat(x)]\nz: i32 = t[0]",
        "t: i32[8] is no flat form of x: f32[8]",
    ),
    "a bound number outside its body": (
        "if m[0]:\n    n: index[0, 8] = k[0]\ny[n] = x[0]",
        "symbol n is used outside its loop",
    ),
    "a bound number that is no int64": (
        "n: index[0, 8] = x[0]",
        "the number bound to n is f32, i64 is needed",
    ),
    "a condition to go on that is no bool": (
        "while True:\n    t: i64 = k[0]\n    if not t:\n        break",
        "a condition is i64, bool is needed",
    ),
    "a variable of a test after its loop": (
        "while True:\n    t: f32 = x[0]\n    if not m[0]:\n        break\ny[0] = t",
        "variable t is used where it is not defined",
    ),
    "a variable of a body in its test": (
        "while True:\n    t: f32 = x[0]\n    if not m[0]:\n        break\n    u: f32 = t\ny[0] = u",
        "variable u is used where it is not defined",
    ),
    "a value carried in a parallel loop by one that goes on": (
        "t: f32 = x[0]\n" + loop("parallel(0, 8)", "while m[i]:", "    t = x[i]"),
        "variable t is carried by a loop whose iterations are independent",
    ),
    "a single cell past the caches": (
        "y[0] = bypass(x[0])",
        "y: f32[8] is stored past the caches by single cells",
    ),
    "past the caches in a loop that lanes run as often as only the run shows": (
        "for i in vector(0, 8, lanes=8):\n    for j in sequential(0, i):\n        y[i] = bypass(x[i])",
        "loop j in lanes stores past the caches",
    ),
    "a loop in order that is aligned": (
        "for i in sequential(0, 8, aligned=32):\n    y[i] = x[i]",
        "loop i has nothing to be aligned by",
    ),
    "a loop in order that is cut": (
        "for i in sequential(0, 8, cuts=(1,)):\n    t: f32 = x[i]\n    y[i] = t",
        "loop i is cut where vectors cannot be done beside one another",
    ),
    "a cut behind a store": (
        "for i in vector(0, 8, lanes=4, cuts=(1,)):\n    y[i] = x[i]\n    y[i] = x[i]",
        "loop i is cut where vectors cannot be done beside one another",
    ),
    "a cut behind all": (
        "for i in vector(0, 8, lanes=4, cuts=(2,)):\n    t: f32 = x[i]\n    y[i] = t",
        "loop i is cut where vectors cannot be done beside one another",
    ),
    "an aligned loop without neighbours": (
        "for i in vector(0, 4, lanes=4, aligned=32):\n    y[2*i] = x[0]",
        "loop i has nothing to be aligned by",
    ),
    "a flat form of two axes": (
        "t: temporary[f32, 2, 4, flat(x)]\ny[0] = t[0, 0]",
        "t: f32[2, 4] is no flat form of x: f32[8]",
    ),
}


@pytest.mark.parametrize(("body", "message"), BROKEN.values(), ids=BROKEN)
def test_a_kernel_that_breaks_a_rule(body: str, message: str) -> None:
    program = kernel(KERNEL_HEAD + "\n".join(f"    {line}" for line in body.splitlines()))
    with pytest.raises(InvalidProgram) as caught:
        verify_kernel(program)
    assert f"f: {message}" in str(caught.value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("for i, j in each(8, 2):\n        y[i] = x[i]", "loop j assigns the same cells of y: f32[8] again"),
        (
            "for i in each(8):\n        y[i] = f64(1.0)",
            "the value assigned to y: f32[8] is f64, f32 is needed",
        ),
        ("for i in each(9):\n        y[i] = f32(1.0)", "y: f32[8] is indexed from 0 to 8"),
        ("for i in each(8):\n        x[i] = f32(1.0)", "x: f32[8] is a parameter that may only be read"),
        (
            "for i in each(8):\n        y[0] = reduce(add, x[i], i64(0))",
            "the initial value of y: f32[8] is i64",
        ),
        ("for i in each(8):\n        y[0] = reduce(divide, x[i])", "divide cannot accumulate"),
        (
            "for i in each(8):\n        check(k[i], 'ValueError', '')",
            "a checked condition is i64, bool is needed",
        ),
        ("for t in range(0, 8, 0):\n        y[t] = x[t]", "loop t has step 0"),
        ("n: index[0, 8] = x[0]", "the number bound to n is f32, i64 is needed"),
        (
            "if m[0]:\n        n: index[0, 8] = k[0]\n    y[n] = x[0]",
            "symbol n is used outside its loop",
        ),
        ("if x[0]:\n        y[0] = x[0]", "a condition is f32, bool is needed"),
        ("while k[0]:\n        y[0] = x[0]", "a condition is i64, bool is needed"),
        (
            "while m[0]:\n        n: index[0, 8] = k[0]\n    y[n] = x[0]",
            "symbol n is used outside its loop",
        ),
    ],
)
def test_a_computation_that_breaks_a_rule(body: str, message: str) -> None:
    with pytest.raises(InvalidProgram) as caught:
        verify_computation(computation(HEAD + "    " + body))
    assert f"f: {message}" in str(caught.value)


X, Y = Tensor.of("x", (8,), F32), Tensor.of("y", (8,), F32)
PARAMS = (ArrayParam(X, "read"), ArrayParam(Y, "write"))


def refusal(program: Kernel | Computation) -> str:
    with pytest.raises(InvalidProgram) as caught:
        (verify_kernel if isinstance(program, Kernel) else verify_computation)(program)
    return str(caught.value)


def test_a_symbol_is_introduced_once_in_a_nest() -> None:
    i = Symbol("i")
    inner = For(i, ZERO, Affine.of(8), (Store(Y, (Affine.of(i),), Const(1.0, F32)),))
    outer = For(i, ZERO, Affine.of(8), (inner,))
    assert "symbol i is introduced by two nested loops" in refusal(Kernel("f", PARAMS, (outer,)))


def test_a_bound_number_is_introduced_once_in_a_nest() -> None:
    i = Symbol("i")
    inner = (Bind(i, Const(3, I64)), Store(Y, (Affine.of(i),), Const(1.0, F32)))
    outer = For(i, ZERO, Affine.of(8), inner)
    assert "symbol i is bound where it is in scope already" in refusal(Kernel("f", PARAMS, (outer,)))


def test_a_symbol_serves_two_loops_one_after_the_other() -> None:
    i = Symbol("i")
    once = For(i, ZERO, Affine.of(8), (Store(Y, (Affine.of(i),), Const(1.0, F32)),))
    verify_kernel(Kernel("f", PARAMS, (once, once)))


def test_a_variable_is_defined_once_in_a_nest() -> None:
    variable = Variable("t", F32)
    define = Define(variable, Const(1.0, F32))
    assert "variable t is defined twice" in refusal(Kernel("f", PARAMS, (define, define)))


def test_a_tensor_is_a_parameter_once() -> None:
    assert "x: f32[8] is a parameter twice" in refusal(Kernel("f", (PARAMS[0], PARAMS[0]), ()))


MERGED = Tensor.of("merged", (8,), F32)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ((ArrayParam(X, "read", source=Y),), "x: f32[8] is no merge buffer, and has a source or a slot"),
        ((ArrayParam(X, "update", slot=1),), "x: f32[8] is no merge buffer, and has a source or a slot"),
        ((ArrayParam(X, "merge", slot=-1),), "x: f32[8] is merge buffer -1"),
        (
            (ArrayParam(X, "merge", source=Tensor.of("loss", (), F32)),),
            "x: f32[8] does not hold the values of loss: f32[]",
        ),
        (
            (ArrayParam(MERGED, "merge", X, 1), ArrayParam(Tensor.of("other", (8,), F32), "merge", Y, 1)),
            "merge buffer 1 holds the values of x: f32[8] and those of y: f32[8]",
        ),
    ],
)
def test_a_merge_buffer_holds_the_values_of_one_tensor(params: tuple[ArrayParam, ...], message: str) -> None:
    assert message in refusal(Kernel("f", params, ()))


def test_nobody_wishes_a_parameter_to_be_virtual() -> None:
    wished = replace(X, wish=Wish("virtual"))
    program = Kernel("f", (ArrayParam(wished, "read"),), ())
    assert "x: f32[8] is a parameter, and somebody wishes it were not" in refusal(program)


def test_a_merge_buffer_is_not_written() -> None:
    store = Store(MERGED, (ZERO,), Const(1.0, F32))
    program = Kernel("f", (ArrayParam(MERGED, "merge", X),), (store,))
    assert "merged: f32[8] is a parameter that may only be read" in refusal(program)


@pytest.mark.parametrize("const", [Const(0.1, F32), Const(2**31, I32), Const(0.5, I32)])
def test_a_constant_is_one_that_its_dtype_holds(const: Const) -> None:
    program = Kernel("f", PARAMS, (Define(Variable("t", const.dtype), const),))
    assert "does not hold the constant" in refusal(program)


def test_only_memory_in_c_order_is_filled() -> None:
    columns = Tensor("c", (Affine.of(4),), F32, strides=(Affine.of(2),))
    program = Kernel("f", (ArrayParam(columns, "write"),), (Fill(columns, Const(0.0, F32)),))
    assert "c: f32[4] is filled, and is not in C order" in refusal(program)


def test_a_contracted_assignment_multiplies_floats() -> None:
    i = Symbol("i")
    program = Computation(
        "f",
        PARAMS,
        (Assign(((i, Affine.of(8)),), Y, (ZERO,), Load(X, (Affine.of(i),)), op("add"), contract=True),),
    )
    assert "contract needs a float multiply" in refusal(program)


VALID = {
    "an access that a condition guards": loop(
        "parallel(0, 8)", "if less[bool](i64(0), index(i)):", "    y[i] = x[i - 1]"
    ),
    "numbers that depend on one another": (
        "n: index[0, 9] = k[0]\nl: index[0, 9] = subtract[i64](i64(8), index(n))\ny[n + l - 1] = x[0]"
    ),
    "what a test defines, in the condition and in the body": (
        "while True:\n    t: f32 = x[0]\n    n: index[0, 8] = k[0]\n"
        "    if not less[bool](t, x[n]):\n        break\n    y[n] = t"
    ),
    "a loop that never runs": loop("parallel(0, 0)", "y[i - 3] = x[9]"),
    "a triangle": loop("parallel(0, 8)", "for j in sequential(0, i):", "    y[i] = x[i - j - 1]"),
    "a variable of a vector loop's own": "\n".join(
        [
            "for i in vector(0, 8, lanes=4):",
            "    acc: f32 = x[i]",
            "    for j in parallel(0, 8):",
            "        acc = reduce(add, acc, x[j])",
            "    y[i] = acc",
        ]
    ),
}


@pytest.mark.parametrize("body", VALID.values(), ids=VALID)
def test_what_looks_wrong_and_is_right(body: str) -> None:
    verify_kernel(kernel(KERNEL_HEAD + "\n".join(f"    {line}" for line in body.splitlines())))


def test_an_op_that_is_no_row_of_the_table_is_not_judged() -> None:
    own = type(op("add"))("own", 2, lambda x, y: x)
    value = Apply(own, (Const(1.0, F32), Const(1.0, F64)), F32)
    verify_kernel(Kernel("f", PARAMS, (Store(Y, (ZERO,), value),)))


def test_static_and_dimension_symbols_are_in_scope_everywhere() -> None:
    static, size = Symbol("n", SymbolKind.STATIC), Symbol("d", SymbolKind.DIMENSION)
    body = (Store(Y, (Affine.of(static) - size,), Const(1.0, F32)),)
    verify_kernel(Kernel("f", (*PARAMS, IndexParam(static)), body))


def _long(length: int) -> Kernel:
    """Many loops and many variables, all in one body."""
    body: list[Define | For] = []
    for number in range(length):
        i, variable = Symbol("i"), Variable(f"t{number}", F32)
        body.append(Define(variable, Const(1.0, F32)))
        update = Update(variable, Load(X, (Affine.of(i),)), op("add"))
        body.append(For(i, ZERO, Affine.of(8), (update,), LoopKind.VECTOR, lanes=4))
        store = Store(Y, (Affine.of(i),), Local(variable))
        body.append(For(i, ZERO, Affine.of(8), (store,)))
    return Kernel("long", PARAMS, tuple(body))


def test_work_grows_with_the_program_and_no_faster() -> None:
    def calls(length: int) -> int:
        program = _long(length)
        return calls_in(lambda: verify_kernel(program))

    assert calls(4000) < 11 * calls(400)
