"""What calls without Python notice of objects, classes and containers."""

from __future__ import annotations

import functools
import gc
import sys
from collections import OrderedDict, defaultdict
from dataclasses import dataclass

import numpy as np
import pytest

import arrayjit
from arrayjit.entry import entries, layout, objects


class Base:
    offset = 1.0


class OtherBase:
    offset = 5.0


class Layer(Base):
    scale = 2.0

    def __init__(self, weight):
        self.weight = weight
        self.powers = [1.0, 2.0]
        self.options = {"first": 3.0, "second": 4.0}

    @property
    def doubled(self):
        return self.weight * 2

    def __call__(self, x):
        terms = [self.offset, self.doubled, *self.powers, *self.options.values()]
        for number, term in enumerate(terms):
            x = x * self.scale + term * (number + 1)
        return x


class OtherLayer(Layer):
    scale = 7.0


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b


@dataclass(frozen=True)
class Frozen:
    a: float
    b: float


@dataclass
class Pair:
    x: np.ndarray
    y: float = 2.0
    name: str = "pair"

    @arrayjit.jit
    def product(self, times):
        return self.x * self.y * times


@dataclass
class SlottedPair:
    __slots__ = ("x", "y")
    x: np.ndarray
    y: float


class Net:
    def __init__(self):
        self.layer = Layer(3.0)

    @arrayjit.jit
    def run(self, x):
        return self.layer(x)


@pytest.fixture
def x():
    return np.arange(4.0)


@pytest.fixture(params=[True, False], ids=["by version", "by entry"])
def by_version(request, monkeypatch):
    """Dicts that are looked into after they changed only, where that is told, and at each call."""
    if not request.param:
        monkeypatch.setattr(objects, "has_dict_versions", lambda: False)
        monkeypatch.setattr(objects, "has_object_versions", lambda: False)


def reorder(options):
    options["first"] = options.pop("first")


