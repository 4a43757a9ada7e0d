"""Objects of the user's in a jitted function: their methods, classes and containers."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import enum
import functools
import gc
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterator
from copy import copy, deepcopy
from types import SimpleNamespace
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import pytest
from harness import assert_same
from likeness import TARGETS, assert_runs_as_in_numpy

import arrayjit

T = TypeVar("T")


def numbers() -> np.ndarray:
    return np.linspace(1.0, 2.0, 6)


def assert_equal_to_numpy(program: Callable[..., Any], *arguments: Any) -> None:
    assert_runs_as_in_numpy(lambda: (program, arguments or (numbers(),)))


class Layer:
    """Methods that make arrays, write traced values into them, and call one another."""

    gain = 0.5

    def __init__(self, scale: float, bias: Any) -> None:
        self.scale = scale
        self.bias = np.full(6, bias)
        self.parts = [np.ones(6), self.bias]

    def filled(self, x: np.ndarray) -> np.ndarray:
        result = np.zeros(6)
        for i in range(6):
            result[i] = x[i] * self.scale + self.bias[i]
        return result

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.filled(x) * self.gain

    @property
    def norm(self) -> Any:
        squares = np.zeros(1)
        for value in self.bias:
            squares[0] += value * value
        return squares[0]

    @staticmethod
    def window(n: int) -> np.ndarray:
        w = np.empty(n)
        for i in range(n):
            w[i] = i
        return w

    @classmethod
    def make(cls, scale: float) -> Layer:
        return cls(scale, cls.gain)

    def __add__(self, other: Layer) -> Layer:
        return type(self)(self.scale + other.scale, 2.0)

    def __matmul__(self, x: np.ndarray) -> np.ndarray:
        return self(x)

    def __getitem__(self, place: int) -> Any:
        return self.parts[place]

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.parts)

    def __enter__(self) -> Any:
        return self.window(6)

    def __exit__(self, *error: Any) -> None:
        return None


class Wide(Layer):
    def __init__(self, scale: float, bias: Any) -> None:
        super().__init__(scale, bias)
        self.extra = np.arange(6.0)

    def filled(self, x: np.ndarray) -> np.ndarray:
        return super().filled(x) + self.extra


class Net:
    def __init__(self) -> None:
        self.layers = [Layer(2.0, 0.5), Wide(3.0, 0.25)]
        self.by_name = {"first": self.layers[0], "second": self.layers[1]}
        self.activation = lambda x: np.maximum(x, np.zeros(6))
        self.steps: tuple[Any, ...] = (np.tanh, self.activation, self.layers[0].filled)

    def forward(self, x: np.ndarray) -> np.ndarray:
        for layer in self.layers:
            x = self.activation(layer(x))
        return x

    def chosen(self, x: np.ndarray, name: str) -> np.ndarray:
        return self.by_name[name].filled(x) + self.by_name[name].norm

    def all_steps(self, x: np.ndarray) -> np.ndarray:
        for step in self.steps:
            x = step(x)
        return x


LAYER = Layer(2.0, 0.5)
NET = Net()


@pytest.mark.parametrize(
    "program",
    [
        LAYER,
        LAYER.filled,
        Wide(3.0, 1.0),
        NET.forward,
        NET.all_steps,
        lambda x: NET.layers[1].filled(x),
        lambda x: NET.chosen(x, "second"),
        lambda x: LAYER(x) + LAYER.norm,
        lambda x: Layer.window(6) + LAYER.window(6) * x,
        lambda x: Layer(2.0, 1.0)(x),
        lambda x: Wide.make(2.0)(x) * Wide.gain,
        lambda x: (LAYER + NET.layers[1])(x),
        lambda x: LAYER @ x,
        lambda x: LAYER[0] + LAYER[1] * len(LAYER) + sum(LAYER),
        lambda x: [method(x) for method in (LAYER.filled, NET.layers[0])],
        lambda x: functools.partial(Layer.filled, LAYER)(x),
        lambda x: getattr(LAYER, "filled")(x),  # noqa: B009
    ],
)
def test_methods_see_the_view_of_names(program: Callable[..., Any]) -> None:
    assert_equal_to_numpy(program)


def test_context_managers() -> None:
    def program(x: np.ndarray) -> np.ndarray:
        with LAYER as window:
            window[1] = x[0]
        return window

    assert_equal_to_numpy(program)


def test_generator_context_managers() -> None:
    @contextlib.contextmanager
    def scratch(n: int) -> Iterator[np.ndarray]:
        yield np.zeros(n)

    def program(x: np.ndarray) -> np.ndarray:
        with scratch(6) as memory:
            memory[2] = x[1]
        return memory

    assert_equal_to_numpy(program)


def switched(x: np.ndarray, on: bool = False) -> np.ndarray:
    return x * 2 if on is not False else x


def chosen(x: np.ndarray, flag: Any) -> Any:
    match flag:
        case True:
            return x + 1
        case _:
            return x, [y - (False is flag) for y in x]


IDENTITIES: list[Callable[..., Any]] = [
    lambda x, flag: x + 1 if flag is True else x - 1,
    lambda x, flag: switched(x, on=flag),
    lambda x, flag: (x, flag is flag, BRANCH is flag),
    lambda x, flag: (x, [flag][0] is flag, flag is (not x.ndim), flag is [BRANCH][0]),
    chosen,
]
BRANCH = True


@pytest.mark.parametrize("program", IDENTITIES)
def test_bools_are_told_apart_by_is(program: Callable[..., Any]) -> None:
    for flag in (True, False, 1, np.True_, None):
        assert_runs_as_in_numpy(lambda flag=flag: (program, (np.arange(3.0), flag)))  # type: ignore[misc]


def test_identity_equality_and_types_are_kept() -> None:
    def program(x: np.ndarray) -> Any:
        first = NET.layers[0]
        table = {first: 1, NET.layers[1]: 2}
        return x * 1, [
            first is NET.by_name["first"],
            first is NET.layers[1],
            first == NET.layers[0],
            NET.layers[1] in NET.layers,
            NET.layers.index(NET.layers[1]),
            table[NET.by_name["second"]],
            isinstance(first, Layer),
            isinstance(NET.layers[1], Layer),
            isinstance(first, Wide),
            isinstance(first, (Wide, Net)),
            isinstance(first, Wide | Net),
            type(first) is Layer,
            type(first) is Wide,
            issubclass(Wide, Layer),
            first.__class__ is Layer,
            type(first).__name__,
            hash(first) == hash(NET.by_name["first"]),
            hasattr(first, "scale"),
            hasattr(first, "absent"),
            getattr(first, "absent", 3),
            sorted(vars(first)),
            callable(first),
        ]

    assert_equal_to_numpy(program)


class Slotted:
    __slots__ = ("__hidden", "gain", "memory")

    def __init__(self, gain: float) -> None:
        self.gain = gain
        self.__hidden = gain + 1
        self.memory = np.zeros(6)

    def scaled(self, x: np.ndarray) -> np.ndarray:
        result = np.empty(6)
        result[:] = x * self.gain + self.__hidden
        self.memory[0] = x[0]
        return result


class SlottedMore(Slotted):
    __slots__ = ("more",)

    def __init__(self, gain: float) -> None:
        super().__init__(gain)
        self.more = 3

    def scaled(self, x: np.ndarray) -> np.ndarray:
        return super().scaled(x) * self.more


@dataclasses.dataclass
class Point:
    x: Any
    y: Any
    history: list[Any] = dataclasses.field(default_factory=list)

    def moved(self, by: Any) -> Point:
        where = np.zeros(6)
        where[0] = self.x[0] + by
        return dataclasses.replace(self, x=where)

    @property
    def total(self) -> Any:
        return self.x + self.y


@dataclasses.dataclass(frozen=True)
class Grid:
    n: int
    spacing: float = 0.5

    def points(self) -> np.ndarray:
        result = np.empty(self.n)
        for i in range(self.n):
            result[i] = i * self.spacing
        return result


class Pair(NamedTuple):
    left: Any
    right: Any

    def joined(self) -> np.ndarray:
        result = np.zeros(6)
        result[:3] = self.left[:3]
        result[3:] = self.right[3:]
        return result


Plain = namedtuple("Plain", "a b")


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self, r: Any) -> Any: ...

    def twice(self, r: Any) -> Any:
        return self.area(r) * 2


class Circle(Shape):
    def area(self, r: Any) -> Any:
        result = np.zeros(6)
        result[0] = r[0] * np.pi
        return result


class HasArea(Protocol):
    def area(self, r: Any) -> Any: ...


class Square(HasArea):
    def area(self, r: Any) -> Any:
        result = np.zeros(6)
        result[1] = r[1] ** 2
        return result


class Held(Generic[T]):
    def __init__(self, item: T) -> None:
        self.item = item

    def get(self) -> Any:
        memory = np.zeros(6)
        memory[:] = self.item
        return memory


class Scheme(enum.Enum):
    EULER = "euler"
    HEUN = 2

    def order(self) -> int:
        return 1 if self is Scheme.EULER else 2


class Typed:
    """A descriptor."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = "_" + name

    def __get__(self, instance: Any, owner: type) -> Any:
        result = np.zeros(6)
        result[0] = getattr(instance, self.name)
        return result

    def __set__(self, instance: Any, value: Any) -> None:
        setattr(instance, self.name, value)


