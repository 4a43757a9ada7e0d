"""Functions of the user's by name, with arguments to call them with: what commands are given.

    SCRIPT.py:FUNCTION or package.module:FUNCTION, where FUNCTION may be Class.method

The arguments are expressions (`--arg 'np.ones((500, 400))' --arg 'steps=50'`), over what the script defines
and `np`. Without any they are what the script's own `make_FUNCTION()` returns: a tuple of arguments, a dict
of keywords, or the one argument; a function without parameters needs none.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import runpy
import sys
import traceback
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .api import JitFunction, jit
from .errors import UserError
from .frozen import frozen_by_identity

__all__ = ["Call", "ScriptError", "add_arguments", "call_of", "print_error"]


class ScriptError(UserError, ValueError):
    """A name on the command line for which there is no function, or no arguments."""


@frozen_by_identity
class Call:
    """A jitted function and arguments of a call."""

    name: str
    function: JitFunction[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


def add_arguments(parser: ArgumentParser) -> None:
    """Options by which a command is told a function and its arguments; `call_of` takes their values."""
    parser.add_argument("function", metavar="SCRIPT:FUNCTION", help="a file or a module, and a name in it")
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="EXPRESSION",
        help="an argument, or name=expression; by default those that make_FUNCTION() in the script returns",
    )


def call_of(function: str, expressions: Sequence[str] = ()) -> Call:
    """The call that a command line describes. Raises ScriptError, and whatever the script raises."""
    script, colon, path = function.rpartition(":")
    if not colon or not script or not path:
        raise ScriptError(f"{function!r} names no function", fix="write SCRIPT.py:FUNCTION")
    names = _names_of(script)
    found: Any = names.get(path.partition(".")[0])
    for part in path.split(".")[1:]:
        found = getattr(found, part, None)
    if not callable(found):
        functions = sorted(name for name, value in names.items() if isinstance(value, JitFunction))
        raise ScriptError(
            f"{script} has no function {path!r}",
            details=(f"jitted functions: {', '.join(functions)}",) if functions else (),
            fix="name a function that exists once the script has run",
        )
    args, kwargs = _arguments(found, path, names, expressions)
    return Call(path, found if isinstance(found, JitFunction) else jit(found), args, kwargs)


def print_error(error: BaseException) -> None:
    """Show what a script raised as Python would, without the frames of who ran it."""
    ours = os.path.dirname(os.path.abspath(__file__)) + os.sep
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith((ours, "<frozen ")):
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace)


def _names_of(script: str) -> Mapping[str, Any]:
    """What a script or a module defines once it has run. A script is not `__main__`."""
    path = Path(script)
    if path.suffix != ".py" and not path.exists():
        with _first_on_path(Path.cwd()):
            try:
                return vars(importlib.import_module(script))
            except ModuleNotFoundError as error:
                if error.name is None or not f"{script}.".startswith(f"{error.name}."):
                    raise
    if not path.is_file():
        raise ScriptError(f"there is no script {script!r}", fix="give the path of a file, or a module's name")
    with _first_on_path(path.resolve().parent):
        return runpy.run_path(str(path), run_name=path.stem)


@contextmanager
def _first_on_path(folder: Path) -> Iterator[None]:
    """Modules beside a script are found, as when Python runs it."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _arguments(
    function: Callable[..., Any], path: str, names: Mapping[str, Any], expressions: Sequence[str]
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    if expressions:
        return _evaluated(expressions, names)
    maker = names.get(f"make_{path.rpartition('.')[2]}")
    if maker is not None:
        made = maker()
        match made:
            case tuple():
                return made, {}
            case dict():
                return (), made
            case _:
                return (made,), {}
    parameters = inspect.signature(function).parameters.values()
    missing = [
        p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if missing:
        name = path.rpartition(".")[2]
        raise ScriptError(
            f"{path!r} needs arguments: {', '.join(missing)}",
            fix=f"give --arg 'np.ones(1000)' for each, or define make_{name}() in the script",
        )
    return (), {}


def _evaluated(
    expressions: Sequence[str], names: Mapping[str, Any]
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """The values of the expressions; `name=expression` is a keyword."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for expression in expressions:
        try:
            call = ast.parse(f"f({expression})", "--arg", "eval").body
        except SyntaxError as error:
            raise ScriptError(f"--arg {expression!r}: {error.msg}", fix="write a Python expression") from None
        assert isinstance(call, ast.Call)
        values = [*((None, value) for value in call.args), *((k.arg, k.value) for k in call.keywords)]
        for name, value in values:
            result = eval(compile(ast.Expression(value), "--arg", "eval"), {"np": np, **names})
            if name is None:
                args.append(result)
            else:
                kwargs[name] = result
    return tuple(args), kwargs
