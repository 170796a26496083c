"""Orders of operators and what follows from them, in the operational database. Within the caller's transaction."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, Row, delete, insert, or_, select

from lagwise.config.operating import MaintenanceWindow
from lagwise_alerts.model import Alert, AlertEvent, Decision, Severity
from lagwise_alerts.notify.mute import Acknowledgement, Matcher, MuteResult, MuteState, Silence, Withheld, mute
from lagwise_alerts.outbox.database import ALERTS, DELIVERIES
from lagwise_alerts.outbox.operator_tables import ACKNOWLEDGEMENTS, ACTIONS, SILENCES, SUMMARISED, WITHHELD

#: Databases allow so many values in one statement (SQLite 32,766, others fewer).
_VALUES_AT_A_TIME = 500


def obey(
    connection: Connection,
    before: Mapping[str, Alert],
    decision: Decision,
    windows: Sequence[MaintenanceWindow],
    now: datetime,
) -> Decision:
    """What of a decision is told, by the orders as they stand; what is owed is kept."""
    orders = load_mute_state(connection, windows, now)
    telling = mute(decision, before, orders, now)
    _keep(connection, orders, telling)
    return telling.decision


def load_mute_state(connection: Connection, windows: Sequence[MaintenanceWindow], now: datetime) -> MuteState:
    """The silences in force, all debts, and the acknowledgements of alerts that have not ended."""
    in_force = select(SILENCES).where(SILENCES.c.starts_at <= now, SILENCES.c.ends_at > now)
    return MuteState(
        silences=tuple(silence_of(row) for row in connection.execute(in_force.order_by(SILENCES.c.id))),
        windows=tuple(windows),
        acknowledgements={
            row.incident_id: acknowledgement_of(row) for row in connection.execute(select(ACKNOWLEDGEMENTS))
        },
        withheld={row.incident_id: _owed(row) for row in connection.execute(select(WITHHELD))},
    )


def prune_operator_data(connection: Connection, before: datetime) -> None:
    """Forget silences that ended, and actions, before a time, and what belonged to what is forgotten already."""
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


def _keep(connection: Connection, orders: MuteState, telling: MuteResult) -> None:
    gone = [
        *telling.no_longer_withheld,
        *(debt.incident_id for debt in telling.withheld if debt.incident_id in orders.withheld),
    ]
    for some in _in_parts(gone):
        connection.execute(delete(WITHHELD).where(WITHHELD.c.incident_id.in_(some)))
    if telling.withheld:
        connection.execute(
            insert(WITHHELD),
            [
                {
                    "incident_id": debt.incident_id,
                    "event": debt.event.value,
                    "rule": debt.rule,
                    "channels": list(debt.channels),
                    "previous_status": debt.previous_status,
                    "previous_severity": debt.previous_severity.value if debt.previous_severity else None,
                    "withheld_at": debt.withheld_at,
                }
                for debt in telling.withheld
            ],
        )


def _in_parts(values: Sequence[str]) -> Iterable[Sequence[str]]:
    return (values[i : i + _VALUES_AT_A_TIME] for i in range(0, len(values), _VALUES_AT_A_TIME))


def silence_of(row: Row[*tuple[object, ...]]) -> Silence:
    """A silence as it was kept."""
    kept = row._mapping
    return Silence(
        id=kept["id"],
        matcher=Matcher(kept["cluster"], kept["group"], kept["kind"], kept["severity"]),
        starts_at=kept["starts_at"],
        ends_at=kept["ends_at"],
        comment=kept["comment"],
        created_by=kept["created_by"],
        created_at=kept["created_at"],
    )


def acknowledgement_of(row: Row[*tuple[object, ...]]) -> Acknowledgement:
    """An acknowledgement as it was kept."""
    kept = row._mapping
    return Acknowledgement(kept["incident_id"], Severity(kept["severity"]), kept["by"], kept["at"], kept["comment"])


def _owed(row: Row[*tuple[object, ...]]) -> Withheld:
    kept = row._mapping
    severity = kept["previous_severity"]
    return Withheld(
        incident_id=kept["incident_id"],
        event=AlertEvent(kept["event"]),
        rule=kept["rule"],
        channels=tuple(kept["channels"]),
        previous_status=kept["previous_status"],
        previous_severity=Severity(severity) if severity else None,
        withheld_at=kept["withheld_at"],
    )
