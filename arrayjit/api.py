"""The front door: `jit`, the function that it makes, `use` and `spec`."""

from __future__ import annotations

import functools
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import index
from types import MethodType, TracebackType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

import numpy as np

from .backends import TARGET_IN_USE, backend, require_target, target_in_use, use
from .compilations import MANY, call_site, forbidden, is_forbidden, log, report, warn_of_many
from .compile import Build, Emitted, build, kept_call, recalled
from .entry.callable import native
from .entry.entries import Entry
from .errors import (
    BackendUnavailable,
    CompilerBug,
    DeviceMismatch,
    ShapeError,
    UnknownTarget,
    UserError,
)
from .ir.code import DEFAULT_OPT
from .ir.journal import VALUES
from .late import Late
from .locks import reentrant_lock
from .options import UNSAID, Making, Options, fast_in, names_of, require_function, require_threads
from .reuse import Call
from .runtime.device import Device
from .settings import CHECKS, Settings, checks_wanted, default_target, entry_wanted, names_in
from .stages import CompiledForOther, Linked, Lowered, Variant, integers_among
from .stats import Description, Miss, Stats, describe_call, explain_miss
from .timeline import RECORDER, note
from .tracer.calls.binding import Binding
from .tracer.calls.convention import Convention
from .tracer.calls.names import declared, parameters_of
from .tracer.calls.signature import Key, Spec, key_of
from .tracer.record.current import CURRENT_TRACE, tracing, user_location
from .tracer.record.facts import Fact
from .tracer.record.resident import Resident
from .variants import Choice, Variants

if TYPE_CHECKING:
    from . import garbage, pickling, tuning
    from .explanation import Explanation
    from .profile.gpu.profiled import GpuProfile
    from .profile.profiled import Profile
    from .tracer.calls import donation
    from .tracer.calls import function as functions
    from .tracer.calls.function import Traced
else:
    garbage, tuning = Late("arrayjit.garbage"), Late("arrayjit.tuning")
    pickling = Late("arrayjit.pickling")
    donation = Late("arrayjit.tracer.calls.donation")
    functions = Late("arrayjit.tracer.calls.function")
profiled: Any = Late("arrayjit.profile.profiled")  # which imports `stages`
gpu_profiled: Any = Late("arrayjit.profile.gpu.profiled")
placed: Any = Late("arrayjit.arrays.placed")  # which imports this file, by way of `eager`

__all__ = ["JitFunction", "jit", "spec", "use"]

P = ParamSpec("P")
R = TypeVar("R")

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_REMEMBERED_MISSES = 100
_AS_USUAL = Making()


