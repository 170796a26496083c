"""The rooms and who may import whom (docs/architecture.md), read from the source without running it."""

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Source root of each top-level package.
ROOTS = {
    "lagwise": ROOT,
    "lagwise_collectors": ROOT / "collectors",
    "lagwise_spark": ROOT / "spark",
    "lagwise_alerts": ROOT / "alerts",
    "lagwise_dashboard": ROOT / "dashboard",
    "lagwise_sandbox": ROOT / "sandbox",
    "lagwise_app": ROOT / "app",
}
GROUND, ROOF = "lagwise", "lagwise_app"
MIDDLE = tuple(package for package in ROOTS if package not in (GROUND, ROOF))
#: The one door between rooms in the middle: what operators see of alerts and do about them.
DOORS = {"lagwise_dashboard": ("lagwise_alerts.operate",)}
#: What each room of the ground rests on.
FOUNDATIONS = {
    "lagwise.domain": (),
    "lagwise.platform": (),
    "lagwise.config": ("lagwise.platform",),
    "lagwise.operational": ("lagwise.platform",),
    "lagwise.traces": ("lagwise.domain", "lagwise.platform"),
    "lagwise.tables": ("lagwise.domain", "lagwise.config", "lagwise.platform"),
    "lagwise.links": ("lagwise.domain", "lagwise.config", "lagwise.platform"),
    "lagwise.probe": (),
    "lagwise.__main__": (),
}
#: Who alone may import what.
RESERVED = {
    "confluent_kafka": ("lagwise_collectors", "lagwise_sandbox"),
    "pyspark": ("lagwise_spark",),
    "py4j": ("lagwise_spark",),
    "streamlit": ("lagwise_dashboard",),
    "plotly": ("lagwise_dashboard",),
    "pandas": ("lagwise_dashboard",),
    "sqlalchemy": ("lagwise.operational", "lagwise_alerts", "lagwise_dashboard", "lagwise_collectors.external_offsets"),
    "httpx": ("lagwise_alerts", "lagwise_collectors.external_offsets", "lagwise_collectors.kafka_protocol.security"),
    "apprise": ("lagwise_alerts",),
    "rich": ("lagwise_app",),
    "psutil": ("lagwise_app", "lagwise_spark", "lagwise_sandbox", "lagwise_collectors"),
}


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of the product: its dotted name and its file."""
    for package, root in ROOTS.items():
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


MODULES = dict(modules())


@cache
def imports(name: str, *, for_type_checking: bool = False) -> frozenset[str]:
    """Every module a module imports, anywhere in it, except (unless asked for) for type checking only."""
    path = MODULES[name]
    found: set[str] = set()
    for node in _statements(_tree(path).body, for_type_checking):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= set(_from(name, path, node))
    return frozenset(found)


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _statements(body: Iterable[ast.stmt], for_type_checking: bool) -> Iterator[ast.stmt]:
    """Statements and those within them. Expressions, which are most of a tree, import nothing."""
    for node in body:
        yield node
        if for_type_checking or not _is_type_checking(node):
            yield from _statements(getattr(node, "body", ()), for_type_checking)
        for part in ("orelse", "finalbody"):
            yield from _statements(getattr(node, part, ()), for_type_checking)
        for block in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            yield from _statements(block.body, for_type_checking)


def _from(name: str, path: Path, node: ast.ImportFrom) -> Iterator[str]:
    base = node.module or ""
    if node.level:
        package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
        base = ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])
    for alias in node.names:  # `from lagwise import config` imports a module of ours, `from x import f` does not
        yield f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def is_in(module: str, *rooms: str) -> bool:
    return any(module == room or module.startswith(room + ".") for room in rooms)


def ours(module: str) -> bool:
    return is_in(module, *ROOTS)


def offences(importers: tuple[str, ...], allowed: tuple[str, ...]) -> list[str]:
    """Imports of ours by modules of these rooms that are neither of their own room nor allowed."""
    return [
        f"{name} imports {imported}"
        for name in MODULES
        if is_in(name, *importers)
        for imported in sorted(imports(name))
        if ours(imported) and imported != "lagwise" and not is_in(imported, *importers, *allowed)
    ]


def test_the_rooms_are_there() -> None:
    assert {name.partition(".")[0] for name in MODULES} == set(ROOTS)
    assert imports("lagwise.tables.store") >= {
        "duckdb",
        "lagwise.platform.errors",
        "lagwise.tables.open_tables",
    }  # imports are seen


def test_the_domain_uses_numpy_and_the_standard_library_only() -> None:
    """Rules are functions on columns of numpy."""
    known = sys.stdlib_module_names | {"numpy"}
    foreign = [
        f"{name} imports {imported}"
        for name in MODULES
        if is_in(name, "lagwise.domain")
        for imported in sorted(imports(name))
        if not is_in(imported, "lagwise.domain") and imported.partition(".")[0] not in known
    ]
    assert foreign == []


def test_every_ground_package_declares_its_dependencies() -> None:
    rooms = {".".join(name.split(".")[:2]) for name in MODULES if is_in(name, GROUND)} - {GROUND}
    assert rooms == set(FOUNDATIONS)


@pytest.mark.parametrize("room", FOUNDATIONS)
def test_the_ground_knows_nothing_of_the_rooms_above(room: str) -> None:
    assert offences((room,), FOUNDATIONS[room]) == []


@pytest.mark.parametrize("room", MIDDLE)
def test_rooms_in_the_middle_know_the_ground_and_not_each_other(room: str) -> None:
    assert offences((room,), (GROUND, *DOORS.get(room, ()))) == []


@pytest.mark.parametrize("package", RESERVED)
def test_only_some_import(package: str) -> None:
    users = [name for name in MODULES if any(is_in(imported, package) for imported in imports(name))]
    assert [name for name in users if not is_in(name, *RESERVED[package])] == []


def test_reports_are_made_without_streamlit() -> None:
    """`lagwise size --html` writes what the page hands over; a web server has no part in it."""
    waiting = [name for name in MODULES if is_in(name, "lagwise_dashboard.report")]
    assert len(waiting) > 5
    reached: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += imports(name) if name in MODULES else ()
    assert "plotly.graph_objects" in reached
    assert [name for name in reached if is_in(name, "streamlit")] == []


def test_no_modules_import_in_a_circle() -> None:
    """Within a room, for type checking and inside functions too: one of them is in the wrong place."""
    assert circles({name: {m for m in all_imports(name) if m != name} for name in MODULES}) == []


def test_no_packages_import_in_a_circle() -> None:
    """Two folders that need each other are one, or a third one is missing. A package may hold smaller ones."""
    arrows: dict[str, set[str]] = {}
    for name in MODULES:
        for imported in all_imports(name):
            ours, theirs = package_of(name), package_of(imported)
            if not is_in(ours, theirs) and not is_in(theirs, ours):
                arrows.setdefault(ours, set()).add(theirs)
    assert circles(arrows) == []


def all_imports(name: str) -> set[str]:
    """Modules of ours that a module imports anywhere, for type checking as well."""
    return {module for module in imports(name, for_type_checking=True) if module in MODULES}


def package_of(module: str) -> str:
    return module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]


def circles(arrows: Mapping[str, set[str]]) -> list[str]:
    """Each circle of arrows once, as the way round it."""
    found: list[str] = []
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            found.append(" → ".join([*path[path.index(name) :], name]))
            return
        if name in done:
            return
        for imported in sorted(arrows.get(name, ())):
            visit(imported, (*path, name))
        done.add(name)

    for name in arrows:
        visit(name, ())
    return found


def test_circles_are_seen() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == ["a → b → c → a"]


def test_source_roots_are_no_packages() -> None:
    """`spark` or `collectors` must never become import names in somebody's environment."""
    for package, root in ROOTS.items():
        if package != "lagwise":
            assert not (root / "__init__.py").exists()


def test_modules_stay_small() -> None:
    lines = {name: len(path.read_text().splitlines()) for name, path in MODULES.items()}
    assert {name: number for name, number in lines.items() if number > 350} == {}