CHANGES = {
    "an attribute": lambda net: setattr(net.layer, "weight", 9.0),
    "past __setattr__": lambda net: object.__setattr__(net.layer, "weight", 9.0),
    "its dict": lambda net: vars(net.layer).update(weight=9.0),
    "another dict": lambda net: setattr(net.layer, "__dict__", {**vars(net.layer), "weight": 9.0}),
    "one of its own": lambda net: setattr(net.layer, "scale", 9.0),
    "another object": lambda net: setattr(net, "layer", Layer(9.0)),
    "its class": lambda net: setattr(net.layer, "__class__", OtherLayer),
    "an item": lambda net: net.layer.powers.__setitem__(0, 9.0),
    "an item more": lambda net: net.layer.powers.append(9.0),
    "an item less": lambda net: net.layer.powers.pop(),
    "an item of a dict": lambda net: net.layer.options.update(second=9.0),
    "an item less of a dict": lambda net: net.layer.options.pop("first"),
    "a key": lambda net: net.layer.options.update({"third": net.layer.options.pop("second")}),
    "the order": lambda net: reorder(net.layer.options),
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_of_an_object_is_noticed(native, by_version, change, x):
    net = Net()
    np.testing.assert_array_equal(native(Net.run, net, x), net.layer(x))
    CHANGES[change](net)
    expected = net.layer(x)
    np.testing.assert_array_equal(net.run(x), expected)
    np.testing.assert_array_equal(native(Net.run, net, x), expected)


CHANGES_OF_CLASSES = {
    "a number": lambda patch: patch.setattr(Layer, "scale", 9.0),
    "one of a base": lambda patch: patch.setattr(Base, "offset", 9.0),
    "a new one": lambda patch: patch.setattr(Layer, "offset", 9.0, raising=False),
    "a method": lambda patch: patch.setattr(Layer, "__call__", lambda self, x: x - self.weight),
    "a property": lambda patch: patch.setattr(Layer, "doubled", 9.0),
}


@pytest.mark.parametrize("change", CHANGES_OF_CLASSES)
def test_each_change_of_a_class_is_noticed(native, by_version, monkeypatch, change, x):
    net = Net()
    before = net.layer(x)
    np.testing.assert_array_equal(native(Net.run, net, x), before)
    with monkeypatch.context() as patch:
        CHANGES_OF_CLASSES[change](patch)
        expected = net.layer(x)
        np.testing.assert_array_equal(net.run(x), expected)
        np.testing.assert_array_equal(native(Net.run, net, x), expected)
    np.testing.assert_array_equal(net.run(x), before)


def test_other_bases_of_a_class_are_noticed(native, by_version, x):
    net = Net()
    native(Net.run, net, x)
    bases = Layer.__bases__
    try:
        Layer.__bases__ = (OtherBase,)
        np.testing.assert_array_equal(net.run(x), net.layer(x))
    finally:
        Layer.__bases__ = bases
    np.testing.assert_array_equal(net.run(x), net.layer(x))


GLOBAL = Slotted(2.0, [3.0])


class Keyed(dict):
    """Items as attributes."""

    unit = 1.0

    def __getattr__(self, name):
        return self[name]


class SlottedKeyed(Keyed):
    __slots__ = ()


class Joined(dict):
    """Attributes as items."""

    unit = 1.0

    def __init__(self, **items):
        super().__init__(items)
        self.__dict__ = self


CHANGES_OF_DICTS = {
    "an item": lambda held, patch: held.update(rate=9.0),
    "an item of an item": lambda held, patch: held["steps"].append(9.0),
    "an item less": lambda held, patch: held.pop("last"),
    "the order": lambda held, patch: held.update(rate=held.pop("rate")),
    "an attribute": lambda held, patch: setattr(held, "unit", 9.0),
    "one of its class": lambda held, patch: patch.setattr(type(held).__mro__[-3], "unit", 9.0),
}


KINDS_OF_DICTS = [
    *((kind, change) for kind in (Keyed, SlottedKeyed, Joined) for change in CHANGES_OF_DICTS),
    *((functools.partial(defaultdict, float), change) for change in list(CHANGES_OF_DICTS)[:4]),
]


@pytest.mark.parametrize(("kind", "change"), KINDS_OF_DICTS)
def test_each_change_of_a_dict_of_another_class_is_noticed(native, by_version, monkeypatch, kind, change, x):
    held = kind(rate=2.0, steps=[3.0], last=4.0)

    def plain(x):
        for number, step in enumerate(held.values()):
            x = x * getattr(held, "unit", 1.0) + (number + 1) * (sum(step) if type(step) is list else step)
        return x

    jitted = arrayjit.jit(plain)
    np.testing.assert_array_equal(native(jitted, x), plain(x))
    CHANGES_OF_DICTS[change](held, monkeypatch)
    np.testing.assert_array_equal(jitted(x), plain(x))
    np.testing.assert_array_equal(native(jitted, x), plain(x))


def scaled(x, factor, extra=1.0):
    return x * factor + extra


CHANGES_OF_PARTIALS = {
    "a keyword": lambda part: part.keywords.update(factor=9.0),
    "a keyword more": lambda part: part.keywords.update(extra=9.0),
    "all": lambda part: part.__setstate__((scaled, (), {"factor": 5.0}, {})),
}


@pytest.mark.parametrize("change", CHANGES_OF_PARTIALS)
def test_each_change_of_a_function_with_arguments_is_noticed(native, by_version, change, x):
    table = {"scaled": functools.partial(scaled, factor=2.0)}

    def plain(x):
        return table["scaled"](x)

    jitted = arrayjit.jit(plain)
    np.testing.assert_array_equal(native(jitted, x), plain(x))
    CHANGES_OF_PARTIALS[change](table["scaled"])
    np.testing.assert_array_equal(jitted(x), plain(x))
    np.testing.assert_array_equal(native(jitted, x), plain(x))


def test_slots_of_a_global_are_noticed(native, by_version, monkeypatch, x):
    def plain(x):
        return x * GLOBAL.a + GLOBAL.b[0]

    jitted = arrayjit.jit(plain)
    np.testing.assert_array_equal(native(jitted, x), plain(x))
    for name, value in (("a", 5.0), ("b", [4.0])):
        monkeypatch.setattr(GLOBAL, name, value)
        np.testing.assert_array_equal(jitted(x), plain(x))
        np.testing.assert_array_equal(native(jitted, x), plain(x))
    GLOBAL.b[0] = 7.0
    np.testing.assert_array_equal(jitted(x), plain(x))


def test_a_slot_that_becomes_empty_is_noticed(native, x):
    held = Slotted(2.0, 3.0)
    jitted = arrayjit.jit(lambda x: x * held.a + getattr(held, "b", 1.0))
    native(jitted, x)
    del held.b
    np.testing.assert_array_equal(native(jitted, x), x * 2 + 1)
    held.b = 4.0
    np.testing.assert_array_equal(jitted(x), x * 2 + 4)


def test_objects_that_nobody_changes(native, x):
    held = Frozen(2.0, 3.0)
    np.testing.assert_array_equal(native(arrayjit.jit(lambda x: x * held.a + held.b), x), x * 2 + 3)


def test_attributes_of_functions_are_noticed(native, by_version, x):
    def helper(x):
        return x * helper.factor

    helper.factor = 2.0
    jitted = arrayjit.jit(lambda x: helper(x))
    for factor in (2.0, 3.0, 4.0):
        helper.factor = factor
        np.testing.assert_array_equal(native(jitted, x), x * factor)
    helper.__dict__ = {"factor": 5.0}
    np.testing.assert_array_equal(jitted(x), x * 5)


def test_an_attribute_that_is_assigned_again_and_again(by_version, x):
    net = Net()
    for number in range(200):
        net.layer.weight = float(number // 20 % 3)
        np.testing.assert_array_equal(net.run(x), net.layer(x))
    assert Net.run._entries.hits


def test_an_equal_object_in_place_of_one(native, monkeypatch, x):
    """Calls go through Python once, and a few times only if that happens again and again."""
    monkeypatch.setattr(entries, "MOST_RENEWALS", 3)
    net = Net()
    native(Net.run, net, x)
    for renewals in range(5):
        net.layer.weight = float(str(net.layer.weight))
        net.run(x)
        before = Net.run._entries.hits
        net.run(x)
        assert (Net.run._entries.hits > before) == (renewals < 3)


def test_dataclasses_as_arguments(native, x):
    plain = arrayjit.jit(lambda pair: pair.x * pair.y)
    for pair in (Pair(x, 3.0), SlottedPair(x, 3.0)):
        np.testing.assert_array_equal(native(plain, pair), x * 3)
        pair.y = 4.0
        np.testing.assert_array_equal(native(plain, pair), x * 4)
        pair.x = x + 1
        np.testing.assert_array_equal(native(plain, pair), (x + 1) * 4)
        pair.x = x[1:].copy()
        np.testing.assert_array_equal(native(plain, pair), x[1:] * 4)
        pair.y = np.float32(2.0)
        np.testing.assert_array_equal(native(plain, pair), x[1:] * 2)
        del pair.y
        if type(pair) is Pair:
            np.testing.assert_array_equal(plain(pair), x[1:] * 2)
        else:
            with pytest.raises(AttributeError):
                plain(pair)


def test_methods_of_dataclasses(native, x):
    pair = Pair(x)
    np.testing.assert_array_equal(native(Pair.product, pair, 3.0), x * 6)
    pair.name = "other"
    np.testing.assert_array_equal(native(Pair.product, pair, 3.0), x * 6)


def test_a_class_whose_field_becomes_a_property(native, monkeypatch, x):
    plain = arrayjit.jit(lambda pair: pair.x * pair.y)
    pair = Pair(x, 3.0)
    native(plain, pair)
    monkeypatch.setattr(Pair, "y", property(lambda self: float(len(self.name))))
    np.testing.assert_array_equal(plain(pair), x * 4)


class Answering:
    def __init__(self):
        self.held = 2.0

    def __getattribute__(self, name):
        return 3.0 if name == "number" else object.__getattribute__(self, name)


@pytest.mark.parametrize(
    "held",
    [Answering(), OrderedDict(number=1.0), {3.0}, memoryview(bytearray(8))],
    ids=lambda held: type(held).__name__,
)
def test_what_cannot_be_looked_into_stays_with_python(through_python, held, x):
    jitted = arrayjit.jit(lambda x: x * (2.0 if held else 1.0))
    np.testing.assert_array_equal(through_python(jitted, x), x * 2)


def test_no_reference_is_lost_or_kept(native, x):
    net, pair = Net(), Pair(x.copy(), 12345.5)
    run = arrayjit.jit(lambda pair, x: pair.x * pair.y + x)
    native(Net.run, net, x)
    native(run, pair, x)
    held = (net, net.layer, vars(net.layer), net.layer.powers, Layer, pair, pair.x, vars(pair), "weight", x)
    gc.collect()
    before = [sys.getrefcount(each) for each in held]
    for _ in range(200):
        net.run(x)
        run(pair, x)
    gc.collect()
    after = [sys.getrefcount(each) for each in held]
    assert all(abs(now - then) < 5 for now, then in zip(after, before, strict=True))


def test_places_are_found():
    assert layout.bases_place() > 0
    assert layout.dict_place(Layer(1.0)) is not None
    assert layout.dict_place(test_places_are_found) is not None
    assert layout.slot_place(Slotted.a) == object.__basicsize__
