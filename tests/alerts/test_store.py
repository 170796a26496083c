"""Decisions in the database: all of one or none of it, the same alert back, and no doubles."""

import re
import sqlite3
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from sqlalchemy import Engine, insert, select, text, update

from lagwise.platform.errors import ConfigError, DatabaseError
from lagwise_alerts.model import (
    Alert,
    AlertKind,
    AlertState,
    AlertSubject,
    Decision,
    Notification,
    Situation,
)
from lagwise_alerts.notify.mute import MuteResult
from lagwise_alerts.notify.mute_state import MuteState
from lagwise_alerts.operate import queries
from lagwise_alerts.outbox import store
from lagwise_alerts.outbox.database import ALERTS, DELIVERIES, SCHEMA, create_tables, open_engine, transaction
from lagwise_alerts.rules.rule_file import RuleBook
from lagwise_alerts.stages import decide_and_mute
from tests.alerts.support import Player, at, book, freshness, group_condition, observation, refusing


def keep(engine: Engine, seen: Situation, now: float, rules: RuleBook | None = None) -> Decision:
    rules = rules or book(("ops", "chat"))
    return store.decide_and_queue(
        engine,
        lambda *stored: decide_and_mute(rules, seen, *stored, now=at(now)),
        lambda n: n.idempotency_key,
        now=at(now),
        remember=timedelta(hours=1),
    )


def opened(engine: Engine) -> Mapping[str, Alert]:
    with transaction(engine, read_only=True) as connection:
        return store.load_open(connection)


def test_an_alert_comes_back_as_it_was(engine: Engine) -> None:
    """Through every phase, so that a restart at any point decides as if there had been none."""
    player = Player(book(("ops", "chat")))
    history = [
        (5, observation(group_condition(0, "falling_behind", group="naïve\n\x1b'\";--"))),
        (20, observation(group_condition(15, "stopped", group="naïve\n\x1b'\";--"), freshness(20, None))),
        (35, observation(group_condition(30, "unknown", reason="rebalancing", group="naïve\n\x1b'\";--"))),
        (50, observation(group_condition(45, "ok", group="naïve\n\x1b'\";--"))),
    ]
    notified: list[Notification] = []
    for now, seen in history:
        decision = keep(engine, seen, now)
        player.see(now, seen)
        assert opened(engine) == player.alerts
        notified += decision.notifications
        assert notified == player.notified
    assert player.alerts


def test_messages_are_queued_per_channel_with_the_decision(engine: Engine) -> None:
    keep(engine, observation(group_condition(0, "stopped")), 5)
    rows = queries.deliveries(engine)
    assert [(r.channel, r.event, r.state, r.attempts) for r in rows] == [
        ("chat", "firing", "queued", 0),
        ("ops", "firing", "queued", 0),
    ]
    assert len({r.idempotency_key for r in rows}) == 1
    assert {r.created_at for r in rows} == {at(5)}


def test_without_channels_alerts_are_kept_all_the_same(engine: Engine) -> None:
    keep(engine, observation(group_condition(0, "stopped")), 5, book(()))
    assert [a.subject.group for a in queries.open_alerts(engine)] == ["orders"]
    assert not queries.deliveries(engine)


@pytest.mark.parametrize("table", ["alerts", "deliveries", "active_groups"])
def test_a_decision_is_kept_whole_or_not_at_all(engine: Engine, table: str) -> None:
    """The database refuses in the middle; then it works again and the same decision is made."""

    def decide_and_keep(now: float) -> Decision:
        seen = observation(group_condition(0, "stopped"))
        rules = book(("ops", "chat"))
        active = [AlertSubject(AlertKind.GROUP, "kafka", "orders")]
        return store.decide_and_queue(
            engine,
            lambda *stored: decide_and_mute(rules, seen, *stored, now=at(now)),
            lambda n: "",
            active=active,
            now=at(now),
        )

    with refusing(engine, "insert", table), pytest.raises(DatabaseError, match="disk is full"):
        decide_and_keep(5)
    assert not opened(engine)
    assert not queries.deliveries(engine)
    assert not queries.active_groups(engine)
    assert len(decide_and_keep(10).notifications) == 1
    assert len(queries.deliveries(engine)) == 2


