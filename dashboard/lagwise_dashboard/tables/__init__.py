"""Tables as columns that know their unit, for pages, reports and files."""

from lagwise_dashboard.tables.columns import (
    Column,
    Kind,
    ago,
    badges,
    between,
    count,
    duration,
    lasted,
    mixed,
    moment,
    number,
    offset,
    rate,
    ratio,
    share,
    size,
    statuses,
    text,
    trend,
    without_empty,
)

__all__ = [
    "Column", "Kind", "ago", "badges", "between", "count", "duration", "lasted", "mixed", "moment", "number",
    "offset", "rate", "ratio", "share", "size", "statuses", "text", "trend", "without_empty",
]  # fmt: skip
