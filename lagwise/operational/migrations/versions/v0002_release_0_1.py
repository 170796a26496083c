"""The tables of release 0.1: shared incidents and saved views.

Checkouts before 0.1 made some of these without Alembic. Each is therefore added only where it is missing.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add what is missing."""
    there = sa.inspect(op.get_bind())
    columns = {column["name"] for column in there.get_columns("alerts")}
    for column in (
        sa.Column("things", sa.JSON, nullable=False, server_default="[]"),
        sa.Column("worsened_at", sa.DateTime(timezone=True)),
        sa.Column("shared_incident", sa.String(60)),
    ):
        if column.name not in columns:
            op.add_column("alerts", column)
    if not there.has_table("saved_views"):
        op.create_table(
            "saved_views",
            sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
            sa.Column("name", sa.Text, nullable=False),
            sa.Column("page", sa.String(50), nullable=False),
            sa.Column("query", sa.Text, nullable=False),
            sa.Column("saved_by", sa.Text, nullable=False),
            sa.Column("saved_at", sa.DateTime(timezone=True), nullable=False),
            sqlite_autoincrement=True,
        )
    versions = sa.table("lagwise_schema", sa.column("component", sa.String), sa.column("version", sa.Integer))
    op.execute(versions.update().where(versions.c.component == "alerts").values(version=4))
