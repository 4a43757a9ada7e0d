"""Run the user's function once on symbolic arguments: its Computation and how to call it."""

from __future__ import annotations

import inspect
import linecache
import re
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Coroutine,
    Iterator,
    Mapping,
    MutableMapping,
    MutableSequence,
    MutableSet,
    Sequence,
)
from dataclasses import replace
from types import GeneratorType, MethodType, SimpleNamespace
from typing import Any

import numpy as np

from ...errors import (
    CompilerBug,
    ConcretizationError,
    Location,
    NotAnArray,
    UnsupportedError,
    UserError,
)
from ...frozen import frozen_by_identity
from ...ir.assign import ArrayParam, Computation
from ...ir.index import Affine, affine
from ...ir.tensor import Tensor
from ..functions.reinterpreting import require_shared_by_none
from ..names.namespace import Namespace
from ..record.current import CYTHON, caught
from ..record.deciding import is_positive, require_decided
from ..record.guards import ArrayGuard, Guard, once_for_many_calls
from ..record.portions import is_made_in_part, require_portions
from ..record.resident import layout_of
from ..record.retrace import Decisions, Reason, Retrace, told
from ..record.sameness import Held
from ..record.state import reachable
from ..record.trace import Trace, current_trace, location_of, recording, user_location
from ..record.tree import Node, Static, Structure, flatten, statics
from ..record.view import same_cells
from ..values.array import TEXT, SymbolicArray, describe
from ..values.elementwise import as_operand, copy
from ..values.fitting import Operand
from ..values.integer import SymbolicInt, number
from ..values.layout import Order
from . import features
from .binding import (
    ArgumentOutput,
    Counted,
    FreshSource,
    Output,
    RepeatedOutput,
    ScalarOutput,
    SizedOutput,
    Source,
    ViewOutput,
)
from .captures import captured_sources, forget_unused
from .convention import Convention
from .lengths import (
    comes_from_lengths,
    has_told_place,
    is_counted,
    is_part_of_open_rows,
    reckoned,
    with_told_lengths,
)
from .names import name_of
from .parameters import Arguments
from .signature import Declared

__all__ = ["Traced", "call_inline", "features", "trace_function"]

_CHANGING = (
    *(Iterator, AsyncIterator, Coroutine),
    *(MutableMapping, MutableSequence, MutableSet, SimpleNamespace),
)
"""What is used up by its first user, or what any user can change."""

_OUR_TYPES = re.compile(r"\bSymbolic(Array|Int)\b")
"""What code in C calls traced values."""

_TRACER = f"{__name__.partition('.')[0]}.tracer."
"""Where the classes are of what traced functions see in place of Python's and NumPy's."""

_NOTHING_DECLARED = Declared()


@frozen_by_identity
class Traced(Convention):
    """A traced function, and how it is called. `notes` say what became of lines."""

    computation: Computation
    notes: tuple[str, ...]


def trace_function(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    declared: Declared = _NOTHING_DECLARED,
    unchecked: bool = False,
    branches: bool = False,
) -> Traced:
    """Trace a call. Exceptions of the user's code pass through. With `unchecked` computed indices are taken
    to be in bounds, with `branches` conditions on computed values are decided in the run."""
    decisions = Decisions()
    while True:
        try:
            return _traced(function, args, kwargs, declared, decisions, unchecked, branches)
        except Retrace as more:
            extended = decisions.with_more(more)
            if extended == decisions:
                raise CompilerBug("a trace starts again for what is decided already", stage="trace") from None
            decisions = extended
        except Exception:
            if not decisions.rolled:
                raise
            decisions = decisions.without_rolled()


