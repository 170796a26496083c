"""What mutes alerts, and what operators did, in the operational database. Within the caller's transaction."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import Connection, Row, delete, insert, or_, select

from lagwise.config.operating import MaintenanceWindow
from lagwise_alerts.model import AlertEvent, Severity
from lagwise_alerts.notify.mute import MuteResult
from lagwise_alerts.notify.mute_state import Acknowledgement, Matcher, MuteState, Silence, Withheld
from lagwise_alerts.outbox.database import ALERTS, DELIVERIES
from lagwise_alerts.outbox.operator_tables import ACKNOWLEDGEMENTS, ACTIONS, SILENCES, SUMMARISED, WITHHELD

#: Databases allow so many values in one statement (SQLite 32,766, others fewer).
_VALUES_AT_A_TIME = 500


def load_mute_state(connection: Connection, windows: Sequence[MaintenanceWindow], now: datetime) -> MuteState:
    """The active silences, all withheld notifications, and the acknowledgements of alerts that have not ended."""
    active = select(SILENCES).where(SILENCES.c.starts_at <= now, SILENCES.c.ends_at > now)
    return MuteState(
        silences=tuple(silence_of(row) for row in connection.execute(active.order_by(SILENCES.c.id))),
        windows=tuple(windows),
        acknowledgements={
            row.incident_id: acknowledgement_of(row) for row in connection.execute(select(ACKNOWLEDGEMENTS))
        },
        withheld={row.incident_id: _withheld(row) for row in connection.execute(select(WITHHELD))},
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
        delete(SUMMARISED).where(
            or_(SUMMARISED.c.delivery_id.not_in(messages), SUMMARISED.c.summary_id.not_in(messages))
        )
    )


def store_withheld(connection: Connection, before: MuteState, result: MuteResult) -> None:
    """Store which notifications are withheld after a decision."""
    replaced = [one.incident_id for one in result.withheld if one.incident_id in before.withheld]
    for incidents in _in_parts([*result.no_longer_withheld, *replaced]):
        connection.execute(delete(WITHHELD).where(WITHHELD.c.incident_id.in_(incidents)))
    if result.withheld:
        connection.execute(
            insert(WITHHELD),
            [
                {
                    "incident_id": one.incident_id,
                    "event": one.event.value,
                    "rule": one.rule,
                    "channels": list(one.channels),
                    "previous_status": one.previous_status,
                    "previous_severity": one.previous_severity.value if one.previous_severity else None,
                    "withheld_at": one.withheld_at,
                }
                for one in result.withheld
            ],
        )


def _in_parts(values: Sequence[str]) -> Iterable[Sequence[str]]:
    return (values[i : i + _VALUES_AT_A_TIME] for i in range(0, len(values), _VALUES_AT_A_TIME))


def silence_of(row: Row[*tuple[object, ...]]) -> Silence:
    """The silence of a row."""
    values = row._mapping
    return Silence(
        id=values["id"],
        matcher=Matcher(values["cluster"], values["group"], values["kind"], values["severity"]),
        starts_at=values["starts_at"],
        ends_at=values["ends_at"],
        comment=values["comment"],
        created_by=values["created_by"],
        created_at=values["created_at"],
    )


def acknowledgement_of(row: Row[*tuple[object, ...]]) -> Acknowledgement:
    """The acknowledgement of a row."""
    values = row._mapping
    return Acknowledgement(
        values["incident_id"], Severity(values["severity"]), values["by"], values["at"], values["comment"]
    )


def _withheld(row: Row[*tuple[object, ...]]) -> Withheld:
    values = row._mapping
    severity = values["previous_severity"]
    return Withheld(
        incident_id=values["incident_id"],
        event=AlertEvent(values["event"]),
        rule=values["rule"],
        channels=tuple(values["channels"]),
        previous_status=values["previous_status"],
        previous_severity=Severity(severity) if severity else None,
        withheld_at=values["withheld_at"],
    )
