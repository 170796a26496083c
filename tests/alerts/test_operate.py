"""What operators do, in a real database: it takes effect, it is recorded, and what makes no sense is refused."""

import json
from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy import Engine, update

from lagwise.config.operating import MaintenanceWindow
from lagwise.platform.errors import OperatorError
from lagwise_alerts.model import Decision
from lagwise_alerts.notify.mute_state import Matcher, MuteCause
from lagwise_alerts.operate import actions, queries
from lagwise_alerts.operate.actions import Operator, Via
from lagwise_alerts.operate.resend import ResendCandidate, Resent, choose_messages, resend
from lagwise_alerts.outbox import store
from lagwise_alerts.outbox.database import DELIVERIES, open_engine, transaction
from lagwise_alerts.outbox.summaries import queue_summaries
from lagwise_alerts.stages import decide_and_mute
from tests.alerts.support import at, book, group_condition, observation

JO = Operator("jo", Via.CLI)


def happen(engine: Engine, second: float, windows: tuple[MaintenanceWindow, ...] = (), **groups: str) -> Decision:
    """Statuses of groups at a second, decided five later."""
    seen = observation(*[group_condition(second, status, group=group) for group, status in groups.items()])
    rules = book(("ops",))
    now = at(second + 5)
    render = json.dumps({"schema": "lagwise.alert.v1"})
    return store.decide_and_queue(
        engine,
        lambda *stored: decide_and_mute(rules, seen, *stored, now=now),
        lambda _: render,
        windows=windows,
        now=now,
    )


def notified(engine: Engine) -> list[tuple[str, str]]:
    """(group, event) of all messages, in their order."""
    names = {a.incident_id: a.subject.group or "" for a in (*queries.open_alerts(engine), *queries.history(engine))}
    return [(names[row.incident_id], row.event) for row in reversed(queries.deliveries(engine))]


def silence(engine: Engine, first: float, last: float, **patterns: str) -> int:
    made = actions.silence(
        engine, Matcher(**patterns), starts_at=at(first), ends_at=at(last), comment="drill", by=JO, now=at(first)
    )
    return made.id


class TestSilences:
    def test_it_holds_across_restarts_and_ends_by_itself(self, engine: Engine) -> None:
        silence(engine, 0, 60, group="orders|billing")
        for second in (0, 15, 30, 45):
            happen(engine, second, orders="stopped", audit="stopped")
        assert notified(engine) == [("audit", "firing")]
        happen(engine, 60, orders="stopped", audit="stopped")
        happen(engine, 75, orders="stopped", audit="stopped")
        assert notified(engine) == [("audit", "firing"), ("orders", "firing")]

    def test_ended_early_it_notifies_what_still_holds(self, engine: Engine) -> None:
        number = silence(engine, 0, 600, group=".*")
        happen(engine, 0, orders="stopped", billing="stopped")
        happen(engine, 15, orders="stopped", billing="ok")
        happen(engine, 90, orders="stopped", billing="ok")
        assert notified(engine) == []
        actions.unsilence(engine, number, by=JO, now=at(100))
        happen(engine, 105, orders="stopped", billing="ok")
        assert notified(engine) == [("orders", "firing")]
        assert queries.silences(engine, at(105)) == []

    def test_one_to_come_is_shown_and_holds_nothing_yet(self, engine: Engine) -> None:
        actions.silence(
            engine, Matcher(group=".*"), starts_at=at(60), ends_at=at(90), comment="later", by=JO, now=at(0)
        )
        happen(engine, 0, orders="stopped")
        assert notified(engine) == [("orders", "firing")]
        assert len(queries.silences(engine, at(5))) == 1

    def test_maintenance_in_the_settings(self, engine: Engine) -> None:
        window = MaintenanceWindow.model_validate({"name": "move", "starts_at": at(0), "ends_at": at(60)})
        happen(engine, 0, (window,), orders="stopped")
        [alert] = queries.open_alerts(engine)
        muted = queries.operator_state(alert, queries.mute_state(engine, (window,), at(5)), at(5)).muted
        assert muted is not None
        assert (muted.cause, muted.name, muted.until) == (MuteCause.MAINTENANCE, "move", at(60))
        happen(engine, 60, (window,), orders="stopped")
        assert notified(engine) == [("orders", "firing")]

    @pytest.mark.parametrize(
        ("patterns", "last", "comment", "said"),
        [
            ({}, 60, "x", "select alerts by"),
            ({"group": "("}, 60, "x", "not a regular expression"),
            ({"group": "a" * 501}, 60, "x", "longer than 500"),
            ({"severity": "critical"}, 60, "x", "none of page, warn, info"),
            ({"kind": "groups"}, 60, "x", "none of group, collection"),
            ({"group": "x"}, 0, "x", "must end after it begins"),
            ({"group": "x"}, 60, "  ", "give the reason"),
        ],
    )
    def test_what_makes_no_sense_is_refused(
        self, engine: Engine, patterns: dict[str, str], last: float, comment: str, said: str
    ) -> None:
        with pytest.raises(OperatorError, match=said):
            actions.silence(
                engine, Matcher(**patterns), starts_at=at(0), ends_at=at(last), comment=comment, by=JO, now=at(0)
            )
        assert queries.actions(engine) == []

    def test_only_what_is_in_force_can_be_ended(self, engine: Engine) -> None:
        number = silence(engine, 0, 60, group="x")
        with pytest.raises(OperatorError, match="there is no silence 99"):
            actions.unsilence(engine, 99, by=JO, now=at(5))
        with pytest.raises(OperatorError, match="has already ended"):
            actions.unsilence(engine, number, by=JO, now=at(60))


