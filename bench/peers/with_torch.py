"""PyTorch: eager, into tensors that are there where its functions can, and through `torch.compile`, whose
code writes into such a tensor. On a GPU the result is there when a call returns."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - its name in every program
from starting import process

from arrayjit.contest.callers import anew, with_torch
from arrayjit.contest.tasks import Entry, Peer, Task

__all__ = ["compiled_entry", "entry", "gpu_compiled_entry", "gpu_entry", "has_gpu"]

GPU = "cuda"

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads())))
torch.set_grad_enabled(False)


def entry(task: Task, written: tuple[int, ...]) -> Entry | None:
    if task.suite == "startup":
        return process("torch", "torch_program.py", task)
    into, plain = INTO.get(task.name), EXPRESSIONS.get(task.name)
    if task.suite in ("kernels", "compile") or plain is None:
        return None

    def start(*arguments: Any) -> Callable[..., Any]:
        if into is None:
            return plain
        out = torch.empty_like(plain(*arguments))
        return lambda *arguments: into(out, *arguments)

    return Entry(start, place)


def compiled_entry(task: Task, written: tuple[int, ...]) -> Entry | None:
    match task.suite:
        case "compile":
            return anew(with_torch.entry)(task, written)
        case "startup":
            return process("torch", "torch_compile_program.py", task)
    expression = EXPRESSIONS.get(task.name)
    if task.suite == "kernels" or expression is None:
        return None
    is_large = task.suite != "calls" and task.name not in FEW_RESULTS

    def into(out: Any, *arguments: Any) -> Any:
        return out.copy_(expression(*arguments))

    def start(*arguments: Any) -> Callable[..., Any]:
        torch._dynamo.reset()
        if not is_large:
            return torch.compile(expression, dynamic=False)
        out = torch.empty_like(expression(*arguments))
        compiled = torch.compile(into, dynamic=False)
        return lambda *arguments: compiled(out, *arguments)

    return Entry(start, place)


def has_gpu() -> bool:
    return torch.cuda.is_available()


def on_gpu(peer: Peer) -> Peer:
    """The same entry, on tensors in the GPU's memory."""

    def entry(task: Task, written: tuple[int, ...]) -> Entry | None:
        made = peer(task, written)
        if made is None:
            return None

        def start(*arguments: Any) -> Callable[..., Any]:
            started = made.start(*arguments)

            def call(*arguments: Any) -> Any:
                result = started(*arguments)
                torch.cuda.synchronize()
                return result

            return call

        return replace(made, start=start, place=moved, fetch=fetched)

    return entry


gpu_entry, gpu_compiled_entry = on_gpu(entry), on_gpu(compiled_entry)


def moved(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(one.to(GPU) if isinstance(one, torch.Tensor) else one for one in place(arguments))


def fetched(result: Any) -> Any:
    """NumPy has no bfloat16."""
    wide = result.float() if result.dtype == torch.bfloat16 else result
    return wide.cpu().numpy()


def place(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(placed, arguments))


def placed(one: Any) -> Any:
    if isinstance(one, dict):
        return {name: placed(leaf) for name, leaf in one.items()}
    if not isinstance(one, np.ndarray):
        return one
    if one.dtype.name == "bfloat16":  # which PyTorch does not take from NumPy's arrays
        return torch.from_numpy(one.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(one.copy())


def gelu(x: Any) -> Any:
    return F.gelu(x, approximate="tanh")


def layernorm(x: Any, gain: Any, bias: Any) -> Any:
    return F.layer_norm(x, x.shape[-1:], gain, bias, 1e-5)


def black_scholes(spot: Any, strike: Any, years: Any, rate: Any, volatility: Any) -> Any:
    spread = volatility * torch.sqrt(years)
    d1 = (torch.log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / spread
    present = strike * torch.exp(-rate * years)
    nd1 = 0.5 + 0.5 * torch.erf(d1 * 0.7071067811865476)
    nd2 = 0.5 + 0.5 * torch.erf((d1 - spread) * 0.7071067811865476)
    call = spot * nd1 - present * nd2
    return call, call - spot + present


def stencil(x: Any) -> Any:
    return 0.2 * (x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])


def ten_layers(x: Any, weights: Any) -> Any:
    for _ in range(10):
        x = torch.tanh(x @ weights)
    return x


def ends(leaves: dict[str, Any]) -> Any:
    first, *_, last = leaves.values()
    return first + last, first - last


EXPRESSIONS: dict[str, Callable[..., Any]] = {
    "matmul": torch.matmul,
    "gelu(x@W+b)": lambda x, weights, bias: gelu(x @ weights + bias),
    "exp": torch.exp,
    "log": torch.log,
    "tanh": torch.tanh,
    "sin": torch.sin,
    "erf": torch.erf,
    "pow": torch.pow,
    "gelu": gelu,
    "softmax": lambda x: torch.softmax(x, -1),
    "layernorm": layernorm,
    "black_scholes": black_scholes,
    "triad": lambda b, c: b + 3 * c,
    "copy": torch.clone,
    "sum": torch.sum,
    "stencil": stencil,
    "transpose": lambda x: x.T.contiguous(),
    "means_of_columns": lambda x: x.mean(0),
    "maxima_of_rows": lambda x: x.amax(1),
    "argmax": torch.argmax,
    "variance": lambda x: x.var(correction=0),
    "norm": torch.linalg.vector_norm,
    "dot": torch.dot,
    "cumsum": lambda x: torch.cumsum(x, 0),
    "logsumexp": lambda x: torch.logsumexp(x, 1),
    "ten_layers": ten_layers,
    "a + b": torch.add,
    "np.add(a, b, out)": lambda a, b, out: torch.add(a, b, out=out),
    "a * 2.5": torch.mul,
    "a.sum()": torch.sum,
    "a[a > 5]": lambda a: a[a > 5],
    "ends of 20 arrays": ends,
}
FEW_RESULTS = ("black_scholes", "sum", "argmax", "variance", "norm", "dot", "a + b")
"""Nothing is gained by writing these results into memory that is there."""
INTO: dict[str, Callable[..., Any]] = {
    name: lambda out, *arguments, function=EXPRESSIONS[name]: function(*arguments, out=out)
    for name in ("matmul", "exp", "log", "tanh", "sin", "erf", "pow")
} | {
    "gelu": lambda out, x: torch.ops.aten.gelu.out(x, approximate="tanh", out=out),
    "gelu(x@W+b)": lambda out, x, weights, bias: torch.ops.aten.gelu.out(
        torch.addmm(bias, x, weights), approximate="tanh", out=out
    ),
    "softmax": lambda out, x: torch.softmax(x, -1, out=out),
    "triad": lambda out, b, c: torch.add(b, c, alpha=3, out=out),
    "copy": lambda out, x: out.copy_(x),
    "transpose": lambda out, x: out.copy_(x.T),
    "cumsum": lambda out, x: torch.cumsum(x, 0, out=out),
}
