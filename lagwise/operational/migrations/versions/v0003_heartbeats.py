"""Heartbeats of the processes, for all machines to see."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "heartbeats",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("process", sa.String(50), nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.Column("line", sa.Text, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("machine", sa.Text),
        sa.Column("started", sa.BigInteger),
        if_not_exists=True,  # a process that starts while nothing can be migrated makes this one itself
    )