class WithDescriptor:
    field = Typed()
    make = np.zeros
    bend = np.tanh

    def __init__(self, value: float) -> None:
        self.field = value

    def __getattr__(self, name: str) -> Any:
        if name == "late":
            return np.ones(6)
        raise AttributeError(name)

    partly = functools.partialmethod(lambda self, n, x: x * n + np.ones(6), 3)

    def run(self, x: np.ndarray) -> np.ndarray:
        made = self.make(6)
        made[0] = x[0]
        late = self.late
        late[1] = x[1]
        return self.bend(made) + late + self.field + self.partly(x)


class Count:
    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        return self.number


def counted_by_an_object(x: np.ndarray) -> np.ndarray:
    total = x * 0
    for i in range(Count(5)):
        total[i] += x[: Count(3)].sum() + x[Count(4)]
    return total + np.ones(Count(6)) * len(range(False, Count(4), True))


@pytest.mark.parametrize(
    "program",
    [
        Slotted(2.0).scaled,
        SlottedMore(2.0).scaled,
        lambda x: SlottedMore(2.0).scaled(x),
        lambda x: Point(x, x).moved(2).total,
        lambda x: Grid(6).points() + x,
        lambda x: GRID.points() + x,
        lambda x: Pair(x, x * 2).joined() + PAIR.joined() + PAIR.left,
        lambda x: Plain(x, 2).a * PLAIN.a + PLAIN[1],
        lambda x: CIRCLE.twice(x) + Circle().area(x) + float(isinstance(CIRCLE, Shape)),
        lambda x: Square().area(x) + SQUARE.area(x),
        lambda x: HELD.get() + Held[float](2.0).get() + x,
        lambda x: x * Scheme.HEUN.order() + float(Scheme("euler") is Scheme.EULER),
        lambda x: x * {Scheme.EULER: 2, Scheme.HEUN: 3}[SCHEME],
        lambda x: WithDescriptor(2.0).run(x) + DESCRIBED.run(x),
        counted_by_an_object,
        lambda x: CONFIG.table * x + CONFIG.scale,
        lambda x: (
            OPERATIONS["filled"](x)
            + DEFAULTS["table"]
            + QUEUE[0] * ORDERED["a"]
            + float(Layer in KINDS)
            + TABLES[Layer]
        ),
    ],
)
def test_every_kind_of_class(program: Callable[..., Any]) -> None:
    assert_equal_to_numpy(program)


