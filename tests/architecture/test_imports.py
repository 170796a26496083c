"""The rooms and who may import whom (docs/architecture.md), read from the source without running it."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Source root of each top-level package.
ROOTS = {
    "lagwise": ROOT,
    "lagwise_collectors": ROOT / "collectors",
    "lagwise_spark": ROOT / "spark",
    "lagwise_dashboard": ROOT / "dashboard",
    "lagwise_sandbox": ROOT / "sandbox",
}
SIDE_ROOMS = ("lagwise.alerts", "lagwise_collectors", "lagwise_spark", "lagwise_dashboard", "lagwise_sandbox")
#: Small helpers that every room but the domain may use.
SHARED = (
    "lagwise.addresses",
    "lagwise.commands",
    "lagwise.complaints",
    "lagwise.config",
    "lagwise.drivers",
    "lagwise.encodings",
    "lagwise.errors",
    "lagwise.files",
    "lagwise.health",
    "lagwise.leash",
    "lagwise.private_files",
    "lagwise.logs",
    "lagwise.operational",
    "lagwise.program",
    "lagwise.secrets",
    "lagwise.trace_csv",
    "lagwise.trace_rows",
    "lagwise.traces",
)
DOMAIN, TABLES = "lagwise.domain", "lagwise.tables"
#: The one door between side rooms: what the operational database holds, whose groups are, and what operators do about
#: alerts.
OPERATING_ALERTS = {
    "lagwise_dashboard": tuple(
        f"lagwise.alerts.{name}"
        for name in ("queries", "model", "muting", "operate", "resend", "trial", "durations", "owners", "rules")
    )
}
#: Who alone may import what.
RESERVED = {
    "confluent_kafka": ("lagwise_collectors", "lagwise_sandbox"),
    "pyspark": ("lagwise_spark",),
    "py4j": ("lagwise_spark",),
    "streamlit": ("lagwise_dashboard",),
    "plotly": ("lagwise_dashboard",),
    "pandas": ("lagwise_dashboard",),
    "sqlalchemy": ("lagwise.operational", "lagwise.alerts", "lagwise_dashboard", "lagwise_collectors.elsewhere"),
    "httpx": ("lagwise.alerts", "lagwise_collectors.elsewhere"),
    "apprise": ("lagwise.alerts",),
    "rich": (
        "lagwise.cli",
        "lagwise.demo",
        "lagwise.overview",
        "lagwise.parts_table",
        "lagwise.screen",
        "lagwise.up",
        "lagwise.wording",
    ),
    "psutil": (
        "lagwise.demo",
        "lagwise.descendants",
        "lagwise.doctor",
        "lagwise_spark",
        "lagwise_sandbox",
        "lagwise_collectors",
    ),
}


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of the product: its dotted name and its file."""
    for package, root in ROOTS.items():
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


MODULES = dict(modules())


def imports(name: str, path: Path) -> set[str]:
    """Every module a module imports, anywhere in it, except for type checking only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    unread = {
        id(node) for block in ast.walk(tree) if _is_type_checking(block) for s in block.body for node in ast.walk(s)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in unread:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= set(_from(name, path, node))
    return found


def _from(name: str, path: Path, node: ast.ImportFrom) -> Iterator[str]:
    base = node.module or ""
    if node.level:
        package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
        base = ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])
    for alias in node.names:  # `from lagwise import config` imports a module of ours, `from x import f` does not
        yield f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


IMPORTS = {name: imports(name, path) for name, path in MODULES.items()}


def is_in(module: str, *rooms: str) -> bool:
    return any(module == room or module.startswith(room + ".") for room in rooms)


def ours(module: str) -> bool:
    return is_in(module, *ROOTS)


def offences(importers: tuple[str, ...], allowed: tuple[str, ...]) -> list[str]:
    """Imports of ours by modules of these rooms that are neither of their own room nor allowed."""
    return [
        f"{name} imports {imported}"
        for name, found in IMPORTS.items()
        if is_in(name, *importers)
        for imported in sorted(found)
        if ours(imported) and imported != "lagwise" and not is_in(imported, *importers, *allowed)
    ]


def test_the_rooms_are_there() -> None:
    assert {name.partition(".")[0] for name in MODULES} == set(ROOTS)
    assert IMPORTS["lagwise.tables.store"] >= {"duckdb", "lagwise.errors", "lagwise.tables.guard"}  # imports are seen


def test_the_domain_is_standard_library_only() -> None:
    foreign = [
        f"{name} imports {imported}"
        for name, found in IMPORTS.items()
        if is_in(name, DOMAIN)
        for imported in sorted(found)
        if not is_in(imported, DOMAIN) and imported.partition(".")[0] not in sys.stdlib_module_names
    ]
    assert foreign == []


def test_the_tables_know_only_the_domain() -> None:
    assert offences((TABLES,), (DOMAIN, *SHARED)) == []


@pytest.mark.parametrize("room", SIDE_ROOMS)
def test_side_rooms_know_nothing_of_each_other_or_of_the_command_line(room: str) -> None:
    assert offences((room,), (DOMAIN, TABLES, *SHARED, *OPERATING_ALERTS.get(room, ()))) == []


def test_the_shared_helpers_know_only_each_other() -> None:
    knowing = ("lagwise.addresses", "lagwise.commands", "lagwise.trace_csv", "lagwise.trace_rows", "lagwise.traces")
    allowed = dict.fromkeys(knowing, (DOMAIN,))
    for helper in SHARED:
        assert offences((helper,), (*SHARED, *allowed.get(helper, ()))) == []


@pytest.mark.parametrize("package", RESERVED)
def test_only_some_import(package: str) -> None:
    users = [name for name, found in IMPORTS.items() if any(is_in(imported, package) for imported in found)]
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
            waiting += IMPORTS.get(name, ())
    assert "plotly.graph_objects" in reached
    assert [name for name in reached if is_in(name, "streamlit")] == []


def test_no_room_imports_in_a_circle() -> None:
    """Within a room too: a circle of modules means that one of them is in the wrong place."""
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " → ".join([*path[path.index(name) :], name])
        if name in done:
            return
        for imported in sorted(_at_the_top(name)):
            visit(imported, (*path, name))
        done.add(name)

    for name in MODULES:
        visit(name, ())


def _at_the_top(name: str) -> set[str]:
    """Modules of ours imported when the module is loaded (not inside a function, where a circle does no harm)."""
    path = MODULES[name]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= set(_from(name, path, node))
    return {module for module in found if module in MODULES and module != name}


def test_source_roots_are_no_packages() -> None:
    """`spark` or `collectors` must never become import names in somebody's environment."""
    for package, root in ROOTS.items():
        if package != "lagwise":
            assert not (root / "__init__.py").exists()


def test_modules_stay_small() -> None:
    """At 300 lines a module begins to do two things; a few more are borne, half as many again are not."""
    long = {name: lines for name, path in MODULES.items() if (lines := len(path.read_text().splitlines())) > 350}
    assert long == {}
