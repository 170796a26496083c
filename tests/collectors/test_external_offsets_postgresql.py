"""Offsets in a real PostgreSQL: what its types become, that nothing is changed, and what is said where it fails."""

import socket
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import make_url

from lagwise.config.external_offsets import SqlOffsets
from lagwise_collectors.external_offsets.model import OffsetSourceTrouble, SourceResult
from lagwise_collectors.external_offsets.sources import OffsetSources, check_offset_sources
from lagwise_collectors.external_offsets.sql_database import read_sql
from lagwise_collectors.protocol import ErrorTally
from tests.alerts.rounds import until
from tests.fixtures.postgresql import PASSWORD, PostgresServer

pytestmark = pytest.mark.process

QUERY = (
    'select consumer as "group", topic, part as "partition", next_offset as "offset", at as updated_at from progress'
)
TABLE = (
    "create table progress (consumer text, topic varchar(249), part smallint, next_offset numeric(20), at timestamptz)"
)


class Progress:
    """A table of offsets, and the account that reads it: with every right, so that only Lagwise holds itself back."""

    def __init__(self, server: PostgresServer, url: str) -> None:
        self.server = server
        self.url = url
        self.database = str(make_url(url).database)
        self.do(TABLE)

    def do(self, *statements: str) -> None:
        self.server.execute(*statements, database=self.database)

    def settings(self, query: str = QUERY, **changes: Any) -> SqlOffsets:
        return SqlOffsets.model_validate({"name": "db", "url": "${env:OFFSETS_URL}", "query": query, **changes})

    def read(self, query: str = QUERY, **changes: Any) -> SourceResult:
        return read_sql(self.settings(query, **changes))


@pytest.fixture
def progress(postgres_server: PostgresServer, postgresql: str, monkeypatch: pytest.MonkeyPatch) -> Progress:
    monkeypatch.setenv("OFFSETS_URL", postgresql)
    return Progress(postgres_server, postgresql)


def offsets(found: SourceResult, group: str) -> dict[tuple[str, int], int | None]:
    return {(one.topic, one.partition): one.committed for one in found.groups[group].offsets}


def refused(progress: Progress, query: str, **changes: Any) -> OffsetSourceTrouble:
    with pytest.raises(OffsetSourceTrouble) as caught:
        progress.read(query, **changes)
    assert "\n" not in str(caught.value)
    assert PASSWORD not in str(caught.value)
    return caught.value


def test_numbers_and_times_of_its_types(progress: Progress) -> None:
    progress.do(
        "insert into progress values ('billing', 'orders', 0, 12, '2026-11-21 08:45:00+05:45')",
        "insert into progress values ('billing', 'orders', 1, 9223372036854775807, null)",
        "insert into progress values ('mail', 'orders', 0, null, null), ('mail', 'orders', 1, -1, null)",
    )
    found = progress.read()
    assert offsets(found, "billing") == {("orders", 0): 12, ("orders", 1): 2**63 - 1}
    assert offsets(found, "mail") == {("orders", 0): None, ("orders", 1): None}
    assert found.groups["billing"].offsets[0].updated_at == datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
    assert not found.errors


def test_the_query_is_sent_as_it_is(progress: Progress) -> None:
    """Neither a per cent sign nor a colon nor a comment is anything but SQL."""
    progress.do("insert into progress values ('a:b', 'orders', 0, 12, null), ('100%s', 'orders', 0, 13, null)")
    where = "where consumer like '%:b' or consumer = '100%s' or at > now() - interval '1 hour' -- :name %(x)s"
    found = progress.read(f"{QUERY} {where}")
    assert offsets(found, "a:b") == {("orders", 0): 12}
    assert offsets(found, "100%s") == {("orders", 0): 13}


@pytest.mark.parametrize(
    "query",
    [
        "delete from progress",
        "update progress set part = 1 returning *",
        "with gone as (delete from progress returning *) select * from gone",
        "drop table progress",
        "create table mine (x int)",
        "insert into progress values ('x', 'orders', 0, 1, null)",
    ],
)
def test_nothing_can_be_changed(progress: Progress, query: str) -> None:
    progress.do("insert into progress values ('billing', 'orders', 0, 12, null)")
    trouble = refused(progress, query)
    assert trouble.kind == "external_offsets_malformed"
    assert "in a read-only transaction" in str(trouble)
    assert offsets(progress.read(), "billing") == {("orders", 0): 12}