class JitFunction(Generic[P, R]):
    """A NumPy function that runs as native code, compiled once per signature, target and number of threads;
    the latest 1,000 of them are kept, as far as the text of their code is 64 MiB at most.

    Call it as the function it was made from. `target=`, `threads=` and `fast=` in a call are for that call;
    where the function has a parameter of that name, use `f.on("interp")(...)` and `f.on(threads=1)(...)`.
    """

    def __init__(
        self,
        function: Callable[P, R],
        options: Options = UNSAID,
        making: Making = _AS_USUAL,
    ) -> None:
        require_function(function)
        functools.update_wrapper(self, function)
        options.require()
        if options.target is not None:
            require_target(options.target)
        making.require()
        self._function = function
        self._options = options
        self._making = making
        self._declared = declared(function, making.static_argnames, making.any_length)
        self._said = [name for name in Options._fields if name not in parameters_of(function)]
        self._variants = Variants()
        self._baked: dict[Key, tuple[Fact, ...]] = {}
        self._lock = reentrant_lock()
        self._hits = self._misses = self._compiles = 0
        self._reasons: deque[Miss] = deque(maxlen=_REMEMBERED_MISSES)
        variables = ("ARRAYJIT_TARGET",) if options.target is None else ()
        contexts = (CURRENT_TRACE, TARGET_IN_USE)
        self._entries = Entry(JitFunction, self._declared, contexts, variables, _for_the_user)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        options = self._taken_from(kwargs) if kwargs else UNSAID
        call = self._call if RECORDER.timeline is None else self._recorded_call
        result: R = call(options, args, kwargs)
        return result

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> str | tuple[Any, ...]:
        if pickling.is_taken_by_value(self, self._function, sys._getframe(1)):
            return _unmade, (), (self._function, self._options, self._making)
        if pickling.is_made_from_named(self._function):
            options = self._options._replace(fast=fast_in(self._options.fast))
            return _made_again, (self._function, options, self._making)
        return str(getattr(self._function, "__qualname__", ""))

    def __copy__(self) -> JitFunction[P, R]:
        return self

    def __deepcopy__(self, memo: object) -> JitFunction[P, R]:
        return self

    def __setstate__(self, made_from: tuple[Any, ...]) -> None:
        JitFunction.__init__(self, *made_from)

    @property
    def _is_ours(self) -> bool:
        """Whether it stands for an operation on Arrays, of which there are many kinds."""
        return getattr(self._function, "__module__", "") == "arrayjit.arrays.eager"

    @property
    def _name(self) -> str:
        return str(getattr(self._function, "__qualname__", self._function))

    def __repr__(self) -> str:
        return f"<jitted {self._name}>"

    def on(
        self,
        target: str | None = None,
        *,
        threads: int | None = None,
        fast: str | Iterable[str] | None = None,
    ) -> Chosen[P, R]:
        """This function with options, whatever the function's own parameters are called."""
        return Chosen(self, Options(target, threads, fast))

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Trace, optimise and emit for these arguments (arrays, or `spec(shape, dtype)`) without running; for
        target "cuda" also where there is no GPU."""
        return self._lower(self._taken_from(kwargs), args, kwargs)

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """What the compiler decides for these arguments, and why; see `Lowered.explain`."""
        return self.lower(*args, **kwargs).explain()

    def profile(self, *args: Any, **kwargs: Any) -> Profile | GpuProfile:
        """Where the time of this call goes, for about a second or `seconds=`: each loop nest, on a GPU each
        kernel, beside the machine's limits, the user's lines, what the call itself takes. Runs on copies of
        what it writes."""
        return self._profile(self._taken_from(kwargs), args, kwargs)

    def stats(self) -> Stats:
        """Hits, misses and compiles so far, and why each miss happened."""
        return Stats(self._hits + self._entries.hits, self._misses, self._compiles, tuple(self._reasons))

    def compile_report(self) -> str:
        """Each of the latest compilations: why, where, and how long each phase took."""
        return report(tuple(self._reasons))

    def _taken_from(self, kwargs: dict[str, Any]) -> Options:
        """The options among the keywords of a call, which then are the function's own."""
        return Options(**{name: kwargs.pop(name) for name in self._said if name in kwargs})

    def _recorded_call(self, options: Options, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        start = time.perf_counter()
        try:
            return self._call(options, args, kwargs)
        finally:
            note(self._name, "call", start)

    def _call(self, options: Options, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if tracing():
            return functions.call_inline(self._function, args, kwargs)
        try:
            signature, leaves = key_of(args, kwargs, self._declared)
            if RECORDER.values is not None:
                signature = (*signature, VALUES)
            chosen = self._chosen(options)
            key = self._with_baked(signature, leaves)
            known = self._variants.get(chosen, key)
            if known is not None and known.variant.is_valid():
                self._hits += 1
                variant = known.variant
                if options == UNSAID and isinstance(variant, Variant):
                    self._entries.offer(self, variant, args, kwargs, leaves, signature)
            else:
                variant = self._missed(chosen, signature, leaves, args, kwargs)
            if options.target is not None:
                _require_target(variant.device, options.target)
            return variant(leaves)
        except (UserError, CompilerBug) as error:
            raise _for_the_user(error) from error.__cause__

    def _lower(self, options: Options, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Lowered:
        try:
            key, given = key_of(args, kwargs, self._declared)
            with garbage.resting():
                traced, built, device = self._built(self._chosen(options), args, kwargs, given)
            if options.target is not None:
                _require_target(device, options.target)
            if self._making.tune is not None:
                built = tuning.tuned(built, self._making.tune)
        except (UserError, CompilerBug) as error:
            raise _for_the_user(error) from error.__cause__

        described = describe_call(self._function, args, kwargs, self._declared, traced.baked)

        def leaves_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Sequence[Any]:
            other, leaves = key_of(args, kwargs, self._declared)
            if other == key and all(fact.read(given) == fact.read(leaves) for fact in traced.baked):
                return leaves
            new = describe_call(self._function, args, kwargs, self._declared, traced.baked)
            raise CompiledForOther(
                "the arguments differ from those that this code was compiled for",
                loc=user_location(),
                details=(explain_miss(new, [described]),),
                fix="call the jitted function itself, which compiles for any arguments",
            )

        return Lowered(traced, built, leaves_of, device, integers_among(traced, given))

    def _profile(
        self, options: Options, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Profile | GpuProfile:
        seconds = 1.0 if "seconds" in parameters_of(self._function) else kwargs.pop("seconds", 1.0)
        lowered = self._lower(options, args, kwargs)
        call = self if options == UNSAID else Chosen(self, options)
        profiling = profiled if lowered.build.backend.driver.is_host else gpu_profiled
        try:
            found: Profile | GpuProfile = profiling.profile(lowered, args, kwargs, call, seconds)
        except (UserError, CompilerBug) as error:
            raise _for_the_user(error) from error.__cause__
        return found

    def _chosen(self, options: Options) -> Choice:
        """The target of a call: the call's, else the context's, else the decorator's, else the setting's. The
        threads that may share its loops: the call's, else the decorator's, else all of the device's. What may
        change bits: as the call says, else the decorator."""
        target = target_in_use() if options.target is None else options.target
        if target is None:
            target = default_target() if self._options.target is None else self._options.target
        if not isinstance(target, str):
            raise UnknownTarget(f"a target is named by a string, not by {target!r}", loc=user_location())
        threads = self._options.threads if options.threads is None else options.threads
        fast = self._options.fast if options.fast is None else options.fast
        require_threads(threads)
        return Choice(target, threads, fast_in(fast))

    def _with_baked(self, signature: Key, leaves: Sequence[Any]) -> Key:
        """The key of a call: its signature and the numbers that are compiled in."""
        baked = self._baked.get(signature)
        return signature if baked is None else (*signature, *(fact.read(leaves) for fact in baked))

    def _missed(
        self,
        chosen: Choice,
        signature: Key,
        leaves: Sequence[Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Linked:
        """Compile for a signature, once even when several threads ask for it."""
        with self._lock:
            key = self._with_baked(signature, leaves)
            found = self._variants.get(chosen, key)
            if found is not None and found.variant.is_valid():
                self._hits += 1
                return found.variant
            rebound = "" if found is None else found.rebound()
            known = self._variants.described(chosen)
            if is_forbidden():
                described = describe_call(self._function, args, kwargs, self._declared, {})
                raise forbidden(self._name, rebound or explain_miss(described, known))
            self._misses += 1
            start = time.perf_counter()
            variant = self._made(chosen, signature, leaves, args, kwargs)
            baked = variant.convention.baked
            note(f"compile {self._name}", "compile", start)
            self._compiles += 1
            self._bake(signature, baked)
            key = self._with_baked(signature, leaves)
            described = describe_call(self._function, args, kwargs, self._declared, baked)
            reason = rebound or explain_miss(described, known)
            milliseconds = (time.perf_counter() - start) * 1e3
            phases = {**variant.emitted.seconds, **variant.procedure.executable.seconds}
            target = variant.emitted.backend.name
            miss = Miss(reason, target, milliseconds, call_site(), self._name, phases)
            self._reasons.append(miss)
            log(miss)
            self._keep(chosen, key, variant, described)
            if len(known) + 1 == MANY and not rebound and not self._is_ours:
                warn_of_many(self._name, (*known, described), miss.loc)
            return variant

    def _made(
        self,
        chosen: Choice,
        signature: Key,
        leaves: Sequence[Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Linked:
        """A variant for a call: what an earlier process kept of it, or made now."""
        device = _device_of(leaves, chosen.target)
        target = chosen.target if device is None else device.driver.name
        call = self._kept_call(chosen._replace(target=target), signature, leaves, device)
        if call is not None:
            opt = self._making.opt
            found = recalled(call, leaves, target, threads=chosen.threads, opt=opt, device=device)
            if found is not None:
                return _linked(*found, device)
        with garbage.resting():
            traced, build, device = self._built(chosen, args, kwargs, leaves)
        if self._making.tune is not None:
            binding = Binding(traced.sources, traced.outputs)
            arrays = binding.arrays(leaves) if device is None else None
            build = tuning.tuned(build, self._making.tune, arrays)
        with garbage.resting():
            variant = _linked(traced, build, device)
        if call is not None:
            call.remember(traced, build.code, build.key, leaves)
        return variant

    def _kept_call(
        self, chosen: Choice, signature: Key, leaves: Sequence[Any], device: Device | None
    ) -> Call | None:
        """A call as other processes may know it; None where nothing of it is kept."""
        if self._making.tune is not None or self._making.check or RECORDER.values is not None:
            return None
        if Settings.from_environment().watches:
            return None
        if any(isinstance(leaf, Resident) for leaf in leaves):
            if placed.donated_among(leaves):
                return None
            signature = tuple(map(_named_place, signature))
        named = self._declared.static, self._declared.any_length
        told = tuple((tuple(sorted(some.positions)), tuple(sorted(some.names))) for some in named)
        said = signature, told, self._making.trusts_indices, self._making.branches
        return kept_call(self._function, said, *chosen, device)

    def _keep(self, choice: Choice, key: Key, variant: Linked, described: Description) -> None:
        """Keep a variant in place of one of that name, and of others where there is no room."""
        self._forget(choice, key)
        self._variants.add(choice, key, variant, described)
        for name in self._variants.surplus(self._entries.hits_of):
            self._forget(*name)

    def _forget(self, choice: Choice, key: Key) -> None:
        variant = self._variants.remove(choice, key)
        if isinstance(variant, Variant):
            self._entries.withdraw(self, variant)

    def _bake(self, signature: Key, baked: Iterable[Fact]) -> None:
        """Note what is compiled in about the numbers in calls of this signature."""
        known = self._baked.get(signature, ())
        if not set(baked) <= set(known):
            self._baked[signature] = tuple(dict.fromkeys((*known, *baked)))

    def _built(
        self, chosen: Choice, args: tuple[Any, ...], kwargs: Mapping[str, Any], leaves: Sequence[Any]
    ) -> tuple[Traced, Build, Device | None]:
        settings = Settings.from_environment()
        start = time.perf_counter()
        making = self._making
        traced = functions.trace_function(
            self._function, args, kwargs, self._declared, making.trusts_indices, making.branches
        )
        note("trace", "compile", start)
        checks = making.check if RECORDER.values is None else (*making.check, VALUES)
        traced = replace(traced, computation=replace(traced.computation, checks=checks))
        seconds = {"trace": time.perf_counter() - start}
        target, threads, fast = chosen
        try:
            device = _device_of([*leaves, *traced.captured], target)
        except BackendUnavailable:
            device = None  # `build` decides whether code can be shown all the same
        if device is not None:
            target = device.driver.name
            traced = donation.with_donated(traced, placed.donated_among(leaves))
        built = build(
            traced.computation, target, settings, threads=threads, fast=fast, opt=making.opt, device=device
        )
        return traced, replace(built, seconds={**seconds, **built.seconds}), device


class Chosen(Generic[P, R]):
    """A jitted function with options of its calls."""

    __slots__ = ("_jitted", "_options")

    def __init__(self, jitted: JitFunction[P, R], options: Options) -> None:
        self._jitted = jitted
        self._options = options

    def __repr__(self) -> str:
        said = (f"{name}={value!r}" for name, value in self._options._asdict().items() if value is not None)
        return f"<jitted {self._jitted._name} with {', '.join(said) or 'no options'}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        jitted = self._jitted
        call = jitted._call if RECORDER.timeline is None else jitted._recorded_call
        return call(self._options, args, kwargs)  # type: ignore[no-any-return]

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Lowered:
        """As `JitFunction.lower`."""
        return self._jitted._lower(self._options, args, kwargs)

    def explain(self, *args: P.args, **kwargs: P.kwargs) -> Explanation:
        """As `JitFunction.explain`."""
        return self.lower(*args, **kwargs).explain()

    def profile(self, *args: Any, **kwargs: Any) -> Profile | GpuProfile:
        """As `JitFunction.profile`."""
        return self._jitted._profile(self._options, args, kwargs)


@overload
def jit(
    function: Callable[P, R],
    /,
    *,
    target: str | None = None,
    threads: int | None = None,
    static_argnames: str | Sequence[str] = (),
    any_length: str | Sequence[str] = (),
    branches: bool = False,
    unchecked: bool = False,
    tune: float | None = None,
    opt: int = DEFAULT_OPT,
    check: str | Iterable[str] | None = None,
    fast: str | Iterable[str] | None = None,
) -> JitFunction[P, R]: ...
@overload
def jit(
    function: None = None,
    /,
    *,
    target: str | None = None,
    threads: int | None = None,
    static_argnames: str | Sequence[str] = (),
    any_length: str | Sequence[str] = (),
    branches: bool = False,
    unchecked: bool = False,
    tune: float | None = None,
    opt: int = DEFAULT_OPT,
    check: str | Iterable[str] | None = None,
    fast: str | Iterable[str] | None = None,
) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...
def jit(
    function: Callable[..., Any] | None = None,
    /,
    *,
    target: str | None = None,
    threads: int | None = None,
    static_argnames: str | Sequence[str] = (),
    any_length: str | Sequence[str] = (),
    branches: bool = False,
    unchecked: bool = False,
    tune: float | None = None,
    opt: int = DEFAULT_OPT,
    check: str | Iterable[str] | None = None,
    fast: str | Iterable[str] | None = None,
) -> Any:
    """Compile a NumPy function; usable as `@jit` and as `@jit(target=..., static_argnames=...)`.

    `target` is the default target, one that `python -m arrayjit targets` lists, `threads` how many threads
    share the loops of a call at most, by default all that the target has. Arguments named in
    `static_argnames` are compiled in by value: they may be used where Python needs a number (`range(n)`, `if
    flag`) and must be hashable. Arrays of arguments named in `any_length` may have any number of rows, with
    one compilation for all lengths up to each power of two; others are compiled for one shape. With
    `branches` the compiled function decides conditions on computed values: `if`, `while`, and the `break` and
    `return` under them, are taken from its source (docs/control.md). Arrays and Python scalars are arguments
    otherwise, of which the value is compiled in only where Python needs it;
    anything else is compiled in. With `unchecked` no index that is computed when the function runs is
    checked: one out of bounds reads or writes other memory. With `tune` each compilation tries schedules of
    the loops for about so many seconds and keeps the fastest, also for later processes. `opt`, from 0 to 3,
    is the code generator's effort: 0 takes a third of the time for slower code, 3 runs LLVM's own passes too,
    which seldom helps. Results are the same bits. `check` names what calls look for and stop at, at the
    user's line with index and value: "nan" (the first that is computed from numbers), "bounds" (indices that
    plain code takes to be right, also with `unchecked`), "overflow" (of integers); by default what
    `ARRAYJIT_CHECK` names. `fast` names what may change bits on GPUs: with "atomics" threads scatter floats
    in any order, which gives other last bits in every run, with "tf32" tensor cores form products of float32,
    from factors rounded to 10 bits of fraction.

    Raises TypeError for what is no function, StaticArgumentError for a name that is no parameter,
    UnknownTarget for a target that is none, SettingError for such a check, UnsupportedError for a function
    with `yield` or `async`. Calls raise what NumPy would raise, as subclasses that name the user's line, and
    UnsupportedError for what arrayjit does not trace.
    """
    checks = checks_wanted() if check is None else names_in(check, CHECKS, "check")
    options = Options(target, threads, fast)
    static, long = names_of("static_argnames", static_argnames), names_of("any_length", any_length)
    making = Making(static, unchecked, tune, opt, checks, long, branches)
    made = _wanted()
    if function is None:
        return lambda decorated: made(decorated, options, making)
    return made(function, options, making)


def _wanted() -> type[JitFunction[..., Any]]:
    return native(JitFunction) if entry_wanted() == "native" else JitFunction


@functools.lru_cache(100)
def _made_again(function: Callable[..., Any], options: Options, making: Making) -> JitFunction[..., Any]:
    """The function that pickles say to make from a plain one: the same for all of them, with what it has
    compiled."""
    return _wanted()(function, options, making)


def _unmade() -> JitFunction[..., Any]:
    """A function that a pickle says all about."""
    wanted = _wanted()
    return wanted.__new__(wanted)


def spec(shape: int | Sequence[int], dtype: Any = np.float64) -> Spec:
    """An argument by its shape and dtype alone, for `f.lower(...)`."""
    extents = tuple(map(index, shape)) if isinstance(shape, Iterable) else (index(shape),)
    if min(extents, default=0) < 0:
        raise ShapeError(f"shape {extents} has a negative size", fix="give sizes of 0 or more")
    return Spec(extents, np.dtype(dtype))


def _device_of(arrays: Sequence[Any], target: str) -> Device | None:
    """The device that a call on these runs on, with results that stay there; None for a call on NumPy's
    memory."""
    if any(isinstance(array, Resident) for array in arrays):
        device: Device = placed.device_among(arrays)
        return device
    first = backend(target).get_device(0)
    return None if first.driver.is_host else first


def _named_place(part: Any) -> Any:
    """A part of a signature as any process would tell it: places of Arrays by the names of their devices."""
    match part:
        case (Device(name=name), bool()):
            return name
        case _:
            return part


def _linked(convention: Convention, emitted: Emitted, device: Device | None) -> Linked:
    """What calls run: on a device's arrays, or on NumPy's."""
    made: Linked = (
        Variant(convention, emitted) if device is None else placed.Placed(convention, emitted, device)
    )
    return made


def _require_target(device: Device | None, target: str) -> None:
    """Raise where a call names another target than that of its Arrays."""
    if device is not None and device.driver.name != target.lower():
        raise DeviceMismatch(
            f"the call is for target {target!r}, but has arrays on {device.name}",
            fix=f"leave target= out, or bring them there: x.to({target!r})",
        )


def _for_the_user(error: Exception) -> Exception:
    """The error with the user's line, and a traceback of the user's frames only unless
    `ARRAYJIT_TRACEBACK=full`."""
    if isinstance(error, UserError):
        error.loc = error.loc or user_location()
    if isinstance(error, CompilerBug) or Settings.from_environment().full_traceback:
        return error
    frames = []
    trace = error.__traceback__
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            frames.append(trace)
        trace = trace.tb_next
    kept: TracebackType | None = None
    for frame in reversed(frames):
        kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return error.with_traceback(kept)
