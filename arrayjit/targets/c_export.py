"""A Kernel as C files that need neither Python nor anything of ours: `NAME.h` and `NAME.c`.

    #include "heat.h"
    int32_t status = heat_kernel(x, y, n, workspace);

The header says what the arguments are. Loops that threads might share run on the thread that calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..ir.code import Failure
from ..ir.dtype import BOOL
from ..ir.index import Affine, Symbol
from ..ir.loops import Kernel
from ..ir.params import IndexParam, Param
from .c_module import Function
from .c_text import commented
from .failures import failures_of

__all__ = ["exported"]

_ACCESS = {
    "read": "read",
    "merge": "read",
    "write": "written, with any contents before",
    "update": "read and written",
}


def exported(kernel: Kernel, name: str, symbol: str, about: Sequence[str]) -> Mapping[str, str]:
    """The text of each file. The function is called `symbol`; `about` are lines on what it was made of."""
    function = Function(kernel, None)
    slots = ["void *workspace"] if function.slots else []
    heads = [*function.params.values(), *slots]
    guard = name.upper()
    lines = [*about, "", *_described(kernel, function)]
    failing = failures_of(kernel)
    header = [
        *map(commented, lines),
        "",
        f"#ifndef {guard}_H",
        f"#define {guard}_H",
        "",
        "#include <stdint.h>",
        "",
        *([f"#define {guard}_WORKSPACE_BYTES {kernel.arena_bytes}", ""] if slots else []),
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        f"int32_t {symbol}({', '.join(heads).replace('restrict ', '') or 'void'});",
        *([f"const char *{symbol}_failure(int32_t status);"] if failing else []),
        "",
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "",
        f"#endif  // {guard}_H",
        "",
    ]
    arguments = [*function.params, *(["workspace"] if slots else [])]
    source = [
        f'#include "{name}.h"',
        "",
        *function.text(),
        f"int32_t {symbol}({', '.join(heads).replace('restrict ', '') or 'void'}) {{",
        f"    return {function.name}({', '.join(arguments)});",
        "}",
        "",
        *(_failures(symbol, failing) if failing else []),
    ]
    return {f"{name}.h": "\n".join(header), f"{name}.c": "\n".join(source)}


def _described(kernel: Kernel, function: Function) -> Iterator[str]:
    """The parameters, and what the caller must see to."""
    names = {
        param.symbol: name
        for param, name in zip(kernel.params, function.params, strict=True)
        if isinstance(param, IndexParam)
    }
    for param, name in zip(kernel.params, function.params, strict=True):
        yield f"{name}: {_meaning(param, names)}"
    if function.slots:
        yield f"workspace: {kernel.arena_bytes} bytes with any contents, at a multiple of 64"
    yield ""
    yield "An array that is written may overlap no other. The result is 0, or the status of a failure, after"
    yield "which what was written stays written. Several threads may call at once, each with arrays and a"
    yield "workspace of its own."
    yield ""
    yield "Compile with: cc -std=c11 -O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math"
    yield "(the last two for speed only), and link with -lm."


def _meaning(param: Param, names: Mapping[Symbol, str]) -> str:
    if isinstance(param, IndexParam):
        low, high = param.symbol.lower, param.symbol.upper
        return "a number" + ("" if low is None or high is None else f" from {low} to {high - 1}")
    tensor = param.tensor
    shape = ", ".join(_printed(extent, names) for extent in tensor.shape)
    kind = tensor.dtype.name
    kind += " (0 or 1)" if tensor.dtype is BOOL else " (its bits)" if tensor.dtype.is_small else ""
    what = f"{kind} of shape ({shape}), {_ACCESS[param.access]}" if tensor.shape else f"one {kind}"
    if tensor.strides is None:
        return what + (", in C order" if len(tensor.shape) > 1 else "")
    strides = ", ".join(_printed(stride, names) for stride in tensor.strides)
    return f"{what}, with elements ({strides}) apart"


def _printed(value: Affine, names: Mapping[Symbol, str]) -> str:
    terms = [
        f"{factor} * {names[symbol]}" if factor != 1 else names[symbol] for factor, symbol in value.terms
    ]
    return " + ".join([*terms, *([str(value.offset)] if value.offset or not terms else [])])


def _told(failure: Failure) -> str:
    return f"{failure.exception.rpartition('.')[2]}: {failure.message}"


def _failures(symbol: str, failures: Sequence[Failure]) -> list[str]:
    """A function that says what a status means."""
    cases = [
        f"        case {status}: return {_literal(_told(failure), failure)};"
        for status, failure in enumerate(failures, 1)
    ]
    return [
        f"const char *{symbol}_failure(int32_t status) {{",
        "    switch (status) {",
        *cases,
        '        default: return "";',
        "    }",
        "}",
        "",
    ]


def _literal(text: str, failure: Failure) -> str:
    place = f" ({failure.file}:{failure.line})" if failure.file else ""
    # In octal, after which no digit can be taken for a part of the same character; no trigraph either.
    letters = (
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\?' else f"\\{byte:03o}"
        for byte in f"{text}{place}".encode()
    )
    return '"' + "".join(letters) + '"'
