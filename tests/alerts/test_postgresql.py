"""What is PostgreSQL's own in the operational database. What holds for every database is tested with the `engine`."""

import logging
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from sqlalchemy import Engine, inspect, make_url, text

from lagwise.operational import engine as engine_module
from lagwise.platform.errors import ConfigError, DatabaseError
from lagwise_alerts.model import Alert, Decision
from lagwise_alerts.notify.mute import MuteResult
from lagwise_alerts.notify.mute_state import Matcher, MuteState
from lagwise_alerts.operate import actions, queries
from lagwise_alerts.operate.actions import Operator, Via
from lagwise_alerts.outbox import store
from lagwise_alerts.outbox.database import create_tables, lock, open_engine, transaction
from lagwise_alerts.run import alert_once
from lagwise_alerts.stages import decide_and_mute
from tests.alerts.receiver import Receiver
from tests.alerts.rounds import MakeConfig, beat_of, running, until
from tests.alerts.support import LakeWriter, at, book, group_condition, observation
from tests.fixtures.postgresql import PASSWORD, PostgresServer

pytestmark = pytest.mark.process

Receivers = Callable[..., Receiver]
HOSTILE = ["'; drop table alerts; --", "🦆 für\u202eEnten", "nul\x00", "%s %(group)s {} :name", "\\", "x" * 5000]


@pytest.fixture
def engine(postgresql: str) -> Iterator[Engine]:
    made = open_engine(postgresql)
    yield made
    made.dispose()


@pytest.fixture
def account(postgres_server: PostgresServer, postgresql: str) -> Iterator[Callable[..., Engine]]:
    """Makes an account without rights, then runs statements in the test's database; an engine that uses the account."""
    made: list[Engine] = []
    name, where = make_url(postgresql).database, {"database": make_url(postgresql).database}
    assert name is not None
    user = f"account_{name}"
    postgres_server.execute(f"create user {user} password 'of-{user}'")

    def make(*statements: str) -> Engine:
        postgres_server.execute(*[statement.format(user=user) for statement in statements], **where)
        made.append(open_engine(postgres_server.url(name, user, f"of-{user}")))
        return made[-1]

    yield make
    for one in made:
        one.dispose()
    postgres_server.execute(f"drop owned by {user}", **where)
    postgres_server.execute(f"drop user {user}")


def keep(engine: Engine, *groups: str, inside: Callable[[], None] = lambda: None) -> Decision:
    """Let groups stop; ``inside`` is called within the transaction."""
    rules, seen = book(("ops",)), observation(*[group_condition(0, "stopped", group=group) for group in groups])

    def decided(alerts: Mapping[str, Alert], ended: Mapping[str, Alert], mute_state: MuteState) -> MuteResult:
        inside()
        return decide_and_mute(rules, seen, alerts, ended, mute_state, at(5))

    return store.decide_and_queue(engine, decided, lambda n: n.idempotency_key, now=at(5))


