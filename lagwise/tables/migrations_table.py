"""The table of the migrations of a lake."""

from lagwise.tables.schema import INT64, TEXT, TIMESTAMP, Column, Table

#: The columns of this table never change: an older Lagwise must be able to read that the lake is newer.
MIGRATIONS = Table(
    "migrations",
    "analysis",
    "step that brought the lake to a version",
    (
        Column("version", INT64, "the lake's version after the step", nullable=False),
        Column("at", TIMESTAMP, "when the step was done", nullable=False),
        Column("what", TEXT, "what the step did", nullable=False),
    ),
)
