"""Brings the operational database and the lake of an older version up to date, once, before anything uses them.

The database migrates in one transaction. The lake is migrated by the process that holds a lease of the database; those
that start with it wait until it is done.
"""

import logging
import threading
from collections.abc import Callable

from lagwise.config import Config
from lagwise.operational.engine import Engine, open_engine
from lagwise.operational.leadership import Leadership
from lagwise.operational.lease import Lease
from lagwise.operational.migrate import migrate_database
from lagwise.platform.errors import DatabaseError, LakeError, NewerThanProgram
from lagwise.tables.migrate import migrate, plan_of
from lagwise.tables.store import Lake

_LOG = logging.getLogger("lagwise.upgrade")
#: How often a process asks whether the one that migrates is done.
_WAIT_SECONDS = 0.5


def upgrade(
    config: Config, say: Callable[[str], None], stop: threading.Event | None = None, *, makes_lake: bool = True
) -> None:
    """Migrate both. ``say`` is told each thing that is done; ``makes_lake`` also begins a lake where there is none.
    Raises DatabaseError or LakeError where one cannot be used, and NewerThanProgram where a newer Lagwise wrote it."""
    engine = open_engine(config.database_url)
    try:
        done = migrate_database(engine)
        if done is not None:
            say(done)
        lake = Lake(config.lake_uri, config.lake.resolved_storage_options())
        plan = plan_of(lake)
        if makes_lake if plan.version is None else not plan.is_up_to_date:
            _upgrade_lake(lake, engine, say, stop or threading.Event())
    finally:
        engine.dispose()


def upgrade_at_start(config: Config, say: Callable[[str], None], *, makes_lake: bool) -> None:
    """As :func:`upgrade`, for what also works while the lake or the database cannot be reached: that is said, and
    columns are added when the lake is next written. Raises NewerThanProgram."""
    try:
        upgrade(config, say, makes_lake=makes_lake)
    except NewerThanProgram:
        raise
    except (DatabaseError, LakeError) as error:
        say(f"whether there is anything to migrate is unknown: {error}")


def _upgrade_lake(lake: Lake, engine: Engine, say: Callable[[str], None], stop: threading.Event) -> None:
    claim = Leadership(Lease(engine, "migration"), "the migration of the lake", _LOG)
    claim.start()
    try:
        while claim.why_not() is not None:
            if stop.wait(_WAIT_SECONDS):
                return
            claim.ask()
        lake.before_writing = claim.check
        migrate(lake, say=say)
    finally:
        claim.stop()
