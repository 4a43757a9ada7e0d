"""The house: a floor imports lower floors only, rooms of floor 2 are blind to each other, no circles.

The rules are those of docs/ARCHITECTURE.md; they are checked on the text of the files, so that imports
inside functions and for typing only count as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "arrayjit"

FLOORS = (
    {"errors", "frozen", "timeline", "late", "garbage", "locks", "settings", "cache", "processor"},
    {"ir"},
    {"tracer", "assignments", "passes", "targets", "runtime"},
    {
        "arrays",
        "backends",
        "compilations",
        "compile",
        "devices",
        "stages",
        "stats",
        "reuse",
        "trials",
        "variants",
        "tuning",
        "pickling",
        "entry",
        "explanation",
        "options",
        "exporting",
        "traces",
        "value_log",
        "scripts",
        "drawing",
        "pages",
        "api",
        "contest",
        "parallel",
        "profile",
        "demo",
        "__init__",
        "__main__",
    },
)
BLIND_FLOOR = 2
STOREYS = {
    "tracer": ("record", "values", "indices", "loops", "functions", "source", "names", "calls"),
    "passes": ("analysis", "structure", "bodies", "products", "schedule", "gpu"),
}
"""The folders inside a room, each of which imports itself and those before it."""

MAY_IMPORT_LATE = {"backends"}
BANNED_NAMES = {"utils", "helpers", "common", "misc", "base"}
MAX_LINES = 600


def breaches(package: Path) -> list[str]:
    """What is wrong with the package, one line each."""
    modules = {module_name(path, package): path for path in sorted(package.rglob("*.py"))}
    trees = {name: ast.parse(path.read_text()) for name, path in modules.items()}
    offers = {name: offer for name, tree in trees.items() if (offer := offered(tree)) is not None}
    graph: dict[str, set[str]] = {}
    found: list[str] = []
    for name, path in modules.items():
        tree = trees[name]
        graph[name] = {target for node in ast.walk(tree) for target in imported(node, name, path, modules)}
        found.extend(file_breaches(name, path, tree))
        found.extend(floor_breaches(name, graph[name]))
        found.extend(offer_breaches(name, path, tree, modules, offers))
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        found.append(f"import circle: {' -> '.join(circle.args[1])}")
    return found


def file_breaches(name: str, path: Path, tree: ast.Module) -> Iterator[str]:
    """What is wrong with a file by itself."""
    lines = len(path.read_text().splitlines())
    if lines > MAX_LINES:
        yield f"{name}: {lines} lines, at most {MAX_LINES} are allowed"
    for part in BANNED_NAMES.intersection(name.split(".")):
        yield f"{name}: {part!r} says nothing about what is inside"
    if name != "settings":
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in ("os.environ", "os.getenv"):
                yield f"{name}:{node.lineno}: the environment is for `settings` to read"
    if name not in MAY_IMPORT_LATE:
        for scope in ast.walk(tree):
            if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                for node in ast.walk(scope):
                    if isinstance(node, (ast.Import, ast.ImportFrom)):
                        yield f"{name}:{node.lineno}: import inside a function"


def floor_breaches(name: str, targets: set[str]) -> Iterator[str]:
    """Which imports of a module go up, or into a room that it must not know."""
    own = floor(name)
    if own is None:
        yield f"{name}: stands on no floor"
        return
    for target in sorted(targets):
        other = floor(target)
        if other is not None and other > own:
            yield f"{name} (floor {own}) imports {target} (floor {other})"
        elif own == other == BLIND_FLOOR and room(name) != room(target):
            yield f"{name} imports {target}: rooms of floor {own} are blind to each other"
        elif room(name) == room(target) and storey(name) < storey(target):
            yield f"{name} imports {target}, which stands above it"


def offered(tree: ast.Module) -> set[str] | None:
    """What `__all__` lists; None for a file without it."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return {str(name) for name in ast.literal_eval(node.value)}
    return None


def offer_breaches(
    name: str, path: Path, tree: ast.Module, modules: dict[str, Path], offers: dict[str, set[str]]
) -> Iterator[str]:
    """What a module takes from others that is not in their `__all__`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            parts = [*package_of(name, path, node.level)[1:], *([node.module] if node.module else [])]
            origin = ".".join(parts)
            for alias in node.names:
                is_module = f"{origin}.{alias.name}" in modules
                if origin in offers and not is_module and alias.name not in offers[origin]:
                    yield f"{name} imports {alias.name}, which {origin} does not offer"


def room(module: str) -> str:
    return module.split(".")[0]


def storey(module: str) -> int:
    """Which folder of its room a module is in, counted from below; a room's own file is above them all."""
    order = STOREYS.get(room(module), ())
    folder = module.split(".")[1] if "." in module else ""
    return order.index(folder) if folder in order else len(order)


