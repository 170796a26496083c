"""The version of a lake, which a small table keeps: it changes where a difference is more than a new column."""

from deltalake import DeltaTable

from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import NewerThanProgram
from lagwise.tables.engine_errors import as_lake_errors
from lagwise.tables.migrations_table import MIGRATIONS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake

#: The version that the last step leads to.
NEWEST = 1
#: The number of the last commit of this name is the version: a lost data file does not lose it.
WRITER = "lagwise-lake-version"


def lake_version(lake: Lake) -> int:
    """The version of the lake; 0 where none is noted, as in one from before release 0.1. Raises LakeError."""
    return lake.last_transaction(MIGRATIONS, WRITER) or 0


def exists(lake: Lake, table: Table) -> bool:
    """Whether a table exists, whatever its columns. Raises LakeError."""
    with as_lake_errors(f"cannot read the table {lake.location(table)}"):
        return DeltaTable.is_deltatable(lake.location(table), dict(lake.storage_options) or None)


def check_version(lake: Lake, newest: int = NEWEST) -> int:
    """The version of the lake. Raises NewerThanProgram where this program cannot know what it means."""
    version = lake_version(lake)
    if version > newest:
        raise NewerThanProgram(
            f"the lake {lake.uri} has version {version}, and this Lagwise knows versions up to {newest}: a newer "
            "Lagwise wrote it. Upgrade Lagwise, or name another folder with --data",
            code=ErrorCode.LAKE_NEWER,
        )
    return version