def test_deciding_again_on_the_same_sends_nothing_more(engine: Engine) -> None:
    for now in (5, 10, 15):
        keep(engine, observation(group_condition(0, "stopped")), now)
    assert len(queries.deliveries(engine, state="queued")) == 2


def test_two_processes_on_one_database_notify_once(sqlite: Engine) -> None:
    """The second one decides on what the first has kept, because the write lock is taken before reading.

    That of PostgreSQL is in test_postgresql.
    """
    engine = sqlite
    other = open_engine(engine.url.render_as_string(hide_password=False))
    seen = observation(group_condition(0, "stopped"))
    inside: list[str] = []

    def slow(alerts: Mapping[str, Alert], ended: Mapping[str, Alert], mute_state: MuteState) -> MuteResult:
        third = sqlite3.connect(str(engine.url.database), timeout=0.05)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            third.execute("begin immediate")
        third.close()
        inside.append("locked")
        return decide_and_mute(book(), seen, alerts, ended, mute_state, at(5))

    store.decide_and_queue(engine, slow, lambda n: "", now=at(5))
    second = keep(other, seen, 6, book())
    other.dispose()
    assert inside == ["locked"]
    assert not second.notifications
    assert len(queries.deliveries(engine)) == 1


def test_the_database_itself_refuses_doubles(engine: Engine) -> None:
    keep(engine, observation(group_condition(0, "stopped")), 5, book())
    with transaction(engine, read_only=True) as connection:
        alert = dict(connection.execute(select(ALERTS)).one()._mapping)
        delivery = dict(connection.execute(select(DELIVERIES)).one()._mapping)
    with pytest.raises(DatabaseError), transaction(engine) as connection:
        connection.execute(insert(ALERTS), alert | {"incident_id": "another of the same subject"})
    with pytest.raises(DatabaseError), transaction(engine) as connection:
        connection.execute(insert(DELIVERIES), delivery | {"id": None})


def test_a_resolved_alert_leaves_room_for_the_next(engine: Engine) -> None:
    for now, status in ((5, "stopped"), (20, "ok"), (95, "ok"), (110, "stopped")):
        keep(engine, observation(group_condition(now - 5, status, since=15 if status == "ok" else None)), now)
    assert [a.state for a in queries.open_alerts(engine)] == [AlertState.FIRING]
    (ended,) = queries.history(engine)
    assert (ended.resolved_at, ended.resolution, ended.status) == (at(95), "recovered", "stopped")


def test_pending_alerts_that_pass_leave_no_row(engine: Engine) -> None:
    keep(engine, observation(group_condition(0, "falling_behind")), 5)
    assert [a.state for a in queries.open_alerts(engine)] == [AlertState.PENDING]
    keep(engine, observation(group_condition(15, "ok")), 20)
    with transaction(engine, read_only=True) as connection:
        assert not connection.execute(select(ALERTS)).all()


class TestPruning:
    def test_what_ended_long_ago_is_forgotten_and_nothing_else(self, engine: Engine) -> None:
        for now, status in ((5, "stopped"), (20, "ok"), (95, "ok")):
            keep(
                engine, observation(group_condition(now - 5, status, since=15 if status == "ok" else None)), now, book()
            )
        keep(engine, observation(group_condition(100, "stopped", group="still")), 105, book())
        store.prune(engine, at(10_000))
        assert len(queries.history(engine)) == 1, "its messages are still queued"
        with transaction(engine) as connection:
            connection.execute(update(DELIVERIES).values(state="delivered"))
        store.prune(engine, at(50))
        assert len(queries.history(engine)) == 1, "it ended after that time"
        store.prune(engine, at(10_000))
        assert not queries.history(engine)
        assert not queries.deliveries(engine)
        assert [a.subject.group for a in queries.open_alerts(engine)] == ["still"]


