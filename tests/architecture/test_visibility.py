"""All that the pages read passes one module, which knows what their reader may see."""

import ast
import inspect
from collections.abc import Iterator

from lagwise.tables.tolerant import TolerantLake
from tests.architecture.test_imports import MODULES, is_in


def _modules(*but: str) -> Iterator[tuple[str, ast.Module]]:
    for name, path in MODULES.items():
        if is_in(name, "lagwise_dashboard") and name not in but:
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def _calls(tree: ast.Module) -> Iterator[str]:
    """What is called, as it stands there: ``Lake``, ``alert_reader.engine``."""
    return (ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call))


def _callers(what: frozenset[str], *but: str) -> set[str]:
    """The modules of the dashboard that call one of these."""
    return {name for name, tree in _modules(*but) if not what.isdisjoint(_calls(tree))}


def test_only_visibility_makes_a_lake() -> None:
    assert _callers(frozenset({"Lake", "TolerantLake", "VisibleLake", "DeltaTable"})) == {
        "lagwise_dashboard.visibility"
    }


def test_the_whole_lake_leaves_it_for_nobody_else() -> None:
    assert _callers(frozenset({"visibility._whole_lake", "visibility._made", "visibility._visible_lake"})) == set()
    names = {"_whole_lake", "_made", "_visible_lake"}
    taken = {
        name
        for name, tree in _modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "lagwise_dashboard.visibility"
        if names & {alias.name for alias in node.names}
    }
    assert taken == set()


def test_alerts_are_read_through_the_reader() -> None:
    """``operator_state`` reads nothing: it judges what was read."""
    asked = {
        (name, node.attr)
        for name, tree in _modules("lagwise_dashboard.alert_reader")
        if _takes_queries_of_alerts(tree)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "queries"
    }
    assert {attribute for _, attribute in asked} == {"operator_state"}
    acting = {"lagwise_dashboard.widgets.alert_actions", "lagwise_dashboard.widgets.saved_views"}
    assert (
        _callers(frozenset({"alert_reader.engine", "engine", "open_engine"}), "lagwise_dashboard.alert_reader")
        == acting
    )


def _takes_queries_of_alerts(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.ImportFrom)
        and node.module == "lagwise_alerts.operate"
        and "queries" in {alias.name for alias in node.names}
        for node in ast.walk(tree)
    )


def test_who_acts_is_known_with_what_they_may_act_on() -> None:
    assert _callers(frozenset({"Operator"})) == {"lagwise_dashboard.identity"}


def test_a_way_to_read_a_lake_is_known_to_it() -> None:
    """A new one is refused to readers of some groups if it begins with ``open()``; else VisibleLake needs its own."""
    public = {name for name, _ in inspect.getmembers(TolerantLake, callable) if not name.startswith("_")}
    narrowed = {"scan", "query"}
    refused = {"open", "files", "relative_files", "newest_day", "read", "select", "scan_new", "last_transaction"}
    refused |= {"recent_writers"}
    says_nothing_of_rows = {"location", "version", "leave_out", "unchanging", "forget"}
    writes = {"create", "append", "mark", "write_files", "add_files", "replace_files", "replace", "commit"}
    assert public == narrowed | refused | says_nothing_of_rows | writes
