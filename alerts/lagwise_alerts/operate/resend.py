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
from lagwise_alerts.operate.actions import Action, Operator, record
from lagwise_alerts.outbox.database import DELIVERIES, SUMMARY_MEMBERS, lock, prepare, transaction
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


def choose_messages(letters: Sequence[ResendCandidate], asked: frozenset[int] | None) -> tuple[list[int], list[int]]:
    """The ids to send again, and those that are outdated. ``asked`` are ids; None is all dead messages. Pure."""
    last_delivered: dict[tuple[str, str], int] = {}
    for letter in letters:
        if letter.is_delivered:
            of = (letter.channel, letter.incident_id)
            last_delivered[of] = max(letter.id, last_delivered.get(of, 0))
    selected = {(letter.channel, letter.incident_id) for letter in letters if asked is None or letter.id in asked}
    again: list[int] = []
    outdated: list[int] = []
    for letter in sorted(letters, key=lambda one: one.id):
        of = (letter.channel, letter.incident_id)
        if letter.is_dead and of in selected:
            (outdated if last_delivered.get(of, 0) > letter.id else again).append(letter.id)
    return again, outdated


def resend(
    engine: Engine, ids: Sequence[int] | None, *, channel: str | None = None, by: Operator, now: datetime
) -> Resent:
    """Queue dead messages again: those with these ids, or all (of a channel). Raises OperatorError where none is."""
    prepare(engine)
    with transaction(engine) as connection:
        lock(connection)
        asked = None if ids is None else frozenset(ids) | _members(connection, ids)
        letters = _letters(connection, channel)
        if asked is not None and not any(letter.is_dead and letter.id in asked for letter in letters):
            raise OperatorError(
                "none of these messages was given up; `lagwise alert deliveries --state dead` lists them"
            )
        again, outdated = choose_messages(letters, asked)
        _take_apart(connection, [*again, *outdated])
        for some in (again[i : i + 500] for i in range(0, len(again), 500)):
            queued = {"state": QUEUED, "attempts": 0, "next_attempt_at": now, "last_error": None}
            connection.execute(update(DELIVERIES).where(DELIVERIES.c.id.in_(some)).values(**queued))
        for some in (outdated[i : i + 500] for i in range(0, len(outdated), 500)):
            connection.execute(update(DELIVERIES).where(DELIVERIES.c.id.in_(some)).values(state=DEAD))
        if again:
            subject = f"{len(again)} messages, the first {again[0]}" if len(again) > 1 else f"message {again[0]}"
            record(connection, by, Action.RESEND, subject, "", now)
    return Resent(len(again), len(outdated))


def _letters(connection: Connection, channel: str | None) -> list[ResendCandidate]:
    """All dead messages, and the other messages of their incidents; summaries are replaced by their messages."""
    d, summary = DELIVERIES.c, DELIVERIES.alias()
    state = (
        select(d.id, d.channel, d.incident_id, d.state, summary.c.state.label("summary_state"))
        .outerjoin(SUMMARY_MEMBERS, SUMMARY_MEMBERS.c.delivery_id == d.id)
        .outerjoin(summary, summary.c.id == SUMMARY_MEMBERS.c.summary_id)
        .where(d.event != SUMMARY_EVENT)
    )
    if channel is not None:
        state = state.where(d.channel == channel)
    rows = connection.execute(state).all()
    letters = [
        ResendCandidate(
            id=row.id,
            channel=row.channel,
            incident_id=row.incident_id,
            is_dead=DEAD in (row.state, row.summary_state),
            is_delivered=DELIVERED in (row.state, row.summary_state),
        )
        for row in rows
    ]
    concerned = {(letter.channel, letter.incident_id) for letter in letters if letter.is_dead}
    return [letter for letter in letters if (letter.channel, letter.incident_id) in concerned]


def _members(connection: Connection, ids: Sequence[int]) -> frozenset[int]:
    within = select(SUMMARY_MEMBERS.c.delivery_id).where(SUMMARY_MEMBERS.c.summary_id.in_(list(ids)))
    return frozenset(connection.scalars(within))


def _take_apart(connection: Connection, ids: Sequence[int]) -> None:
    """Delete the dead summaries that these messages are part of: their messages then go out one by one."""
    for some in (ids[i : i + 500] for i in range(0, len(ids), 500)):
        summaries = set(
            connection.scalars(select(SUMMARY_MEMBERS.c.summary_id).where(SUMMARY_MEMBERS.c.delivery_id.in_(some)))
        )
        if summaries:
            left = select(SUMMARY_MEMBERS.c.delivery_id).where(SUMMARY_MEMBERS.c.summary_id.in_(summaries))
            connection.execute(update(DELIVERIES).where(DELIVERIES.c.id.in_(left)).values(state=DEAD))
            connection.execute(delete(SUMMARY_MEMBERS).where(SUMMARY_MEMBERS.c.summary_id.in_(summaries)))
            connection.execute(delete(DELIVERIES).where(DELIVERIES.c.id.in_(summaries)))
