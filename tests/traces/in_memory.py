"""Traces that are judged where they are made, without files."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lagwise.traces import csv_files
from lagwise.traces.csv_files import LINE, Row
from lagwise.traces.raw_rows import Samples, raw_rows, sample_times
from lagwise.traces.trace import Trace, Truth
from tests.traces.world import COLUMNS

#: The objective of every group in them.
OBJECTIVE_S = 300.0

#: Rows by the name of the file.
Files = dict[str, list[tuple[Any, ...]]]


def no_files() -> Files:
    return {name: [] for name in COLUMNS}


def trace_of_files(name: str, story: str, files: Files, interval_s: float, truth: Iterable[Truth]) -> Trace:
    """The trace of these rows, as if it had been written and read: judged at every sample."""
    parsed = {of: [_parsed(of, line, row) for line, row in enumerate(rows, 2)] for of, rows in files.items()}
    times = sample_times((row["time_s"] for row in parsed["commits.csv"]), interval_s)
    return Trace(
        name=name,
        story=story,
        sample_interval_s=interval_s,
        evaluate_every_s=interval_s,
        offsets_retention_s=None,
        lag_objective_s=OBJECTIVE_S,
        risk_horizon_s=6 * 3600.0,
        sample_times=times,
        rows=raw_rows(Path(name), Samples(times, interval_s), parsed),
        truth=tuple(truth),
    )


def _parsed(name: str, line: int, row: tuple[Any, ...]) -> Row:
    """A row of a file as it would be read: null in the columns that the file lacks."""
    absent: Row = {column.name: None for column in csv_files.CSV_FILES[name]}
    return absent | {LINE: line} | dict(zip(COLUMNS[name], row, strict=True))
