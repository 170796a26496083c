"""Columns that tables of groups, partitions and members share: how far behind they are, and how fast they move."""

import math
from collections.abc import Sequence

from lagwise.domain import humanise
from lagwise.domain.vocabulary import Status
from lagwise_dashboard import appearance, tables
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.tables import TableColumn

WRITTEN_HELP = "Records written per second, the mean of the last 5 minutes (longer for groups that commit rarely)."
READ_HELP = (
    "Records committed per second, the mean of the last 5 minutes (longer for groups that commit rarely); 0 for "
    "partitions that are stopped or stalled."
)


def labels(*statuses: str | None) -> list[str]:
    """Statuses as the cell of a column of statuses; None is left out."""
    return [appearance.of_status(status).label for status in statuses if status is not None]


def statuses(rows: Sequence[Row]) -> TableColumn:
    """The status of each row."""
    return tables.statuses("Status", [labels(r["status"]) for r in rows])


def oldest_unread(rows: Sequence[Row], help: str) -> TableColumn:
    """The age of the oldest unread record."""
    made = tables.duration(
        "Oldest unread", [r["lag_seconds"] for r in rows], at_least=[r["lag_seconds_is_lower_bound"] for r in rows]
    )
    return made.with_help(f"{help} ≥ marks a lower bound: it is older than the history kept.").sorts_by("age")


def lag(rows: Sequence[Row], help: str) -> TableColumn:
    """Unread records."""
    return tables.count("Lag", [r["lag"] for r in rows], of="records").with_help(help).sorts_by("lag")


def written(rows: Sequence[Row], help: str = WRITTEN_HELP) -> TableColumn:
    """Records written per second."""
    return tables.rate("In/s", [r["produce_rate_per_second"] for r in rows]).with_help(help).sorts_by("in")


def read(rows: Sequence[Row]) -> TableColumn:
    """Records read per second."""
    return tables.rate("Out/s", [r["consume_rate_per_second"] for r in rows]).with_help(READ_HELP).sorts_by("out")


def log_ends(rows: Sequence[Row]) -> list[TableColumn]:
    """The offsets at which a partition's log starts and ends."""
    return [
        tables.offset("Log start", [r["log_start"] for r in rows])
        .with_help("Offset of the oldest record.")
        .sorts_by("log_start"),
        tables.offset("Log end", [r["high_watermark"] for r in rows]).with_help("High watermark.").sorts_by("log_end"),
    ]


def loss_in(title: str, rows: Sequence[Row], seconds: Sequence[float | None], help: str) -> TableColumn:
    """The time until something is lost; ``now`` where it already is."""
    return tables.duration(
        title, seconds, at_most=[r["seconds_to_loss_is_upper_bound"] for r in rows], zero="now"
    ).with_help(help)


_NO_VERDICT = frozenset({Status.OK, Status.GHOST, Status.UNKNOWN})


def seconds_to_catch_up(row: Row) -> float | None:
    """Time until the lag is gone; infinite where it does not shrink, None where there is nothing to catch up with or
    nothing known."""
    if row["seconds_to_catch_up"] is not None:
        return float(row["seconds_to_catch_up"])
    return math.inf if row["lag"] and row["status"] not in _NO_VERDICT else None


def catch_up(row: Row) -> str:
    """The same in words: ``never``, or a dash."""
    seconds = seconds_to_catch_up(row)
    return "never" if seconds == math.inf else humanise.duration(seconds)


def used_share(reader: Row | None, settings: Row | None) -> float | None:
    """The age of a reader's oldest unread record as a share of the time that records are kept; None is not known, or
    for ever."""
    if reader is None or reader["lag_seconds"] is None or settings is None:
        return None
    kept_ms = settings["retention_ms"]
    if kept_ms is None or kept_ms <= 0 or "delete" not in (settings["cleanup_policy"] or "delete"):
        return None
    return float(reader["lag_seconds"] * 1000 / kept_ms)