def floor(module: str) -> int | None:
    return next((level for level, rooms in enumerate(FLOORS) if room(module) in rooms), None)


def module_name(path: Path, package: Path) -> str:
    """`ir.ops` for ir/ops.py, `ir` for ir/__init__.py, `__init__` for the package's own."""
    parts = path.relative_to(package).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def imported(node: ast.AST, importer: str, path: Path, modules: dict[str, Path]) -> Iterator[str]:
    """The package's own modules that an import statement names."""
    match node:
        case ast.Import(names=names):
            dotted = [alias.name for alias in names]
        case ast.ImportFrom(module=module, names=names, level=level):
            start = package_of(importer, path, level) if level else []
            origin = ".".join([*start, *([module] if module else [])])
            dotted = [f"{origin}.{alias.name}" for alias in names]
        case _:
            return
    for name in dotted:
        own, _, inside = name.partition(".")
        if own == "arrayjit":
            while inside and inside not in modules:
                inside = inside.rpartition(".")[0]
            target = inside or "__init__"
            if target != importer:
                yield target


def package_of(importer: str, path: Path, level: int) -> list[str]:
    """Where `level` dots lead from a module, as the parts of a dotted name."""
    folders = ["arrayjit", *importer.split(".")] if importer != "__init__" else ["arrayjit"]
    if path.name != "__init__.py":
        folders.pop()
    return folders[: len(folders) - (level - 1)]


def test_the_package_keeps_its_rules() -> None:
    assert breaches(PACKAGE) == []


@pytest.mark.parametrize(
    ("file", "text", "breach"),
    [
        ("ir/ops.py", "from ..tracer import values", "ir.ops (floor 1) imports tracer.values (floor 2)"),
        ("ir/ops.py", "from .. import compile", "ir.ops (floor 1) imports compile (floor 3)"),
        ("errors.py", "import arrayjit.ir.ops", "errors (floor 0) imports ir.ops (floor 1)"),
        ("ir/ops.py", "import arrayjit", "ir.ops (floor 1) imports __init__ (floor 3)"),
        (
            "passes/fuse.py",
            "from ..tracer.values.array import Array",
            "passes.fuse imports tracer.values.array: rooms of floor 2 are blind to each other",
        ),
        (
            "passes/fuse.py",
            "if TYPE_CHECKING:\n    from ..compile import build",
            "passes.fuse (floor 2) imports compile (floor 3)",
        ),
        (
            "tracer/values/array.py",
            "from ..calls.function import trace",
            "tracer.values.array imports tracer.calls.function, which stands above it",
        ),
        ("ir/ops.py", "def f():\n    import numpy", "ir.ops:2: import inside a function"),
        ("ir/ops.py", "CPU = os.environ['CPU']", "ir.ops:1: the environment is for `settings` to read"),
        ("ir/utils.py", "", "ir.utils: 'utils' says nothing about what is inside"),
        ("shed.py", "", "shed: stands on no floor"),
        ("ir/ops.py", "x = 0\n" * 601, "ir.ops: 601 lines, at most 600 are allowed"),
        ("ir/ops.py", "from ..errors import TRACE", "ir.ops imports TRACE, which errors does not offer"),
        ("ir/ops.py", "from . import dtype", "import circle: ir.dtype -> ir.ops -> ir.dtype"),
    ],
)
def test_a_planted_breach_is_found(tmp_path: Path, file: str, text: str, breach: str) -> None:
    house = {
        "__init__.py": "from .compile import build",
        "errors.py": "__all__ = ['UserError']",
        "ir/__init__.py": "",
        "ir/ops.py": "from ..errors import UserError",
        "ir/dtype.py": "from .ops import OPS",
        "tracer/__init__.py": "",
        "tracer/values/__init__.py": "",
        "tracer/values/array.py": "from ...ir.ops import OPS",
        "tracer/calls/__init__.py": "",
        "tracer/calls/function.py": "from ..values.array import Array",
        "passes/__init__.py": "",
        "passes/fuse.py": "from ..ir import ops",
        "compile.py": "from .passes.fuse import fuse\nfrom .tracer.values import array",
        "backends.py": "def load():\n    from importlib import import_module",
    }
    assert breaches(built(tmp_path / "sound", house)) == []
    assert breach in breaches(built(tmp_path / "broken", house | {file: text}))


def built(package: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return package
