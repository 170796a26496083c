"""Sends firing alerts again to an Alertmanager, which forgets them: the latest delivered message of each.

The messages are read from the outbox each time. So they are the same after a restart, and only incidents go out whose
beginning was delivered and whose end was not.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import Engine, func, select

from lagwise_alerts.channels.alertmanager import AlertmanagerChannel
from lagwise_alerts.channels.base import DeliveryOutcome
from lagwise_alerts.model import AlertEvent, AlertState
from lagwise_alerts.outbox.database import ALERTS, DELIVERIES, transaction
from lagwise_alerts.outbox.store import DELIVERED

_D = DELIVERIES.c


class FiringResender:
    """Sends the firing alerts of one channel again."""

    def __init__(self, engine: Engine, channel: AlertmanagerChannel, clock: Callable[[], datetime]) -> None:
        self._engine = engine
        self._channel = channel
        self._clock = clock
        self._next_at: datetime | None = None

    def resend_if_due(self) -> DeliveryOutcome | None:
        """Send what fires again, at once after a start. None where it is not time yet. Raises DatabaseError."""
        now = self._clock()
        if self._next_at is not None and now < self._next_at:
            return None
        self._next_at = now + timedelta(seconds=self._channel.repeat_seconds)
        bodies = self._latest_bodies()
        return self._channel.repeat(bodies) if bodies else DeliveryOutcome()

    def last_delivered(self, incident_id: str) -> str | None:
        """The latest message of an incident that the receiver has. Raises DatabaseError."""
        query = (
            select(_D.payload)
            .where(_D.incident_id == incident_id, _D.channel == self._channel.name, _D.state == DELIVERED)
            .order_by(_D.id.desc())
            .limit(1)
        )
        with transaction(self._engine, read_only=True) as connection:
            return connection.scalar(query)

    def _latest_bodies(self) -> list[str]:
        latest = (
            select(func.max(_D.id))
            .join(ALERTS, ALERTS.c.incident_id == _D.incident_id)
            .where(ALERTS.c.state == AlertState.FIRING, _D.channel == self._channel.name, _D.state == DELIVERED)
            .group_by(_D.incident_id)
        )
        query = select(_D.payload).where(_D.id.in_(latest), _D.event != AlertEvent.RESOLVED.value).order_by(_D.id)
        with transaction(self._engine, read_only=True) as connection:
            return list(connection.scalars(query))
