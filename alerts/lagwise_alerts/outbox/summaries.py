"""Summaries in the outbox: many queued messages become one, in one transaction, before any of them is sent.

A summary never changes afterwards: like any message it is retried as it is, with the same key. Its id is higher than
those of its messages, which are all the messages that waited. So order is kept.
"""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection, Engine, Row, func, insert, or_, select, update

from lagwise.operational.lease import Lease
from lagwise_alerts.notify.group import SUMMARY_EVENT, SentMessage, summarise
from lagwise_alerts.outbox.database import DELIVERIES, SUMMARY_MEMBERS, lock, transaction
from lagwise_alerts.outbox.store import DELIVERED, QUEUED, SUMMARISED

#: The document of an alert has about 1.5 kB: a summary stays below a megabyte.
MAX_IN_A_SUMMARY = 500


def count_untried(engine: Engine, channel: str) -> int | None:
    """How many messages of a channel wait; None where a summary is among them, or a message that was tried before.

    Those go out as they are, in their place: a summary must not overtake them.
    """
    d = DELIVERIES.c
    is_tried = or_(d.attempts > 0, d.event == SUMMARY_EVENT)
    counts = select(is_tried, func.count()).where(d.channel == channel, d.state == QUEUED).group_by(is_tried)
    with transaction(engine, read_only=True) as connection:
        found = {bool(tried): int(count) for tried, count in connection.execute(counts)}
    return None if True in found else found.get(False, 0)


def sent_recently(engine: Engine, channel: str, now: datetime, within_seconds: float) -> list[SentMessage]:
    """What was delivered to a channel in the last ``within_seconds``."""
    d = DELIVERIES.c
    since = now - timedelta(seconds=within_seconds)
    query = select(d.delivered_at, d.event).where(d.channel == channel, d.state == DELIVERED, d.delivered_at > since)
    with transaction(engine, read_only=True) as connection:
        return [SentMessage(at, event == SUMMARY_EVENT) for at, event in connection.execute(query)]


def queue_summaries(engine: Engine, channel: str, now: datetime, lease: Lease | None = None) -> int:
    """Make summaries of all waiting messages, none of which was tried before. Returns how many messages are in them.

    Raises DatabaseError, also where another process holds ``lease`` by now.
    """
    d = DELIVERIES.c
    with transaction(engine) as connection:
        if lease is not None:
            lease.check(connection)
        lock(connection)
        waiting = select(d.id, d.payload).where(d.channel == channel, d.state == QUEUED).order_by(d.id)
        rows = connection.execute(waiting).all()
        for first in range(0, len(rows), MAX_IN_A_SUMMARY):
            _make(connection, channel, rows[first : first + MAX_IN_A_SUMMARY], now)
    return len(rows)


def _make(connection: Connection, channel: str, rows: Sequence[Row[int, str]], now: datetime) -> None:
    key = f"summary-{rows[0].id}-{rows[-1].id}"
    summary = {
        "idempotency_key": key,
        "channel": channel,
        "incident_id": key,
        "event": SUMMARY_EVENT,
        "payload": summarise([json.loads(row.payload) for row in rows], key),
        "state": QUEUED,
        "attempts": 0,
        "next_attempt_at": now,
        "created_at": now,
    }
    summary_id = connection.scalars(insert(DELIVERIES).values(**summary).returning(DELIVERIES.c.id)).one()
    members = [row.id for row in rows]
    connection.execute(update(DELIVERIES).where(DELIVERIES.c.id.in_(members)).values(state=SUMMARISED))
    connection.execute(insert(SUMMARY_MEMBERS), [{"delivery_id": one, "summary_id": summary_id} for one in members])
