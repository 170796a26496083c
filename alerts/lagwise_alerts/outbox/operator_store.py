"""What mutes alerts, and what operators did, in the operational database. Within the caller's transaction."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, or_, select

from lagwise.config.operating import MaintenanceWindow
from lagwise_alerts.notify.mute import MuteResult
from lagwise_alerts.notify.mute_state import Acknowledgement, Matcher, MuteState, Silence, Withheld
from lagwise_alerts.outbox.database import (
    ACKNOWLEDGEMENTS,
    ACTIONS,
    ALERTS,
    DELIVERIES,
    SILENCES,
    SUMMARY_MEMBERS,
    WITHHELD,
    columns_of,
    in_batches,
)


def load_mute_state(connection: Connection, windows: Sequence[MaintenanceWindow], now: datetime) -> MuteState:
    """The active silences, all withheld notifications, and the acknowledgements of alerts that have not ended."""
    active = select(SILENCES).where(SILENCES.c.starts_at <= now, SILENCES.c.ends_at > now)
    return MuteState(
        silences=tuple(silence_of(row) for row in connection.execute(active.order_by(SILENCES.c.id))),
        windows=tuple(windows),
        acknowledgements={
            row.incident_id: Acknowledgement(**row._mapping) for row in connection.execute(select(ACKNOWLEDGEMENTS))
        },
        withheld={row.incident_id: Withheld(**row._mapping) for row in connection.execute(select(WITHHELD))},
    )


def prune_operator_data(connection: Connection, before: datetime) -> None:
    """Delete the silences that ended and the actions before a time, and rows whose alerts or messages are gone."""
    connection.execute(delete(SILENCES).where(SILENCES.c.ends_at < before))
    connection.execute(delete(ACTIONS).where(ACTIONS.c.at < before))
    connection.execute(
        delete(ACKNOWLEDGEMENTS).where(ACKNOWLEDGEMENTS.c.incident_id.not_in(select(ALERTS.c.incident_id)))
    )
    messages = select(DELIVERIES.c.id)
    connection.execute(
        delete(SUMMARY_MEMBERS).where(
            or_(SUMMARY_MEMBERS.c.delivery_id.not_in(messages), SUMMARY_MEMBERS.c.summary_id.not_in(messages))
        )
    )


def store_withheld(connection: Connection, before: MuteState, result: MuteResult) -> None:
    """Store which notifications are withheld after a decision, and which acknowledgements count no more."""
    replaced = [one.incident_id for one in result.withheld if one.incident_id in before.withheld]
    for incidents in in_batches([*result.no_longer_withheld, *replaced]):
        connection.execute(delete(WITHHELD).where(WITHHELD.c.incident_id.in_(incidents)))
    for incidents in in_batches(result.no_longer_acknowledged):
        connection.execute(delete(ACKNOWLEDGEMENTS).where(ACKNOWLEDGEMENTS.c.incident_id.in_(incidents)))
    if result.withheld:
        connection.execute(insert(WITHHELD), [columns_of(one) for one in result.withheld])


def silence_of(row: Row[Any]) -> Silence:
    """The silence of a row."""
    values = dict(row._mapping)
    matcher = Matcher(**{name: values.pop(name) for name in ("cluster", "group", "kind", "severity")})
    return Silence(matcher=matcher, **values)