def test_a_query_that_takes_too_long_is_ended_on_the_server_too(progress: Progress) -> None:
    began = time.monotonic()
    assert refused(progress, "select pg_sleep(60)", timeout_seconds=0.3).kind == "external_offsets_timeout"
    assert time.monotonic() - began < 20
    sessions = f"select 1 from pg_stat_activity where datname = '{progress.database}'"
    until(lambda: progress.server.rows(sessions) == [])


@pytest.mark.parametrize(
    ("query", "kind", "why"),
    [
        ("select topic from progress", "malformed", "no column group"),
        ("selekt", "malformed", "syntax error"),
        ("select * from elsewhere", "malformed", 'relation "elsewhere" does not exist'),
        ("select pg_terminate_backend(pg_backend_pid())", "unreachable", "terminating connection"),
    ],
)
def test_a_query_that_fails(progress: Progress, query: str, kind: str, why: str) -> None:
    trouble = refused(progress, query)
    assert trouble.kind == f"external_offsets_{kind}"
    assert why in str(trouble)


def test_an_account_without_rights_or_with_a_wrong_password(
    progress: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = f"reader_of_{progress.database}"
    progress.do(f"create user {user} password 'of-a-reader'")
    monkeypatch.setenv("OFFSETS_URL", progress.server.url(progress.database, user, "of-a-reader"))
    assert str(refused(progress, QUERY)) == "permission denied for table progress"
    progress.do(f"grant select on progress to {user}")
    assert progress.read().groups == {}
    progress.do(f"drop owned by {user}", f"drop user {user}")
    monkeypatch.setenv("OFFSETS_URL", progress.server.url(progress.database, password="wrong-password"))
    [check] = check_offset_sources([progress.settings()])
    assert not check.ok
    assert check.advice == "check the secret and the permissions of the account"
    assert "password authentication failed" in check.detail
    assert "wrong-password" not in check.detail


def test_a_server_that_is_gone_costs_its_groups_and_comes_back(progress: Progress) -> None:
    progress.do("insert into progress values ('billing', 'orders', 0, 12, null)")
    sources = OffsetSources([progress.settings(timeout_seconds=10)])

    def look() -> tuple[dict[str, str | None], ErrorTally]:
        errors = ErrorTally()
        sources.begin()
        return {group.name: group.error for group in sources.finish(lambda name: True, errors).groups}, errors

    assert look()[0] == {"billing": None}
    progress.server.stop()
    groups, errors = look()
    assert groups == {"billing": "external_offsets_unreachable"}
    said = errors.example("external_offsets_unreachable")
    assert said.startswith("offsets from db: connection failed: ")
    assert said.endswith("Connection refused")
    progress.server.start()
    assert look()[0] == {"billing": None}


def test_one_that_has_too_many_connections_is_said_to_be_unreachable(progress: Progress) -> None:
    progress.do(f"alter database {progress.database} connection limit 0")
    user = f"guest_of_{progress.database}"  # the limit does not hold for the owner of the server
    progress.do(f"create user {user} password 'of-a-guest'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OFFSETS_URL", progress.server.url(progress.database, user, "of-a-guest"))
        trouble = refused(progress, QUERY)
    assert trouble.kind == "external_offsets_unreachable"
    assert "too many connections" in str(trouble)
    progress.do(f"drop user {user}", f"alter database {progress.database} connection limit -1")


def test_the_driver_hands_on_the_time_limit(progress: Progress) -> None:
    """A server that takes a connection and says nothing is given up."""
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OFFSETS_URL", f"postgresql://me:{PASSWORD}@127.0.0.1:{silent.getsockname()[1]}/db")
        began = time.monotonic()
        trouble = refused(progress, QUERY, timeout_seconds=0.5)
        assert time.monotonic() - began < 30
    assert trouble.kind == "external_offsets_unreachable"
    assert "timeout" in str(trouble)
