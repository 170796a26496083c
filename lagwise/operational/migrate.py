"""The version of the operational database, and how it is brought up to date: by Alembic, in one transaction."""

import logging
from pathlib import Path

from sqlalchemy import Connection, Engine, MetaData, Table, inspect, select

from lagwise.operational.engine import make_database_folder, shown, sqlite_file, transaction, wait_for_other_makers
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import DatabaseError, NewerThanProgram

#: The newest migration in ``migrations/versions``. Their numbers ascend.
NEWEST = "0003"
#: What a database is taken for that was made before Alembic: the next migration adds what it lacks.
_BEFORE_ALEMBIC = "0001"
#: The oldest version in ``lagwise_schema`` that can be migrated.
_OLDEST = 3
_SCRIPTS = Path(__file__).with_name("migrations")


def database_version(engine: Engine) -> str | None:
    """The version of the database; None if it has no table of Lagwise. Raises DatabaseError."""
    file = sqlite_file(engine)
    if file is not None and not file.exists():
        return None  # connecting would make it
    with transaction(engine, read_only=True) as connection:
        return _version(engine, connection)[0]


def migrate_database(engine: Engine) -> str | None:
    """Make the tables, or bring them up to date; says in a line what was done, None where there was nothing to do.

    Processes that start together wait for each other; a kill undoes everything. Raises DatabaseError.
    """
    make_database_folder(engine)
    with transaction(engine, read_only=True) as connection:
        if _version(engine, connection)[0] == NEWEST:
            return None
    with transaction(engine) as connection:
        return migrate_within(engine, connection)


def migrate_within(engine: Engine, connection: Connection) -> str | None:
    """As :func:`migrate_database`, within a transaction of the caller."""
    wait_for_other_makers(connection)
    version, is_stamped = _version(engine, connection)
    if version == NEWEST:
        return None
    from alembic import command  # 0.2 s, and rarely needed
    from alembic.config import Config

    logging.getLogger("alembic").setLevel(logging.WARNING)
    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    if version is not None and not is_stamped:
        command.stamp(config, version)
    command.upgrade(config, "head")
    if version is None:
        return f"made the tables of the database {shown(engine)} (version {NEWEST})"
    return f"migrated the database {shown(engine)} from version {version} to {NEWEST}"


def _version(engine: Engine, connection: Connection) -> tuple[str | None, bool]:
    """The version, and whether Alembic has noted it. Raises DatabaseError where it cannot be used."""
    there = inspect(connection)
    if there.has_table("alembic_version"):
        noted = Table("alembic_version", MetaData(), autoload_with=connection)
        version = connection.scalar(select(noted.c.version_num))
        if version is not None:
            if version > NEWEST:
                raise NewerThanProgram(
                    f"the database {shown(engine)} has version {version}, and this Lagwise knows versions up to "
                    f"{NEWEST}: a newer Lagwise wrote it. Upgrade Lagwise, or name another database",
                    code=ErrorCode.DATABASE_NEWER,
                )
            return str(version), True
    if not there.has_table("lagwise_schema"):
        return None, False
    known = Table("lagwise_schema", MetaData(), autoload_with=connection)
    before = connection.scalar(select(known.c.version).where(known.c.component == "alerts"))
    if before is not None and before < _OLDEST:
        raise DatabaseError(
            f"the database {shown(engine)} was written by a Lagwise long before the first release (its alert tables "
            f"have version {before}, the oldest that can be migrated is {_OLDEST}): delete it, or name another "
            "database",
            code=ErrorCode.DATABASE_TOO_OLD,
        )
    return _BEFORE_ALEMBIC, False
