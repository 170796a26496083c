"""How a query is declared and run."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import duckdb
import pyarrow as pa

from lagwise.platform.errors import LakeError
from lagwise.tables.duckdb_connection import OUR_MISTAKES, borrowed
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise.tables.tolerant import TolerantLake

P = ParamSpec("P")
R = TypeVar("R")

Row = dict[str, Any]
Days = tuple[str, str]
#: Which rows of a table can be needed: those of some days, those since a moment, or (None) all. Files without such a
#: row are left out; the statement still has to ask for what it wants.
ScanLimit = Days | datetime | None
Tables = Mapping[Table, ScanLimit]
Parameters = Mapping[str, Any] | None

#: A line in a chart never has more points than this: one every three pixels of a large screen.
MAX_POINTS = 400


class Query(Generic[P, R]):
    """A question to the lake, together with the tables its answer rests on."""

    def __init__(self, function: Callable[Concatenate[Lake, P], R], tables: tuple[Table, ...]) -> None:
        self._function = function
        self.tables = tables
        self.name = f"{function.__module__}.{function.__qualname__}"
        self.__doc__ = function.__doc__

    def __call__(self, lake: Lake, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(lake, *args, **kwargs)


def reads(*tables: Table) -> Callable[[Callable[Concatenate[Lake, P], R]], Query[P, R]]:
    """Declare the tables a query reads."""

    def declare(function: Callable[Concatenate[Lake, P], R]) -> Query[P, R]:
        return Query(function, tables)

    return declare


def run(lake: Lake, tables: Tables, sql: str, parameters: Parameters = None) -> pa.Table:
    """Run one statement over snapshots of the tables, each limited as far as given.

    A file may vanish between listing and reading, when the table is rewritten meanwhile; a second attempt reads the
    table's newest version. If that fails, too, damaged files of history are left out, which the page says. Raises
    LakeError if that does not help either.
    """
    try:
        return _run_once(lake, tables, sql, parameters)
    except OUR_MISTAKES:
        raise
    except (duckdb.Error, LakeError):
        try:
            return _run_once(lake, tables, sql, parameters)
        except (duckdb.Error, LakeError) as error:
            if isinstance(lake, TolerantLake) and lake.leave_out(list(tables), error):
                return run(lake, tables, sql, parameters)
            if isinstance(error, LakeError):
                raise
            names = ", ".join(table.path for table in tables)
            raise LakeError(
                f"a data file of {names} in {lake.uri} cannot be read: {str(error).strip().splitlines()[0]}"
            ) from error


def rows(lake: Lake, tables: Tables, sql: str, parameters: Parameters = None) -> list[Row]:
    """Like :func:`run`, as one dict a row."""
    result: list[Row] = run(lake, tables, sql, parameters).to_pylist()
    return result


def first_row(lake: Lake, tables: Tables, sql: str, parameters: Parameters = None) -> Row | None:
    """Like :func:`rows`, of one row at most; None where there is none."""
    return next(iter(rows(lake, tables, sql, parameters)), None)


def first_column(lake: Lake, tables: Tables, sql: str, parameters: Parameters = None) -> list[Any]:
    """Like :func:`rows`, of one column alone."""
    result: list[Any] = run(lake, tables, sql, parameters)[0].to_pylist()
    return result


def days(since: datetime, until: datetime) -> Days:
    """The UTC days from one moment to another, for leaving out other days' files."""
    return since.date().isoformat(), until.date().isoformat()


def bucket_seconds(since: datetime, until: datetime, *, at_least: float = 1.0) -> float:
    """Width of the buckets that make at most MAX_POINTS of a span."""
    # A span that begins within a bucket ends within one more.
    return max(at_least, (until - since).total_seconds() / (MAX_POINTS - 1))


def _run_once(lake: Lake, tables: Tables, sql: str, parameters: Parameters) -> pa.Table:
    with borrowed() as connection:
        for table, limit in tables.items():
            if isinstance(limit, datetime):
                lake.scan(connection, table, since=limit)
            else:
                lake.scan(connection, table, days=limit)
        return connection.sql(sql, params=dict(parameters or {})).to_arrow_table()
