"""DuckDB as Lagwise uses it: a database of its own in memory, for questions to the files of the lake."""

import tempfile
import uuid
from pathlib import Path
from typing import Any

import duckdb

#: Errors that the data is not to blame for.
OUR_MISTAKES = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)


def connected(**config: Any) -> duckdb.DuckDBPyConnection:
    """A new connection, with times in UTC.

    What does not fit into memory goes to a folder of its own among the system's temporary ones. By default that would
    be one in the working directory, which may not be writable, and is shared with whatever else runs there.
    """
    spill = Path(tempfile.gettempdir()) / f"lagwise-duckdb-{uuid.uuid4().hex}"
    made = duckdb.connect(":memory:", config={"temp_directory": str(spill), **config})
    made.execute("set TimeZone = 'UTC'")
    return made
