"""Text and IR are the same thing twice: printing what was read gives the text that was read."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from corpus import COMPUTATIONS, KERNELS, computation, kernel, printed
from hypothesis import given
from hypothesis import strategies as st

from arrayjit.errors import Location
from arrayjit.ir.assign import ArrayParam, IndexParam
from arrayjit.ir.dtype import DTYPES, F32, F64, DType
from arrayjit.ir.expr import Const, Load, constant
from arrayjit.ir.index import Affine, Symbol, SymbolKind
from arrayjit.ir.loops import For, Kernel, Store
from arrayjit.ir.tensor import Tensor
from arrayjit.ir.text import print_computation, print_kernel
from arrayjit.ir.verify import verify_computation, verify_kernel


@pytest.mark.parametrize("text", KERNELS.values(), ids=KERNELS)
def test_a_kernel_survives_text(text: str) -> None:
    program = kernel(text)
    verify_kernel(program)
    assert print_kernel(program) == text


@pytest.mark.parametrize("text", COMPUTATIONS.values(), ids=COMPUTATIONS)
def test_a_computation_survives_text(text: str) -> None:
    program = computation(text)
    verify_computation(program)
    assert print_computation(program) == text


def _stored(const: Const) -> Kernel:
    into = Tensor.of("y", (1,), const.dtype)
    return Kernel("f", (ArrayParam(into, "write"),), (Store(into, (Affine.of(0),), const),))


@given(st.sampled_from(DTYPES), st.data())
def test_a_constant_keeps_its_bits(dtype: DType, data: st.DataObject) -> None:
    raw = np.frombuffer(data.draw(st.binary(min_size=8, max_size=8)), dtype.numpy)[0]
    if dtype.is_float and math.isnan(raw):
        raw = np.copysign(dtype.numpy.type("nan"), raw)
    const = constant(bool(raw) if dtype.name == "bool" else raw.item(), dtype)
    (store,) = kernel(print_kernel(_stored(const))).body
    assert isinstance(store, Store)
    assert store.value == const


SYMBOLS = [Symbol(hint) for hint in "ijk"]
AFFINES = st.builds(
    lambda factors, offset: sum((Affine.of(s) * c for s, c in zip(SYMBOLS, factors, strict=True)), offset),
    st.tuples(*[st.integers(-9, 9)] * 3),
    st.integers(-99, 99).map(Affine.of),
)


@given(AFFINES, st.permutations(SYMBOLS))
def test_an_index_keeps_its_value_whatever_the_order_of_loops(value: Affine, nest: list[Symbol]) -> None:
    into = Tensor.of("y", (100,), F64)
    body: Store | For = Store(into, (value,), Const(0.0, F64))
    for symbol in reversed(nest):
        body = For(symbol, Affine.of(0), Affine.of(2), (body,))
    text = print_kernel(Kernel("f", (ArrayParam(into, "write"),), (body,)))
    again = kernel(text)
    assert print_kernel(again) == text
    renamed: dict[Symbol, int] = {}
    inner = again.body[0]
    for number, symbol in enumerate(nest):
        assert isinstance(inner, For)
        assert inner.symbol.hint == symbol.hint
        renamed[inner.symbol] = 10**number
        inner = inner.body[0]
    assert isinstance(inner, Store)
    expected = value.evaluate({symbol: 10**number for number, symbol in enumerate(nest)})
    assert inner.index[0].evaluate(renamed) == expected


LABELS = st.lists(st.sampled_from(["x", "x1", "x2", "add", "for", "f32", "a b", "1st", "", "dim", "é"]))


@given(LABELS)
def test_any_labels_give_distinct_names_that_stay(labels: list[str]) -> None:
    tensors = [Tensor.of(label, (1,), F32) for label in labels]
    params = tuple(ArrayParam(tensor, "write") for tensor in tensors)
    body = tuple(Store(tensor, (Affine.of(0),), Const(1.0, F32)) for tensor in tensors)
    text = print_kernel(Kernel("<lambda>", params, body))
    again = kernel(text)
    assert print_kernel(again) == text
    assert len({param.tensor.label for param in again.params if isinstance(param, ArrayParam)}) == len(labels)
    assert [stmt.tensor for stmt in again.body if isinstance(stmt, Store)] == [p.tensor for p in again.params]


def test_symbols_that_no_loop_introduces_are_declared_where_they_first_stand() -> None:
    size = Symbol("n", SymbolKind.DIMENSION, 1, 9)
    x = Tensor.of("x", (size, Affine.of(size) * 2), F32)
    text = print_kernel(Kernel("f", (ArrayParam(x, "read"),), ()))
    assert text.startswith("def f(x: read[f32, dim('n', 1, 9), 2*n])")
    (param,) = kernel(text).params
    assert isinstance(param, ArrayParam)
    first, second = param.tensor.shape
    assert first.symbols == second.symbols
    assert (first.symbols[0].kind, first.symbols[0].upper) == (SymbolKind.DIMENSION, 9)


def test_a_number_that_is_given_after_the_arrays_it_shapes_is_the_same_symbol() -> None:
    length = Symbol("n", SymbolKind.STATIC, 17, 33)
    x = Tensor.of("x", (length, 3), F32)
    text = print_kernel(Kernel("f", (ArrayParam(x, "read"), IndexParam(length)), ()))
    assert text.startswith("def f(x: read[f32, static('n', 17, 33), 3], n: index[17, 33])")
    again = kernel(text)
    assert print_kernel(again) == text
    array, number = again.params
    assert isinstance(array, ArrayParam)
    assert isinstance(number, IndexParam)
    assert array.tensor.shape[0].symbol is number.symbol


def test_the_source_of_a_merge_buffer_is_the_parameter_of_that_name() -> None:
    program = computation(
        COMPUTATIONS["merge buffers of a parameter, of another tensor, and of nobody knows which"]
    )
    *buffers, grad = (param for param in program.params if isinstance(param, ArrayParam))
    first, second, unknown, loss = buffers
    assert first.source is second.source is grad.tensor
    assert (unknown.source, unknown.slot) == (None, 2)
    assert loss.source is not None
    assert (loss.source.label, loss.slot) == ("loss", 3)


def test_locations_are_comments_and_only_on_request() -> None:
    program = computation(COMPUTATIONS["elementwise, broadcast"])
    body = tuple(replace(statement, loc=Location("blur.py", 7)) for statement in program.body[1:])
    program = replace(program, body=body)
    assert "blur.py" not in print_computation(program)
    text = print_computation(program, locations=True)
    assert text.splitlines()[-1].endswith("multiply[f32](x[i, j], v[j])  # blur.py:7")
    assert printed(computation(text)) == print_computation(program)


def test_the_same_cell_twice_is_the_same_tensor() -> None:
    program = kernel(KERNELS["saxpy: a vector loop, a constant, a variable"])
    (loop,) = program.body
    assert isinstance(loop, For)
    store = loop.body[1]
    assert isinstance(store, Store)
    assert Load(store.tensor, store.index) == store.value.args[1]
    assert store.tensor is program.params[1].tensor
