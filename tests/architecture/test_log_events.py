"""Every record of a log has a stable name (docs/reference/log-events.md)."""

import ast
from collections.abc import Iterator

from lagwise.platform.log_events import LogEvent
from tests.architecture.test_imports import MODULES

_LEVELS = {"info", "warning", "error", "exception", "critical", "log"}
_THROTTLED = {"warn", "clear"}


def _calls() -> Iterator[tuple[str, ast.Call, ast.Attribute]]:
    for name, path in MODULES.items():
        if name.startswith("lagwise_sandbox") or name == "lagwise.platform.log_throttle":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                yield f"{name}:{node.lineno}", node, node.func


def _event(call: ast.expr | None) -> str | None:
    """The name of `LogEvent.NAME`, alone or as the first argument of `event(…)`."""
    match call:
        case ast.Call(func=ast.Name(id="event"), args=[ast.Attribute(value=ast.Name(id="LogEvent"), attr=name)]):
            return name
        case ast.Attribute(value=ast.Name(id="LogEvent"), attr=name):
            return name
    return None


def _logged() -> dict[str, str | None]:
    """The event of each call that logs, by its place."""
    found = {}
    for place, call, function in _calls():
        owner = ast.unparse(function.value)
        if function.attr in _LEVELS and owner.lower().removeprefix("self.").strip("_") == "log":
            found[place] = _event(next((k.value for k in call.keywords if k.arg == "extra"), None))
        elif function.attr in _THROTTLED and owner.endswith("log_throttle"):
            found[place] = _event(call.args[0])
    return found


def test_whatever_is_logged_names_its_event() -> None:
    logged = _logged()
    assert len(logged) > 60
    assert [place for place, event in logged.items() if event is None] == []


def test_no_event_is_named_in_vain() -> None:
    assert {event.name for event in LogEvent} == {event for event in _logged().values() if event is not None}