GRID, PAIR, PLAIN = Grid(6, 0.25), Pair(np.ones(6), np.arange(6.0)), Plain(np.full(6, 3.0), 4)
CIRCLE, SQUARE, HELD, SCHEME = Circle(), Square(), Held(np.arange(6.0)), Scheme.HEUN
DESCRIBED = WithDescriptor(3.0)
CONFIG = SimpleNamespace(table=np.arange(6.0), scale=2)
OPERATIONS = {"filled": LAYER.filled, "tanh": np.tanh}
DEFAULTS = defaultdict(lambda: np.zeros(6), table=np.arange(6.0))
QUEUE, ORDERED, KINDS = deque([np.ones(6)]), OrderedDict(a=np.arange(6.0)), frozenset((Layer, Net))
TABLES = {Layer: np.arange(6.0), Net: np.ones(6)}


def test_objects_as_arguments() -> None:
    def program(x: np.ndarray, layers: list[Layer], point: Point, grid: Grid) -> Any:
        for layer in layers:
            x = layer.filled(x)
        return point.moved(1.0).total + x + grid.points()

    layers = [Layer(2.0, 1.0), Wide(1.0, 2.0)]
    assert_equal_to_numpy(program, numbers(), layers, Point(numbers(), numbers() * 2), Grid(6))