class TestAcknowledgements:
    def test_it_holds_what_is_not_louder_and_ends_with_the_alert(self, engine: Engine) -> None:
        happen(engine, 0, orders="stopped")
        [alert] = queries.open_alerts(engine)
        actions.acknowledge(engine, alert.incident_id, comment="on it", by=JO, now=at(10))
        happen(engine, 15, orders="losing_data")
        [alert] = queries.open_alerts(engine)
        standing = queries.operator_state(alert, queries.mute_state(engine, (), at(20)), at(20))
        assert standing.acknowledged is not None
        assert (standing.acknowledged.by, standing.acknowledged.comment) == ("jo", "on it")
        assert notified(engine) == [("orders", "firing")]
        for second in range(30, 391, 60):
            happen(engine, second, orders="ok")
        assert notified(engine) == [("orders", "firing"), ("orders", "resolved")]
        happen(engine, 405, orders="stopped")
        assert notified(engine)[-1] == ("orders", "firing")

    def test_taken_back(self, engine: Engine) -> None:
        happen(engine, 0, orders="stopped")
        [alert] = queries.open_alerts(engine)
        with pytest.raises(OperatorError, match="has not been acknowledged"):
            actions.take_back(engine, alert.incident_id, by=JO, now=at(5))
        actions.acknowledge(engine, alert.incident_id, comment="", by=JO, now=at(10))
        actions.take_back(engine, alert.incident_id, by=JO, now=at(12))
        happen(engine, 15, orders="losing_data")
        assert notified(engine) == [("orders", "firing"), ("orders", "escalated")]

    def test_only_what_fires_can_be_acknowledged(self, engine: Engine) -> None:
        happen(engine, 0, orders="falling_behind")
        [pending] = queries.open_alerts(engine)
        with pytest.raises(OperatorError, match="pending, not firing"):
            actions.acknowledge(engine, pending.incident_id, comment="", by=JO, now=at(5))
        with pytest.raises(OperatorError, match="there is no alert nonsense"):
            actions.acknowledge(engine, "nonsense", comment="", by=JO, now=at(5))


def test_everything_is_recorded_with_who_and_when(engine: Engine) -> None:
    hostile = "<script>\x00'; drop table actions;--\u202e"
    happen(engine, 0, **{hostile: "stopped"})
    [alert] = queries.open_alerts(engine)
    number = silence(engine, 10, 60, group="x")
    actions.unsilence(engine, number, by=Operator(hostile, Via.DASHBOARD), now=at(20))
    actions.acknowledge(engine, alert.incident_id, comment=hostile, by=JO, now=at(30))
    actions.take_back(engine, alert.incident_id, by=JO, now=at(40))
    actions.record_test(engine, "ops", "delivered", by=JO, now=at(50))
    kept = hostile.replace("\x00", "\u2400")
    found = [(row.at, row.who, row.via, row.action, row.comment) for row in reversed(queries.actions(engine))]
    assert found == [
        (at(10), "jo", "cli", "silence", "drill"),
        (at(20), kept, "dashboard", "unsilence", ""),
        (at(30), "jo", "cli", "acknowledge", kept),
        (at(40), "jo", "cli", "take_back", ""),
        (at(50), "jo", "cli", "test", "delivered"),
    ]
    subjects = [row.subject for row in reversed(queries.actions(engine))]
    assert subjects[0] == f"silence {number} (group x) until 2026-11-21 03:01:00 UTC"
    assert subjects[2].startswith("group <script>")


def letter(number: int, state: str, incident: str = "a", channel: str = "ops") -> ResendCandidate:
    return ResendCandidate(number, channel, incident, state == "dead", state == "delivered")


@pytest.mark.parametrize(
    ("letters", "asked", "again", "outdated", "why"),
    [
        ([letter(1, "dead")], {1}, [1], [], "what was asked for"),
        ([letter(1, "dead"), letter(2, "dead")], {2}, [1, 2], [], "with the rest of its incident, in order"),
        ([letter(1, "dead"), letter(2, "queued")], {1}, [1], [], "what waits comes after it by itself"),
        ([letter(1, "dead"), letter(2, "delivered")], {1}, [], [1], "who heard of the end must not hear the beginning"),
        ([letter(1, "delivered"), letter(2, "dead")], None, [2], [], "the end, after the beginning"),
        ([letter(1, "dead"), letter(2, "delivered", "b")], None, [1], [], "another incident has its own order"),
        ([letter(1, "dead"), letter(2, "delivered", "a", "chat")], None, [1], [], "another channel, too"),
        ([letter(1, "dead"), letter(2, "dead", "b")], {1}, [1], [], "only what was asked for"),
        ([letter(1, "dead"), letter(2, "delivered"), letter(3, "dead")], None, [3], [1], "only what is news"),
    ],
)
def test_which_dead_letters_go_again(
    letters: list[ResendCandidate], asked: set[int] | None, again: list[int], outdated: list[int], why: str
) -> None:
    assert choose_messages(letters, None if asked is None else frozenset(asked)) == (again, outdated), why


