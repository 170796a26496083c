"""Sends dead messages again, unless that would confuse the receiver.

All dead messages of an incident and channel go out together, in their order. A message stays dead where a later one of
its incident was delivered: a receiver that knows the end must not get the beginning afterwards.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Engine, delete, select, update

from lagwise.platform.errors import OperatorError
from lagwise_alerts.notify.group import SUMMARY_EVENT
from lagwise_alerts.operate.actions import Action, Operator, record, writing
from lagwise_alerts.outbox.database import DELIVERIES, SUMMARY_MEMBERS, in_batches
from lagwise_alerts.outbox.store import DEAD, DELIVERED, QUEUED


@dataclass(frozen=True, slots=True)
class ResendCandidate:
    """A message. It ``is_dead`` also where the summary that it is part of was given up."""

    id: int
    channel: str
    incident_id: str
    is_dead: bool
    is_delivered: bool


@dataclass(frozen=True, slots=True)
class Resent:
    """How many messages are sent again, and how many stay dead because a later one of their incident was delivered."""

    queued: int
    outdated: int


def choose_messages(candidates: Sequence[ResendCandidate], asked: frozenset[int] | None) -> tuple[list[int], list[int]]:
    """The ids to send again, and those that are outdated. ``asked`` are ids; None is all dead messages. Pure."""
    by_incident: dict[tuple[str, str], list[ResendCandidate]] = {}
    for candidate in candidates:
        by_incident.setdefault((candidate.channel, candidate.incident_id), []).append(candidate)
    again: list[int] = []
    outdated: list[int] = []
    for messages in by_incident.values():
        if asked is None or not asked.isdisjoint(message.id for message in messages):
            last_delivered = max((message.id for message in messages if message.is_delivered), default=0)
            for message in messages:
                if message.is_dead:
                    (outdated if last_delivered > message.id else again).append(message.id)
    return sorted(again), sorted(outdated)


def resend(
    engine: Engine, ids: Sequence[int] | None, *, channel: str | None = None, by: Operator, now: datetime
) -> Resent:
    """Queue dead messages again: those with these ids, or all (of a channel). Raises OperatorError where none is.

    It takes an operator of everything: what is sent takes summaries apart, which hold messages about other groups.
    """
    by.check_acts_on_everything()
    with writing(engine) as connection:
        asked = None if ids is None else frozenset(ids) | _members(connection, ids)
        candidates = _candidates(connection, channel)
        if asked is not None and not any(one.is_dead and one.id in asked for one in candidates):
            raise OperatorError(
                "none of these messages was given up; `lagwise alert deliveries --state dead` lists them"
            )
        again, outdated = choose_messages(candidates, asked)
        _take_apart(connection, [*again, *outdated])
        for some in in_batches(again):
            queued = {"state": QUEUED, "attempts": 0, "next_attempt_at": now, "last_error": None}
            connection.execute(update(DELIVERIES).where(DELIVERIES.c.id.in_(some)).values(**queued))
        for some in in_batches(outdated):
            connection.execute(update(DELIVERIES).where(DELIVERIES.c.id.in_(some)).values(state=DEAD))
        if again:
            subject = f"{len(again)} messages, the first {again[0]}" if len(again) > 1 else f"message {again[0]}"
            record(connection, by, Action.RESEND, subject, "", now)
    return Resent(len(again), len(outdated))


def _candidates(connection: Connection, channel: str | None) -> list[ResendCandidate]:
    """All messages; summaries are replaced by their messages."""
    d, summary = DELIVERIES.c, DELIVERIES.alias()
    state = (
        select(d.id, d.channel, d.incident_id, d.state, summary.c.state.label("summary_state"))
        .outerjoin(SUMMARY_MEMBERS, SUMMARY_MEMBERS.c.delivery_id == d.id)
        .outerjoin(summary, summary.c.id == SUMMARY_MEMBERS.c.summary_id)
        .where(d.event != SUMMARY_EVENT)
    )
    if channel is not None:
        state = state.where(d.channel == channel)
    return [
        ResendCandidate(
            id=row.id,
            channel=row.channel,
            incident_id=row.incident_id,
            is_dead=DEAD in (row.state, row.summary_state),
            is_delivered=DELIVERED in (row.state, row.summary_state),
        )
        for row in connection.execute(state)
    ]


def _members(connection: Connection, ids: Sequence[int]) -> frozenset[int]:
    within = select(SUMMARY_MEMBERS.c.delivery_id).where(SUMMARY_MEMBERS.c.summary_id.in_(list(ids)))
    return frozenset(connection.scalars(within))


def _take_apart(connection: Connection, ids: Sequence[int]) -> None:
    """Delete the dead summaries that these messages are part of: their messages then go out one by one."""
    for some in in_batches(ids):
        summaries = set(
            connection.scalars(select(SUMMARY_MEMBERS.c.summary_id).where(SUMMARY_MEMBERS.c.delivery_id.in_(some)))
        )
        if summaries:
            left = select(SUMMARY_MEMBERS.c.delivery_id).where(SUMMARY_MEMBERS.c.summary_id.in_(summaries))
            connection.execute(update(DELIVERIES).where(DELIVERIES.c.id.in_(left)).values(state=DEAD))
            connection.execute(delete(SUMMARY_MEMBERS).where(SUMMARY_MEMBERS.c.summary_id.in_(summaries)))
            connection.execute(delete(DELIVERIES).where(DELIVERIES.c.id.in_(summaries)))