def _traced(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    declared: Declared,
    decisions: Decisions,
    unchecked: bool,
    branches: bool,
) -> Traced:
    """One run of the function. Raises Retrace where it needs more decisions."""
    trace = Trace(name_of(function), decisions, unchecked, branches)
    arguments = Arguments(function, args, kwargs, declared, trace)
    namespace = Namespace(trace, function)
    with recording(trace):
        leaves, structure = _run(function, arguments, namespace, trace)
        results = [leaf.cells for leaf in leaves]
        require_portions(trace, results)
        trace.layouts.require_sharing(results)
        sizes = _sizes(leaves, trace)
    forget_unused(trace, leaves)
    parameters = arguments.parameters()
    params = [ArrayParam(tensor, access) for tensor, access, _ in parameters]
    sources: list[Source] = [source for _, _, source in parameters]
    known = {param.tensor for param in params} | {tensor for tensor, _ in trace.captured}
    fresh = _fresh_sources([*leaves, *sizes.values()], known, trace)
    params += [ArrayParam(tensor, "write") for tensor in fresh]
    sources += fresh.values()
    sources += captured_sources(trace)
    lengths = arguments.lengths()
    sources += (source for _, source in lengths)
    computation = trace.finish(params, [symbol for symbol, _ in lengths])
    places = {param.tensor: n for n, param in enumerate(computation.params) if isinstance(param, ArrayParam)}
    counts = {extent: Counted(places[size.cells.tensor]) for extent, size in sizes.items()}
    outputs = _outputs(leaves, arguments, places, fresh, counts)
    for fact, why in decisions.baked.items():
        trace.note(why.loc, f"of {arguments.label(fact)}, {fact} is compiled in, because {why.what}")
    guards: tuple[Guard, ...] = (
        *namespace.guards,
        *(ArrayGuard.of(layout_of(array)) for _, array in trace.captured),
    )
    baked = {fact: reason.why() for fact, reason in decisions.baked.items()}
    return Traced(tuple(sources), structure, outputs, guards, baked, computation, _noted(trace))


def _run(
    function: Callable[..., Any], arguments: Arguments, namespace: Namespace, trace: Trace
) -> tuple[list[SymbolicArray], Structure]:
    """Run the function: the leaves of its result and their structure. A mistake is located by the innermost
    line of the user's that its exception passes through."""
    positional, keywords = arguments.values(namespace.of)
    here = _definition(function)
    try:
        result = namespace.nameless(_with_code(function))(*positional, **keywords)
        if (again := trace.wanted or trace.pending) is not None:
            raise again
        if (hidden := caught(trace.raised)) is not None:
            raise hidden
    except Exception as error:
        if trace.wanted is not None:
            raise trace.wanted from None
        _require_running(trace, location_of(error))
        if isinstance(error, UserError):
            error.loc = error.loc or location_of(error)
            _tell_lengths(error, trace)
        elif type(error) is UnboundLocalError and trace.decisions.conditions:
            raise _without_value(error) from None
        elif (hidden := _behind(error, trace)) is not None:
            raise hidden from None
        raise
    finally:
        changed = namespace.changes()
        changed += [f"changes a {type(value).__name__}" for value in trace.restore_watched()]
    for change in changed:
        raise once_for_many_calls(change, here)
    arguments.require_unchanged(positional, keywords, namespace.open_result, here)
    _require_steady_captures(trace, here)
    return _opened(result, namespace, trace, here)


def _opened(
    result: Any, namespace: Namespace, trace: Trace, here: Location | None
) -> tuple[list[SymbolicArray], Structure]:
    """What the function returned: its leaves and their structure."""
    try:
        leaves, structure = flatten(result, _is_result_leaf, namespace.open_result)
    except RecursionError:
        what = "the function returns something that holds itself"
        raise UnsupportedError(what, loc=here, fix="return its parts") from None
    except UserError as error:
        error.loc = here
        raise
    for constant in statics(structure):
        if not namespace.met(constant):
            _require_constant(constant, here)
    _require_texts(structure, here)
    try:
        leaves = _as_lists_hold_them(leaves)
        require_shared_by_none(leaves, trace)
        several = _handed_out_as_numbers(leaves)
        settled = {id(leaf): _settled(leaf, leaves, here, several) for leaf in leaves}
        return with_told_lengths([settled[id(leaf)] for leaf in leaves], trace), structure
    except UserError as error:
        error.loc = here
        _tell_lengths(error, trace)
        raise


def _tell_lengths(error: UserError, trace: Trace) -> None:
    """An error is about this call, and its numbers."""
    what, *details, fix = (
        trace.lengths.as_numbers(text, trace.leaves) for text in (error.what, *error.details, error.fix)
    )
    error.what, error.details, error.fix = what, tuple(details), fix


def _behind(error: Exception, trace: Trace) -> UserError | None:
    """The error of ours that code in C or of a library has turned into one of its own; None where it is not
    about a traced value."""
    if isinstance(error.__context__, (ConcretizationError, UnsupportedError)):
        return error.__context__
    last = trace.raised[-1] if trace.raised else None
    if isinstance(last, NotAnArray) and last.loc == location_of(error):
        return last
    is_refusal = _OUR_TYPES.search(str(error)) or _raised_in(error).endswith(CYTHON)
    return _not_taken(error) if type(error) is TypeError and is_refusal else None