class TestResending:
    def test_a_dead_letter_is_queued_again(self, engine: Engine) -> None:
        happen(engine, 0, orders="stopped", billing="stopped")
        rows = queries.deliveries(engine)
        _mark(engine, "dead", *[row.id for row in rows])
        assert resend(engine, [rows[0].id], by=JO, now=at(60)) == Resent(1, 0)
        [queued] = queries.deliveries(engine, state="queued")
        assert (queued.id, queued.attempts, queued.next_attempt_at, queued.last_error) == (rows[0].id, 0, at(60), None)
        assert queued.idempotency_key == rows[0].idempotency_key
        [action] = queries.actions(engine)
        assert (action.action, action.subject) == ("resend", f"message {rows[0].id}")

    def test_a_dead_summary_is_taken_apart_and_what_is_outdated_stays(self, engine: Engine) -> None:
        happen(engine, 0, orders="stopped", billing="stopped", audit="stopped")
        _document_all(engine)
        queue_summaries(engine, "ops", at(10))
        [summary] = queries.deliveries(engine, state="queued")
        _mark(engine, "dead", summary.id)
        for second in (15, 75):
            happen(engine, second, orders="ok", billing="stopped", audit="stopped")
        [over] = queries.deliveries(engine, state="queued")
        _mark(engine, "delivered", over.id)
        assert resend(engine, [summary.id], by=JO, now=at(100)) == Resent(2, 1)
        assert sorted(group for group, _ in _in_state(engine, "queued")) == ["audit", "billing"]
        assert _in_state(engine, "dead") == [("orders", "firing")]
        assert queries.summary_sizes(engine) == {}
        queue_summaries(engine, "ops", at(110))
        [again] = queries.deliveries(engine, state="queued")
        assert again.event == "summary"

    def test_there_must_be_something_to_send(self, engine: Engine) -> None:
        happen(engine, 0, orders="stopped")
        [row] = queries.deliveries(engine)
        with pytest.raises(OperatorError, match="none of these messages was given up"):
            resend(engine, [row.id], by=JO, now=at(60))
        assert resend(engine, None, by=JO, now=at(60)) == Resent(0, 0)


def test_an_order_to_a_database_that_is_not_there_makes_none(tmp_path: Path) -> None:
    made = open_engine(f"sqlite:///{tmp_path / 'typo' / 'lagwise.db'}")
    with pytest.raises(OperatorError, match="there is no database"):
        actions.acknowledge(made, "x", comment="", by=JO, now=at(0))
    assert not (tmp_path / "typo").exists()


def test_what_is_old_is_forgotten(engine: Engine) -> None:
    silence(engine, 0, 60, group="x")
    happen(engine, 0, orders="stopped")
    [alert] = queries.open_alerts(engine)
    actions.acknowledge(engine, alert.incident_id, comment="", by=JO, now=at(10))
    for second in (15, 90):
        happen(engine, second, orders="ok")
    _mark(engine, "delivered", *[row.id for row in queries.deliveries(engine)])
    store.prune(engine, datetime.max.replace(tzinfo=at(0).tzinfo))
    assert queries.actions(engine) == []
    assert queries.mute_state(engine, (), at(30)).acknowledgements == {}


def _in_state(engine: Engine, state: str) -> list[tuple[str, str]]:
    names = {a.incident_id: a.subject.group or "" for a in (*queries.open_alerts(engine), *queries.history(engine))}
    return [(names[row.incident_id], row.event) for row in queries.deliveries(engine, state=state)]


def _mark(engine: Engine, state: str, *ids: int) -> None:
    """As the outbox marks a message that was delivered or given up."""
    values = {"state": state, "attempts": 5, "last_error": "answered 410" if state == "dead" else None}
    with transaction(engine) as connection:
        connection.execute(update(DELIVERIES).where(DELIVERIES.c.id.in_(ids)).values(**values))


def _document_all(engine: Engine) -> None:
    """Payloads that a summary can be made of."""
    document = {
        "event": "firing",
        "severity": "page",
        "status": "stopped",
        "cluster": "kafka",
        "decided_at": "2026-11-21T03:00:05.000Z",
        "dashboard_url": "http://127.0.0.1:8501/group?x",
    }
    with transaction(engine) as connection:
        connection.execute(update(DELIVERIES).values(payload=json.dumps(document)))