class TestSeveralProcesses:
    def test_the_second_decides_on_what_the_first_has_kept(
        self, engine: Engine, postgresql: str, postgres_server: PostgresServer
    ) -> None:
        create_tables(engine)
        other = open_engine(postgresql)
        second: list[Decision] = []
        waiting = f"select 1 from pg_locks where not granted and pid in ({_sessions(engine)})"

        def start_the_second() -> None:
            thread.start()
            until(lambda: postgres_server.rows(waiting) != [])

        thread = threading.Thread(target=lambda: second.append(keep(other, "orders")))
        first = keep(engine, "orders", inside=start_the_second)
        thread.join(20)
        other.dispose()
        assert (len(first.notifications), len(second[0].notifications)) == (1, 0)
        assert len(queries.deliveries(engine)) == 1

    def test_the_isolation_level_of_the_server_is_overridden(
        self, engine: Engine, postgresql: str, postgres_server: PostgresServer
    ) -> None:
        """With its default of repeatable read the second one would not see what it has waited for."""
        name = make_url(postgresql).database
        postgres_server.execute(f"alter database {name} set default_transaction_isolation = 'repeatable read'")
        self.test_the_second_decides_on_what_the_first_has_kept(engine, postgresql, postgres_server)

    def test_one_that_hangs_is_not_waited_for_for_ever(
        self, engine: Engine, postgresql: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        create_tables(engine)
        other = open_engine(postgresql)
        monkeypatch.setattr(engine_module, "BUSY_SECONDS", 0.1)
        with transaction(other) as hanging:
            lock(hanging)
            with pytest.raises(DatabaseError, match=r"lock timeout$"):
                keep(engine, "orders")
        other.dispose()
        assert len(keep(engine, "orders").notifications) == 1

    def test_all_may_make_the_tables(self, postgresql: str) -> None:
        engines = [open_engine(postgresql) for _ in range(6)]
        with ThreadPoolExecutor(len(engines)) as pool:
            for done in [pool.submit(create_tables, one) for one in engines]:
                done.result()
        assert len(keep(engines[0], "orders").notifications) == 1
        for one in engines:
            one.dispose()


def _sessions(engine: Engine) -> str:
    return f"select pid from pg_stat_activity where datname = '{engine.url.database}'"


class TestHostileText:
    def test_comes_back_as_it_was_but_for_nul(self, engine: Engine) -> None:
        create_tables(engine)
        keep(engine, *HOSTILE)
        kept = {group.replace("\x00", "\u2400") for group in HOSTILE}
        assert {alert.subject.group for alert in queries.open_alerts(engine)} == kept
        assert keep(engine, *HOSTILE).notifications == ()
        for group in HOSTILE:
            by = Operator(group, Via.DASHBOARD)
            times = {"starts_at": at(0), "ends_at": at(60), "now": at(0)}
            actions.silence(engine, Matcher(cluster="x", group="g"), comment=group, by=by, **times)
            assert queries.history(engine, cluster=group, group=group) == []
            assert queries.deliveries(engine, channel=group.replace("\x00", "")) == []
        assert {action.who for action in queries.actions(engine)} == kept
        assert {silence.comment for silence in queries.silences(engine, at(0))} == kept


class TestRights:
    def test_without_any_it_is_one_line(self, account: Callable[..., Engine]) -> None:
        with pytest.raises(DatabaseError, match=r"permission denied for schema public$"):
            create_tables(account())

    def test_who_may_make_tables_needs_nothing_else(self, account: Callable[..., Engine]) -> None:
        engine = account("grant create on schema public to {user}")
        create_tables(engine)
        assert len(keep(engine, "orders").notifications) == 1
        store.prune(engine, at(10_000))

    def test_nor_who_may_use_those_that_are_there(self, engine: Engine, account: Callable[..., Engine]) -> None:
        create_tables(engine)
        working = account(
            "grant select, insert, update, delete on all tables in schema public to {user}",
            "grant usage on all sequences in schema public to {user}",
        )
        create_tables(working)
        assert len(keep(working, "orders").notifications) == 1
        assert len(queries.deliveries(working)) == 1

    def test_who_may_read_can_look(self, engine: Engine, account: Callable[..., Engine]) -> None:
        create_tables(engine)
        keep(engine, "orders")
        reading = account("grant select on all tables in schema public to {user}")
        assert [alert.subject.group for alert in queries.open_alerts(reading)] == ["orders"]
        with pytest.raises(DatabaseError, match="permission denied for table"):
            keep(reading, "billing")


def test_before_the_alert_process_ever_ran_there_is_nothing(engine: Engine) -> None:
    assert (queries.open_alerts(engine), queries.history(engine), queries.deliveries(engine)) == ([], [], [])
    assert queries.counts(engine) == queries.AlertCounts()
    assert inspect(engine).get_table_names() == [], "who looks makes no tables"


class TestRounds:
    def test_from_a_stopped_group_to_the_receiver_and_back(
        self, config: MakeConfig, writer: LakeWriter, receiver: Receivers, postgresql: str
    ) -> None:
        to = receiver()
        settings = config({"ops": to.url}, database=postgresql)
        for seconds, status in ((0, "ok"), (15, "stopped"), (30, "ok"), (90, "ok")):
            writer.all_well(at(seconds), {"orders": {"status": status, "since": at(min(seconds, 30))}})
            report = alert_once(settings, at(seconds + 5))
        assert [(got.document["group"], got.document["event"]) for got in to.got] == [
            ("orders", "firing"),
            ("orders", "resolved"),
        ]
        assert report.line == "0 firing, 0 pending; 2 delivered, 0 queued"
        assert not (settings.state / "lagwise.db").exists()

    def test_a_server_that_is_restarted_between_two_rounds_costs_nothing(
        self,
        config: MakeConfig,
        writer: LakeWriter,
        receiver: Receivers,
        engine: Engine,
        postgres_server: PostgresServer,
    ) -> None:
        create_tables(engine)
        keep(engine, "orders")
        postgres_server.stop()
        postgres_server.start()
        assert len(keep(engine, "orders", "billing").notifications) == 1

    def test_a_lost_server_is_logged_once_and_then_everything_continues(
        self,
        config: MakeConfig,
        writer: LakeWriter,
        receiver: Receivers,
        postgresql: str,
        postgres_server: PostgresServer,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        caplog.set_level(logging.INFO, logger="lagwise.alerts")
        to = receiver()
        settings = config({"ops": to.url}, database=postgresql)
        writer.all_well(datetime.now(UTC), {"orders": {"status": "stalled", "members": 1}})
        with running(settings):
            to.wait_for(1)
            until(lambda: beat_of(settings).startswith("1 firing"))
            postgres_server.stop()
            until(lambda: "cannot use the database" in beat_of(settings))
            writer.groups(datetime.now(UTC), {"orders": "stalled", "billing": {"status": "stalled", "members": 1}})
            postgres_server.start()
            to.wait_for(2)
            until(lambda: beat_of(settings).startswith("2 firing"))
        [said] = [record.getMessage() for record in caplog.records if record.levelname != "INFO"]
        assert said.startswith("cannot use the database postgresql+psycopg://lagwise:[redacted]@127.0.0.1:")
        assert said.endswith("; nothing is decided until it works")
        assert caplog.text.count("the database works again") == 1
        assert "Traceback" not in caplog.text
        assert PASSWORD not in caplog.text


def test_a_driver_that_is_not_there_is_named_with_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("psycopg", "psycopg2"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=r"psycopg is not installed: pip install 'lagwise\[postgresql\]'$"):
        open_engine("postgresql://me@host/db")
    with pytest.raises(ConfigError, match=r"driver psycopg2 is not installed: install it in Lagwise's environment$"):
        open_engine("postgresql+psycopg2://me@host/db")


def test_options_of_the_url_count(postgres_server: PostgresServer, postgresql: str) -> None:
    name = make_url(postgresql).database
    assert name is not None
    for options, shown in (({}, "lagwise"), ({"application_name": "night shift"}, "night shift")):
        made = open_engine(postgres_server.url(name, **options))
        with transaction(made, read_only=True) as connection:
            assert connection.scalar(text("show application_name")) == shown
        made.dispose()


def test_a_port_that_is_none_is_one_line_without_the_password() -> None:
    with pytest.raises(ConfigError, match="the port is not a number") as caught:
        open_engine("postgresql://me:hunter2@host:54x32/db")
    assert "hunter2" not in str(caught.value)