def test_methods_of_classes_made_inside() -> None:
    def program(x: np.ndarray, call: Callable[..., Any]) -> Any:
        class Doubled(Layer):
            def filled(self, x: np.ndarray) -> np.ndarray:
                self.calls = x
                return super().filled(x) * 2

        class Alone:
            def run(self, x: np.ndarray) -> np.ndarray:
                self.seen = np.zeros(6)
                self.seen[0] = x[0]
                return self.seen

        doubled, alone = Doubled(1.0, 2.0), Alone()
        return doubled(x) + call(alone.run)(x) + call(doubled.filled)(x) + doubled.calls + alone.seen

    wanted = program(numbers(), lambda function: function)
    for target in TARGETS:
        assert_same(arrayjit.jit(program, target=target)(numbers(), arrayjit.jit), wanted)


def oct(value: Any) -> Any:
    return value * 2


def test_bodies_of_classes_made_inside_see_globals() -> None:
    def program(x: np.ndarray) -> np.ndarray:
        @dataclasses.dataclass
        class Settings:
            table: np.ndarray = dataclasses.field(default_factory=lambda: np.arange(6.0))
            scale: float = np.pi
            twice: float = oct(1.5)
            most: float = max(1.0, 2.0)

        class Own:
            field = 3
            seen = field

        chosen = Settings()
        return x * chosen.table + chosen.scale + chosen.twice + chosen.most + Own.seen

    assert_equal_to_numpy(program)


@pytest.mark.parametrize("target", TARGETS)
def test_copies_of_numbers_are_the_numbers(target: str) -> None:
    def copies(point: Point, n: int) -> Any:
        return dataclasses.asdict(point), dataclasses.astuple(point), deepcopy({"n": n}), copy(point.x[0])

    point = Point(numbers(), 2.5, [3, True])
    assert_same(arrayjit.jit(copies, target=target)(point, 3), copies(point, 3))


def test_finalisers_run_for_the_users_objects_only() -> None:
    closed: list[str] = []

    class Resource:
        def __init__(self) -> None:
            self.table = np.arange(6.0)

        def __del__(self) -> None:
            closed.append("closed")

        def read(self, x: np.ndarray) -> np.ndarray:
            return self.table * x

    resource = Resource()
    for target in TARGETS:
        assert_same(
            arrayjit.jit(lambda x: resource.read(x), target=target)(numbers()), resource.read(numbers())
        )
    gc.collect()
    assert closed == []


class Anything:
    """Gives an attribute of any name, as stand-ins for libraries do."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        return Anything()


class HashedByName:
    def __hash__(self) -> int:
        return hash(self.name)  # type: ignore[attr-defined]  # which nobody gave it


@pytest.mark.parametrize(
    "part", [Anything(), HashedByName(), [Anything()], {1: HashedByName()}], ids=list("abcd")
)
def test_parts_with_code_that_fails_hurt_no_object_that_holds_them(part: Any) -> None:
    class Model:
        def __init__(self) -> None:
            self.part, self.scale = part, 2.0

        def apply(self, x: Any) -> Any:
            return x * self.scale

    model = Model()
    by_name, by_argument = arrayjit.jit(lambda x: model.apply(x)), arrayjit.jit(lambda x, held: held.apply(x))
    for scale in (2.0, 3.0):
        model.scale = scale
        for y in (by_name(np.ones(3)), by_argument(np.ones(3), model)):
            np.testing.assert_array_equal(y, np.full(3, scale))
