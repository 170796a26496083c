"""The operational database is brought up to date by migrations, in one transaction, on SQLite and PostgreSQL."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, inspect, text

import lagwise_alerts.outbox.database  # noqa: F401 (declares the tables of the alerts)
from lagwise.operational import migrate
from lagwise.operational.columns import metadata
from lagwise.operational.engine import make_database_folder, transaction
from lagwise.operational.migrate import NEWEST, database_version, migrate_database
from lagwise.platform.errors import DatabaseError, NewerThanProgram

SCRIPTS = Path(migrate.__file__).with_name("migrations")


@pytest.fixture
def engine(url: str, opened: Callable[[str], Engine]) -> Engine:
    """An empty database of either kind."""
    return opened(url)


def differences(engine: Engine) -> list[object]:
    with transaction(engine, read_only=True) as connection:
        return compare_metadata(MigrationContext.configure(connection), metadata)


def as_before_alembic(engine: Engine, version: int) -> None:
    """Make it a database of a checkout before Alembic."""
    migrate_database(engine)
    with transaction(engine) as connection:
        connection.execute(text("drop table alembic_version"))
        connection.execute(text(f"update lagwise_schema set version = {version}"))
        if version == 3:
            connection.execute(text("drop table saved_views"))
            for column in ("things", "worsened_at", "shared_incident"):
                connection.execute(text(f"alter table alerts drop column {column}"))


def test_the_migrations_make_what_the_program_declares(engine: Engine) -> None:
    assert database_version(engine) is None
    done = migrate_database(engine)
    assert done is not None
    assert done.startswith("made the tables")
    assert differences(engine) == []
    assert database_version(engine) == NEWEST
    assert migrate_database(engine) is None


def test_the_newest_migration_is_the_one_that_the_program_knows() -> None:
    scripts = ScriptDirectory(str(SCRIPTS))
    assert scripts.get_heads() == [NEWEST]
    numbers = [script.revision for script in scripts.walk_revisions()]
    assert numbers == sorted(numbers, reverse=True)


@pytest.mark.parametrize("version", [3, 4])
def test_a_database_from_before_alembic_is_recognised_and_keeps_its_rows(engine: Engine, version: int) -> None:
    as_before_alembic(engine, version)
    with transaction(engine) as connection:
        connection.execute(
            text(
                "insert into silences (starts_at, ends_at, comment, created_by, created_at) "
                "values ('2026-11-26 00:00:00', '2026-11-27 00:00:00', 'kept', 'me', '2026-11-26 00:00:00')"
            )
        )
    assert database_version(engine) == "0001"
    done = migrate_database(engine)
    assert done is not None
    assert done.endswith(f"from version 0001 to {NEWEST}")
    assert differences(engine) == []
    with transaction(engine, read_only=True) as connection:
        assert connection.scalar(text("select comment from silences")) == "kept"
        assert connection.scalar(text("select version from lagwise_schema")) == 4


def test_a_database_of_a_lease_alone_gets_the_other_tables(engine: Engine) -> None:
    """A collector that starts first makes the table of leases."""
    make_database_folder(engine)
    with transaction(engine) as connection:
        metadata.tables["leases"].create(connection)
    migrate_database(engine)
    assert differences(engine) == []


def test_a_newer_database_is_refused_in_a_sentence(engine: Engine) -> None:
    migrate_database(engine)
    with transaction(engine) as connection:
        connection.execute(text("update alembic_version set version_num = '9999'"))
    for use in (migrate_database, database_version):
        with pytest.raises(NewerThanProgram, match=r"has version 9999.*a newer Lagwise wrote it\. Upgrade Lagwise"):
            use(engine)


def test_a_database_that_is_too_old_is_refused(engine: Engine) -> None:
    as_before_alembic(engine, 2)
    with pytest.raises(DatabaseError, match="long before the first release"):
        migrate_database(engine)


def test_what_fails_leaves_the_database_as_it_was(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    as_before_alembic(engine, 3)
    with transaction(engine) as connection:  # the migration's last statement fails
        connection.execute(text("alter table lagwise_schema rename column version to number"))
        connection.execute(text("alter table lagwise_schema add column version integer check (version < 4)"))
        connection.execute(text("update lagwise_schema set version = 3"))
    with pytest.raises(DatabaseError):
        migrate_database(engine)
    with transaction(engine, read_only=True) as connection:
        there = inspect(connection)
        assert not there.has_table("saved_views")
        assert "things" not in {column["name"] for column in there.get_columns("alerts")}


def test_processes_that_start_together_migrate_once(engine: Engine) -> None:
    as_before_alembic(engine, 3)
    url = engine.url.render_as_string(hide_password=False)
    code = (
        "import sys; from lagwise.operational.engine import open_engine; "
        "from lagwise.operational.migrate import migrate_database; print(migrate_database(open_engine(sys.argv[1])))"
    )
    both = [
        subprocess.Popen([sys.executable, "-c", code, url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = [process.communicate(timeout=60) for process in both]
    assert [err for _, err in said if err] == []
    assert sorted(out.startswith("migrated") for out, _ in said) == [False, False, True]
    assert differences(engine) == []