def _raised_in(error: Exception) -> str:
    """The file of the code that raised an error."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return "" if traceback is None else traceback.tb_frame.f_code.co_filename


def _not_taken(error: Exception) -> UnsupportedError:
    """What is told where code in C, of Python's or of a library's, refuses a traced value."""
    words = _OUR_TYPES.sub(lambda found: {"Array": "numpy.ndarray", "Int": "int"}[found[1]], str(error))
    return UnsupportedError(
        f"this line gives a traced value to code that does not take it: {words}",
        loc=location_of(error),
        fix="do it before the call, or with what the function returns",
    )


def _without_value(error: UnboundLocalError) -> UnsupportedError:
    """What is told where a variable that a condition may leave without a value is taken on."""
    return UnsupportedError(
        f"{error}, and which way leads there is known only when the compiled function runs",
        loc=location_of(error),
        fix="give it a value before the condition or the loop",
    )


def _require_texts(structure: Structure, here: Location | None) -> None:
    """Raise where a text or a key in the result was made of a traced value."""
    match structure:
        case Static(value=str() as text) if TEXT in text:
            raise ConcretizationError(
                f"the function returns the text of a value that is known only when it runs: {text!r}",
                loc=here,
                fix="return the value itself, and make the text after the call",
            )
        case Node(keys=keys, children=children):
            for part in (*map(Static, keys), *children):
                _require_texts(part, here)


def _noted(trace: Trace) -> tuple[str, ...]:
    """The user's lines, in their order, with what was decided about them."""
    noted = sorted(
        {(loc.file, loc.line, f"{loc}: {loc.source()}  # {what}"): None for loc, what in trace.notes if loc},
        key=lambda note: note[:2],
    )
    return tuple(text for _, _, text in noted)