class TestSignsOfLife:
    def test_are_remembered_once(self, engine: Engine) -> None:
        groups = [AlertSubject(AlertKind.GROUP, "kafka", name) for name in ("a", "b", "c\x00d")]
        for active in (groups[:2], groups[1:]):
            store.decide_and_queue(engine, lambda *_: MuteResult(Decision()), lambda n: "", active=active, now=at(0))
        assert queries.active_groups(engine) == {group.fingerprint for group in groups}

    def test_a_name_that_a_database_cannot_store_is_sent_unchanged(self, engine: Engine) -> None:
        for now, status in ((5, "stopped"), (20, "losing_data")):
            decision = keep(engine, observation(group_condition(now - 5, status, group="c\x00d")), now)
            assert [n.alert.subject.group for n in decision.notifications] == ["c\x00d"]
        assert [alert.subject.group for alert in queries.open_alerts(engine)] == ["c\u2400d"]


class TestTheDatabase:
    def test_times_are_utc_whatever_the_zone_they_were_given_in(self, engine: Engine) -> None:
        keep(engine, observation(group_condition(0, "stopped")), 5)
        berlin = timezone(timedelta(hours=1))
        given = datetime(2026, 11, 21, 5, 0, 0, 250, tzinfo=berlin)
        with transaction(engine) as connection:
            connection.execute(update(ALERTS).values(fired_at=given))
        (alert,) = queries.open_alerts(engine)
        assert alert.fired_at == given
        assert alert.fired_at is not None
        assert alert.fired_at.tzinfo is UTC
        with engine.connect() as connection:
            kept = connection.scalar(text("select fired_at from alerts"))
        assert kept == ("2026-11-21 04:00:00.000250" if engine.dialect.name == "sqlite" else given)

    def test_a_time_without_zone_is_refused(self, engine: Engine) -> None:
        with pytest.raises(DatabaseError, match="has no time zone"), transaction(engine) as connection:
            connection.execute(update(ALERTS).values(fired_at=datetime(2026, 1, 1)))  # noqa: DTZ001 (that is the point)

    def test_sqlite_survives_a_power_cut_and_lets_pages_read(self, sqlite: Engine) -> None:
        with transaction(sqlite) as writes, transaction(sqlite, read_only=True) as reads:
            assert writes.scalar(text("pragma journal_mode")) == "persist"
            assert writes.scalar(text("pragma synchronous")) == 2
            assert reads.scalar(select(SCHEMA.c.component)) == "alerts"

    def test_sqlite_is_not_mapped_into_memory(self, tmp_path: Path) -> None:
        """What is mapped and cannot be written any more (a read-only remount) would end the process by SIGBUS."""
        path = tmp_path / "lagwise.db"
        earlier = sqlite3.connect(path)
        earlier.execute("pragma journal_mode = WAL")
        earlier.execute("create table there (kept integer)")
        for is_in_use in (True, False):
            engine = open_engine(f"sqlite:///{path}")
            create_tables(engine)
            with transaction(engine) as connection:
                assert connection.scalar(text("pragma journal_mode")) == ("wal" if is_in_use else "persist")
                assert connection.scalar(text("select count(*) from there")) == 0
                if sys.platform == "linux":
                    assert (str(path) in Path("/proc/self/maps").read_text()) == is_in_use
            engine.dispose()
            earlier.close()

    def test_a_newer_one_is_refused(self, engine: Engine) -> None:
        with transaction(engine) as connection:
            connection.execute(text("update alembic_version set version_num = '9999'"))
        with pytest.raises(DatabaseError, match="newer Lagwise wrote it"):
            create_tables(engine)

    def test_one_from_before_the_first_release_is_refused(self, engine: Engine) -> None:
        with transaction(engine) as connection:
            connection.execute(text("drop table alembic_version"))
            connection.execute(update(SCHEMA).values(version=2))
        with pytest.raises(DatabaseError, match="before the first release"):
            create_tables(engine)

    def test_preparing_again_changes_nothing(self, engine: Engine) -> None:
        keep(engine, observation(group_condition(0, "stopped")), 5)
        create_tables(engine)
        assert len(queries.open_alerts(engine)) == 1

    @pytest.mark.parametrize("url", ["nonsense", "nosuchdb://x/y", "sqlite+nosuchdriver:///x"])
    def test_a_url_that_is_none_is_a_matter_of_settings(self, url: str) -> None:
        with pytest.raises(ConfigError, match="database: ") as caught:
            open_engine(url)
        assert "\n" not in str(caught.value)

    def test_the_url_may_be_a_reference(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LAGWISE_SECRET_DB", f"sqlite:///{tmp_path / 'x.db'}")
        made = open_engine("${env:LAGWISE_SECRET_DB}")
        create_tables(made)
        made.dispose()
        assert (tmp_path / "x.db").exists()

    def test_a_file_that_is_no_database_is_one_line(self, tmp_path: Path) -> None:
        (tmp_path / "x.db").write_text("not a database, but long enough to be looked at" * 50, encoding="utf-8")
        made = open_engine(f"sqlite:///{tmp_path / 'x.db'}")
        with pytest.raises(DatabaseError, match="file is not a database") as caught:
            create_tables(made)
        made.dispose()
        assert "\n" not in str(caught.value)
        assert "x.db" in str(caught.value)

    def test_a_folder_that_cannot_be_made_is_one_line(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("in the way", encoding="utf-8")
        made = open_engine(f"sqlite:///{tmp_path / 'file' / 'lagwise.db'}")
        with pytest.raises(DatabaseError, match="cannot make the folder"):
            create_tables(made)
        made.dispose()

    def test_errors_hold_neither_statements_nor_parameters(self, engine: Engine) -> None:
        with transaction(engine) as connection:
            connection.execute(text("drop table deliveries"))
        with pytest.raises(DatabaseError) as caught:
            keep(engine, observation(group_condition(0, "stopped", group="private")), 5)
        assert re.search('no such table: deliveries$|relation "deliveries" does not exist$', str(caught.value))
        assert "private" not in str(caught.value)


class TestQueries:
    def test_before_the_alert_process_ever_ran_there_is_nothing(self, tmp_path: Path) -> None:
        made = open_engine(f"sqlite:///{tmp_path / 'none' / 'lagwise.db'}")
        assert (queries.open_alerts(made), queries.history(made), queries.deliveries(made)) == ([], [], [])
        assert queries.counts(made) == queries.AlertCounts()
        assert not (tmp_path / "none").exists()
        (tmp_path / "empty.db").touch()
        empty = open_engine(f"sqlite:///{tmp_path / 'empty.db'}")
        assert queries.open_alerts(empty) == []
        made.dispose()
        empty.dispose()

    def test_open_alerts_come_worst_first(self, engine: Engine) -> None:
        seen = observation(
            group_condition(0, "falling_behind", group="pending"),
            group_condition(0, "falling_behind", group="warned", since=-600),
            group_condition(0, "stopped", group="paged"),
        )
        keep(engine, seen, 5)
        assert [a.subject.group for a in queries.open_alerts(engine)] == ["paged", "warned", "pending"]
        assert queries.counts(engine) == queries.AlertCounts(firing=2, pending=1, queued=4)

    def test_history_by_group(self, engine: Engine) -> None:
        for now, status in ((5, "stopped"), (20, "ok"), (95, "ok")):
            since = 15 if status == "ok" else None
            both = [group_condition(now - 5, status, since=since, group=group) for group in ("a", "b")]
            keep(engine, observation(*both), now)
        assert len(queries.history(engine)) == 2
        (one,) = queries.history(engine, cluster="kafka", group="b")
        assert one.subject.group == "b"
        assert [d.event for d in queries.deliveries(engine, incident_id=one.incident_id)] == [
            "resolved",
            "resolved",
            "firing",
            "firing",
        ]
        assert queries.history(engine, cluster="other") == []
        assert len(queries.history(engine, limit=1)) == 1


def test_what_flaps_is_known_after_a_restart(engine: Engine) -> None:
    rules = book(("ops",))
    for start in (0, 600, 1200):
        keep(engine, observation(group_condition(start, "stopped")), start, rules)
        keep(engine, observation(group_condition(start + 15, "ok")), start + 15, rules)
        keep(engine, observation(group_condition(start + 100, "ok", since=start + 15)), start + 100, rules)
    (alert,) = opened(engine).values()
    assert alert.flapping
    assert alert.recent_starts == (at(0), at(600), at(1200))
    (row,) = queries.open_alerts(engine)
    assert row.flapping
    assert row.notified_at == at(1200)
