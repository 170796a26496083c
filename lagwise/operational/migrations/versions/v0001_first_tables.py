"""The tables as checkouts before release 0.1 made them.

The words of the schema are spelled out, and do not follow the program's declarations: a migration that has been
released never changes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_TIME = sa.DateTime(timezone=True)
_OPEN = sa.text("state in ('pending', 'firing')")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "lagwise_schema",
        sa.Column("component", sa.String(50), primary_key=True),
        sa.Column("version", sa.Integer, nullable=False),
    )
    op.create_table(
        "leases",
        sa.Column("scope", sa.String(300), primary_key=True),
        sa.Column("hold_id", sa.BigInteger),
        sa.Column("renewals", sa.BigInteger, nullable=False),
        sa.Column("since", _TIME, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("machine", sa.Text),
        sa.Column("started", sa.BigInteger),
        if_not_exists=True,  # a process that asks for a lease makes this one itself
    )
    _make_alerts()
    _make_deliveries()
    _make_operators_tables()
    # The row is what alert processes lock; checkouts before 0.1 read the version of the tables from it.
    op.bulk_insert(
        sa.table("lagwise_schema", sa.column("component", sa.String), sa.column("version", sa.Integer)),
        [{"component": "alerts", "version": 3}],
    )


def _make_alerts() -> None:
    op.create_table(
        "alerts",
        sa.Column("incident_id", sa.String(60), primary_key=True),
        sa.Column("fingerprint", sa.String(16), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("cluster", sa.Text),
        sa.Column("group", sa.Text),
        sa.Column("rule", sa.String(100), nullable=False),
        sa.Column("severity", sa.String(20), nullable=False),
        sa.Column("status", sa.String(50), nullable=False),
        sa.Column("reason", sa.String(50)),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("since", _TIME, nullable=False),
        sa.Column("started_at", _TIME, nullable=False),
        sa.Column("fired_at", _TIME),
        sa.Column("resolved_at", _TIME),
        sa.Column("resolution", sa.String(50)),
        sa.Column("sentence", sa.Text, nullable=False),
        sa.Column("numbers", sa.JSON, nullable=False),
        sa.Column("on_hold", sa.Boolean, nullable=False),
        sa.Column("last_as_of", _TIME, nullable=False),
        sa.Column("rule_timers", sa.JSON, nullable=False),
        sa.Column("clear_timer", sa.JSON),
        sa.Column("notified_rules", sa.JSON, nullable=False),
        sa.Column("peak_severity", sa.String(20)),
        sa.Column("channels", sa.JSON, nullable=False),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("labels", sa.JSON, nullable=False),
        sa.Column("notified_at", _TIME),
        sa.Column("recent_starts", sa.JSON, nullable=False),
        sa.Column("flapping", sa.Boolean, nullable=False),
        sa.Column("inhibited_by", sa.String(60)),
    )
    op.create_index(
        "alerts_one_open", "alerts", ["fingerprint"], unique=True, sqlite_where=_OPEN, postgresql_where=_OPEN
    )
    op.create_index("alerts_by_end", "alerts", ["state", "resolved_at"])


def _make_deliveries() -> None:
    op.create_table(
        "deliveries",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("idempotency_key", sa.String(100), nullable=False),
        sa.Column("channel", sa.String(100), nullable=False),
        sa.Column("incident_id", sa.String(60), nullable=False),
        sa.Column("event", sa.String(20), nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("next_attempt_at", _TIME, nullable=False),
        sa.Column("last_error", sa.Text),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("delivered_at", _TIME),
        sa.UniqueConstraint("channel", "idempotency_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("deliveries_queue", "deliveries", ["state", "channel", "id"])
    op.create_index("deliveries_by_incident", "deliveries", ["incident_id"])
    op.create_table(
        "summarised",
        sa.Column("delivery_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("summary_id", sa.Integer, nullable=False),
    )
    op.create_index("summarised_by_summary", "summarised", ["summary_id"])


def _make_operators_tables() -> None:
    op.create_table(
        "active_groups",
        sa.Column("fingerprint", sa.String(16), primary_key=True),
        sa.Column("cluster", sa.Text, nullable=False),
        sa.Column("group", sa.Text, nullable=False),
        sa.Column("seen_at", _TIME, nullable=False),
    )
    op.create_table(
        "silences",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("cluster", sa.Text),
        sa.Column("group", sa.Text),
        sa.Column("kind", sa.Text),
        sa.Column("severity", sa.Text),
        sa.Column("starts_at", _TIME, nullable=False),
        sa.Column("ends_at", _TIME, nullable=False),
        sa.Column("comment", sa.Text, nullable=False),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("silences_by_end", "silences", ["ends_at"])
    op.create_table(
        "acknowledgements",
        sa.Column("incident_id", sa.String(60), primary_key=True),
        sa.Column("severity", sa.String(20), nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.Column("comment", sa.Text, nullable=False),
    )
    op.create_table(
        "withheld",
        sa.Column("incident_id", sa.String(60), primary_key=True),
        sa.Column("event", sa.String(20), nullable=False),
        sa.Column("rule", sa.String(100), nullable=False),
        sa.Column("channels", sa.JSON, nullable=False),
        sa.Column("previous_status", sa.String(50)),
        sa.Column("previous_severity", sa.String(20)),
        sa.Column("withheld_at", _TIME, nullable=False),
    )
    op.create_table(
        "actions",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("at", _TIME, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("via", sa.String(20), nullable=False),
        sa.Column("action", sa.String(30), nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("comment", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("actions_by_time", "actions", ["at"])