def call_inline(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a jitted function from a function that is being traced: it becomes part of the trace."""
    return current_trace().namespace.of(_with_code(function))(*args, **kwargs)


def _with_code(function: Callable[..., Any]) -> Callable[..., Any]:
    """The callable itself, or for an object of the user's its `__call__`."""
    if isinstance(function, np.vectorize):
        return function
    call = getattr(function, "__call__", None)  # noqa: B004
    return call if isinstance(call, MethodType) and not isinstance(function, MethodType) else function


def _is_result_leaf(value: Any) -> bool:
    return type(value) in (SymbolicArray, SymbolicInt) or issubclass(type(value), np.ndarray)


def _require_constant(constant: Any, loc: Location | None) -> None:
    """What the function made, and is the same at each call: it must hold nothing of this one, and nobody may
    change it or use it up."""
    if any(type(part) in (SymbolicArray, SymbolicInt, GeneratorType) for part in reachable(constant)):
        what = "that holds traced values"
    elif isinstance(constant, _CHANGING) or type(constant).__module__.startswith(_TRACER):
        what = "that would be the same one after each call"
    else:
        return
    raise UnsupportedError(
        f"the function returns a {constant.__class__.__name__} {what}",
        loc=loc,
        fix="return arrays, numbers, and tuples, lists, dicts, namedtuples or dataclasses of them",
    )


def _require_running(trace: Trace, loc: Location | None) -> None:
    """Raise Retrace where arguments, or the loops around, tell whether the loops run that are being recorded:
    what is raised in them is raised in the call only if they do."""
    for count, site in trace.running:
        words = "the loop that raises this may not run"
        require_decided(trace.limits.greatest(count), trace, words)
        if site in trace.decisions.turns and is_positive(count, trace) is None:
            raise Retrace({site: Reason(words, loc)})


def _as_lists_hold_them(leaves: Sequence[Any]) -> list[Any]:
    """The leaves of the result; arrays that lists among them hold as well are as they are there."""
    arrays = [leaf for leaf in leaves if type(leaf) is SymbolicArray]
    memories = {array.cells.tensor.storage for array in arrays}
    found: list[Any] = []
    for leaf in leaves:
        held = None
        if type(leaf) is SymbolicArray:
            held = leaf.record.sameness.held_in(leaf.cells.tensor.storage, memories)
        found.append(leaf if held is None else _as_held(leaf, held, arrays))
    return found


def _as_held(leaf: SymbolicArray, held: Held, arrays: Sequence[SymbolicArray]) -> SymbolicArray:
    """An array where a list holds it, which is one of these arrays if the list holds all of it."""
    as_operand(leaf)
    view = leaf.cells
    if held.cells is None or view.tensor is not view.tensor.storage:
        held.reason.unroll()
        raise UnsupportedError(held.reason.what, loc=held.reason.loc, fix=told(held.reason.fix))
    there = replace(held.cells.remap(view.shape, view.axes, view.index), writeable=view.writeable)
    itself = (array for array in arrays if same_cells(array.cells, there))
    return next(itself, SymbolicArray(there, leaf.record, leaf.weak, leaf.is_scalar))


def _handed_out_as_numbers(leaves: Sequence[Any]) -> set[Tensor]:
    """The arrays that the function made and of which at least half is handed out, cell by cell, as numbers:
    those of loops that append to a list."""
    numbers = (leaf.cells for leaf in leaves if type(leaf) is SymbolicArray and _is_number(leaf))
    counts = Counter(view.tensor for view in numbers if view.index and view.is_fixed())
    made = current_trace().is_made_here
    return {
        tensor
        for tensor, count in counts.items()
        if made(tensor)
        and all(extent.is_constant for extent in tensor.shape)
        and 2 * count >= tensor.size > 1
    }


def _is_number(leaf: SymbolicArray) -> bool:
    return leaf.is_scalar or leaf.weak is not None


def _settled(
    leaf: Any, leaves: Sequence[Any], loc: Location | None, several: Collection[Tensor]
) -> SymbolicArray:
    """A leaf of the result as it is handed out: a number has memory of its own, or is a cell of one of
    `several` arrays, and shapes are numbers."""
    if type(leaf) is SymbolicInt:
        return _array(as_operand(leaf))
    if type(leaf) is not SymbolicArray:
        raise UnsupportedError(
            "the function returns an array that neither it nor its arguments made",
            loc=user_location(),
            details=(f"{leaf.dtype} array of shape {leaf.shape}",),
            fix="return a copy made in the function: np.array(x)",
        )
    as_operand(leaf)
    if _is_number(leaf) and not leaf.cells.is_whole():
        if leaf.cells.tensor in several:
            return leaf
        return SymbolicArray(copy(leaf).cells, leaf.record, leaf.weak, leaf.is_scalar)
    is_shown_once = _is_shown_once(leaf, leaves)
    if is_shown_once and is_made_in_part(leaf.record, leaf.cells.tensor.storage):
        return copy(leaf)
    if has_told_place(leaf) and not (is_shown_once and is_part_of_open_rows(leaf)):
        return leaf
    try:
        for extent in leaf.cells.shape:
            if not (is_shown_once and comes_from_lengths(extent, leaf.record)):
                what = "the shape of a view that is a result"
                number(extent, leaf.record, what, "return a copy: x.copy()", loc)
    except ConcretizationError:
        if not is_shown_once:
            raise
    if not all(extent.is_constant for extent in leaf.cells.shape):
        view = leaf.cells
        is_own = view.tensor is view.tensor.storage and view.index == affine(view.axes)
        return leaf if is_own else copy(leaf, "C")
    return leaf if leaf.cells.is_fixed() else _at_a_fixed_place(leaf, leaves, loc)


def _at_a_fixed_place(leaf: SymbolicArray, leaves: Sequence[Any], loc: Location | None) -> SymbolicArray:
    """A view whose place is computed. Arguments that it depends on are compiled in; where it depends on data
    a copy does as well, unless the memory is seen otherwise too."""
    view, trace = leaf.cells, leaf.record
    try:
        for part in view.index:
            start = Affine(tuple((c, s) for c, s in part.terms if s not in view.axes), 0)
            number(start, trace, "the place of a view that is a result", loc=loc)
    except ConcretizationError:
        if _is_shown_once(leaf, leaves):
            return copy(leaf)
        raise UnsupportedError(
            "the function returns a view whose place in its array is computed from other arrays",
            loc=user_location(),
            details=(describe(leaf),),
            fix="return a copy: x[i].copy()",
        ) from None
    raise CompilerBug("a view whose place is known is not fixed", stage="trace")


def _is_shown_once(leaf: SymbolicArray, leaves: Sequence[Any]) -> bool:
    """Whether the memory was made here, and nothing else shows it."""
    storage = leaf.cells.tensor.storage
    shown = (x for x in leaves if type(x) is SymbolicArray and x.cells.tensor.storage is storage)
    return leaf.record.is_made_here(storage) and all(x is leaf for x in shown)


def _sizes(leaves: Sequence[SymbolicArray], trace: Trace) -> dict[Affine, SymbolicArray]:
    """The extents of results that only the run knows, as numbers that it hands out too."""
    shapes = (leaf.cells.shape for leaf in leaves if is_counted(leaf))
    extents = dict.fromkeys(extent for shape in shapes for extent in shape if not extent.is_constant)
    return {extent: _array(as_operand(SymbolicInt(extent, trace))) for extent in extents}


def _array(operand: Operand) -> SymbolicArray:
    assert type(operand) is SymbolicArray
    return operand


def _require_steady_captures(trace: Trace, loc: Location | None) -> None:
    for array in trace.changed_while_recorded():
        raise UnsupportedError(
            f"a NumPy array of shape {array.shape} was read by traced code and changed by plain code",
            loc=loc,
            fix="write into it as NumPy does, x[...] = values, in a Python function",
        )


def _definition(function: Callable[..., Any]) -> Location | None:
    """The line where a function begins, after its decorators."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return None
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    head = f"def {code.co_name}("
    decorators = next((n for n, line in enumerate(lines) if line.lstrip().startswith(head)), 0)
    return Location(code.co_filename, code.co_firstlineno + decorators, code.co_name)


def _constants(extents: Sequence[Affine]) -> tuple[int, ...]:
    return tuple(extent.constant for extent in extents)


def _fresh_sources(
    leaves: Sequence[SymbolicArray], known: set[Tensor], trace: Trace
) -> dict[Tensor, FreshSource]:
    """The results' own memory. An array that is handed out transposed is made that way."""
    sources: dict[Tensor, FreshSource] = {}
    for view in (leaf.cells for leaf in leaves):
        tensor = view.tensor.storage
        if tensor not in known and tensor not in sources:
            order = view.transposition() if view.tensor is tensor else None
            order = order or tuple(range(tensor.rank))
            shape = tuple(reckoned(extent, trace) for extent in tensor.shape)
            sources[tensor] = FreshSource(shape, tensor.dtype.numpy, order)
    return sources


def _outputs(
    leaves: Sequence[SymbolicArray],
    arguments: Arguments,
    places: Mapping[Tensor, int],
    fresh: Mapping[Tensor, FreshSource],
    counts: Mapping[Affine, Counted],
) -> tuple[Output, ...]:
    """One array twice is one object; other leaves that are all of one memory are objects of their own."""
    outputs: list[Output] = []
    known: dict[int, int] = {}
    handed_out: set[int] = set()
    for place, leaf in enumerate(leaves):
        earlier = known.setdefault(id(leaf), place)
        passed = arguments.position(leaf)
        if earlier < place:
            outputs.append(RepeatedOutput(earlier))
        elif passed is not None:
            outputs.append(ArgumentOutput(passed))
        elif is_counted(leaf):
            extents = tuple(counts.get(extent, extent.offset) for extent in leaf.cells.shape)
            outputs.append(SizedOutput(places[leaf.cells.tensor], extents))
        else:
            tensor = leaf.cells.tensor.storage
            order = fresh[tensor].order if tensor in fresh else tuple(range(tensor.rank))
            outputs.append(_output(leaf, places[tensor], order, handed_out))
    return tuple(outputs)


def _output(leaf: SymbolicArray, param: int, order: Order, handed_out: set[int]) -> Output:
    """How to make a leaf; adds the parameter to `handed_out` where its array is the leaf."""
    view = leaf.cells
    if leaf.weak is not None or leaf.is_scalar:
        return ScalarOutput(param, leaf.weak is not None, _constants(view.index))
    parts = not view.tensor.dtype.is_complex and view.tensor.storage.dtype.is_complex
    if view.tensor.is_real_form and view.tensor.base is not view.tensor.storage:
        view = replace(view, tensor=leaf.record.flat(view.tensor), index=(view.index[0] * 2 + view.index[1],))
    is_flat = view.tensor.base is not None and not view.tensor.is_real_form
    if (
        not (is_flat or parts)
        and view.transposition() == order
        and view.writeable
        and param not in handed_out
    ):
        handed_out.add(param)
        return ViewOutput(param)
    corner = tuple(reckoned(place, leaf.record) for place in view.at((0,) * view.rank))
    steps = tuple(tuple(part.coefficient(axis) for part in view.index) for axis in view.axes)
    shape = tuple(reckoned(extent, leaf.record) for extent in view.shape)
    return ViewOutput(param, shape, corner, steps, is_flat, view.writeable, parts)
