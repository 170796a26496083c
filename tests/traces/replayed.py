"""The traces of this folder, and what is shown of them: replayed once for all tests of a run."""

from functools import cache
from pathlib import Path

from lagwise.traces.csv_files import Row
from lagwise.traces.trace import Trace, read_trace
from lagwise_app.replay.shown import Shown, shown_of
from lagwise_app.replay.trace_events import events_of

FOLDERS = {path.parent.name: path.parent for path in sorted(Path(__file__).parent.glob("*/trace.toml"))}


@cache
def traces() -> tuple[Trace, ...]:
    return tuple(read_trace(folder) for folder in FOLDERS.values())


@cache
def events_by_trace() -> dict[str, list[Row]]:
    """What comparing all samples of each trace tells, by its name: half a minute's work."""
    return {trace.name: events_of(trace) for trace in traces()}


@cache
def replayed() -> dict[str, list[Shown]]:
    """What is shown of each trace, by its name."""
    return {trace.name: shown_of(trace) for trace in traces()}
