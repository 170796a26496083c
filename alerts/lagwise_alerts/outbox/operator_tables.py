"""What operators do about alerts, in the operational database: silences, acknowledgements, and who did what when.

Also what follows from it: notifications that were withheld, and which messages went out in which summary.
"""

from sqlalchemy import JSON, Column, Index, Integer, String, Table

from lagwise.operational.columns import AnyText, UtcDateTime, metadata

#: Patterns are regular expressions on the whole value; null is any.
SILENCES = Table(
    "silences",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("cluster", AnyText),
    Column("group", AnyText),
    Column("kind", AnyText),
    Column("severity", AnyText),
    Column("starts_at", UtcDateTime, nullable=False),
    Column("ends_at", UtcDateTime, nullable=False),
    Column("comment", AnyText, nullable=False),
    Column("created_by", AnyText, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Index("silences_by_end", "ends_at"),
    sqlite_autoincrement=True,
)

#: ``severity`` is how loud the alert was then. A louder alert is not acknowledged.
ACKNOWLEDGEMENTS = Table(
    "acknowledgements",
    metadata,
    Column("incident_id", String(60), primary_key=True),
    Column("severity", String(20), nullable=False),
    Column("by", AnyText, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("comment", AnyText, nullable=False),
)

#: One row per incident with a withheld notification. It is sent once nothing mutes it any more, if it still applies.
WITHHELD = Table(
    "withheld",
    metadata,
    Column("incident_id", String(60), primary_key=True),
    Column("event", String(20), nullable=False),
    Column("rule", String(100), nullable=False),
    Column("channels", JSON, nullable=False),
    Column("previous_status", String(50)),
    Column("previous_severity", String(20)),
    Column("withheld_at", UtcDateTime, nullable=False),
)

#: Which messages are part of which summary: both are ids of ``deliveries``.
SUMMARISED = Table(
    "summarised",
    metadata,
    Column("delivery_id", Integer, primary_key=True, autoincrement=False),
    Column("summary_id", Integer, nullable=False),
    Index("summarised_by_summary", "summary_id"),
)

#: Every action of an operator. ``via`` is cli or dashboard, ``subject`` what it was done to, in words.
ACTIONS = Table(
    "actions",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("at", UtcDateTime, nullable=False),
    Column("who", AnyText, nullable=False),
    Column("via", String(20), nullable=False),
    Column("action", String(30), nullable=False),
    Column("subject", AnyText, nullable=False),
    Column("comment", AnyText, nullable=False),
    Index("actions_by_time", "at"),
    sqlite_autoincrement=True,
)
