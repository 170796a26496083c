"""DuckDB as Lagwise uses it: a database of its own in memory, for questions to the files of the lake."""

import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Full, LifoQueue
from typing import Any

import duckdb

#: Errors that the data is not to blame for.
OUR_MISTAKES = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)

#: Connections for the next questions, as opening one takes longer than most questions. As many as there are questions
#: at one moment, on a machine whose cores are all at work.
_idle: LifoQueue[duckdb.DuckDBPyConnection] = LifoQueue(4)


def connected(**config: Any) -> duckdb.DuckDBPyConnection:
    """A new connection, with times in UTC.

    What does not fit into memory goes to a folder of its own among the system's temporary ones. By default that would
    be one in the working directory, which may not be writable, and is shared with whatever else runs there.
    """
    spill = Path(tempfile.gettempdir()) / f"lagwise-duckdb-{uuid.uuid4().hex}"
    made = duckdb.connect(":memory:", config={"temp_directory": str(spill), **config})
    made.execute("set TimeZone = 'UTC'")
    return made


@contextmanager
def borrowed() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection for one question. Each is a database of its own in memory, so that no question sees another's views;
    what a question made or registered is rolled back. A connection that failed is closed, whatever is wrong with it."""
    try:
        connection = _idle.get_nowait()
    except Empty:
        # Who asks again keeps the answer; files kept as well would only make the process grow.
        connection = connected(enable_external_file_cache=False)
    try:
        connection.begin()
        yield connection
        connection.rollback()
    except BaseException:
        connection.close()
        raise
    try:
        _idle.put_nowait(connection)
    except Full:
        connection.close()
