"""The lake: Delta tables under one URI, opened, appended to and read through delta-rs.

Tables are created by us with plain features only, because who reads the listed files (DuckDB, tasks of the analysis)
must be able to trust what it sees: see :mod:`lagwise.tables.guard` and ``docs/adr/0002-plain-delta-tables.md``.
"""

import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, QueryBuilder, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction

from lagwise.platform.errors import LakeError, UnreadableTable
from lagwise.tables.commit_actions import added, removed
from lagwise.tables.data_files import DataFile, data_files, rows_of_file
from lagwise.tables.engine_errors import as_lake_errors, in_a_line
from lagwise.tables.kept_rows import KeptRows
from lagwise.tables.open_tables import OpenTables, create
from lagwise.tables.schema import Table, no_rows
from lagwise.tables.views import show, show_files, show_stored_files
from lagwise.tables.written_files import write_rows

if TYPE_CHECKING:
    import duckdb  # 0.2 s, imported where it is needed: short commands do without

T = TypeVar("T")
Action = AddAction | RemoveAction

#: The key, in what Delta keeps of a commit, of the process that made it.
_WRITTEN_BY = "lagwise.process"
#: How many commits are recent.
_RECENT_COMMITS = 20
#: A disk that takes so much takes the next commit, as a rule.
_TRIED_BYTES = 64 * 1024


class Lake:
    """All tables under one URI. Cheap to make; opened tables are kept and refreshed. Safe to use from threads."""

    def __init__(self, uri: str, storage_options: Mapping[str, str] | None = None) -> None:
        self.uri = uri.rstrip("/")
        self.storage_options = dict(storage_options or {})
        #: Called before each write, by everything that commits; may raise to prevent it.
        self.before_writing: Callable[[], None] = lambda: None
        #: Kept with each commit: the process that makes it, in words.
        self.written_by = ""
        #: Rows that :meth:`query` need not read again; for a process that asks the same all the time.
        self.kept: KeptRows | None = None
        self._tables = OpenTables()

    @property
    def is_local(self) -> bool:
        return "://" not in self.uri

    def location(self, table: Table) -> str:
        """URI of one table."""
        return f"{self.uri}/{table.path}"

    def create(self, *tables: Table) -> None:
        """Create the tables that do not exist yet, and add columns to those of an older version. Raises LakeError."""
        for table in tables:
            with as_lake_errors(f"cannot create the table {self.location(table)}"):
                if self.is_local:
                    Path(self.location(table)).mkdir(parents=True, exist_ok=True)
                create(table, self.location(table), self.storage_options)

    def open(self, table: Table) -> DeltaTable | None:
        """The table at its newest version; None if it does not exist yet.

        Raises LakeError if it cannot be read or uses a feature that our readers do not understand.
        """
        return self._tables.newest(table, self.location(table), self.storage_options)

    def unchanging(self) -> AbstractContextManager[None]:
        """Meanwhile tables are as they were when they were first asked for, but for what is written through this
        object. Looking for newer versions takes as long as many a question."""
        return self._tables.unchanging()

    def version(self, table: Table) -> int | None:
        """Number of the table's newest version, which changes with every write; None if the table does not exist yet.

        Raises LakeError.
        """
        delta = self.open(table)
        return None if delta is None else delta.version()

    def forget(self, table: Table) -> None:
        """Open the table again the next time: its log was changed in another way than by a commit."""
        self._tables.forget(table)

    def append(self, table: Table, rows: pa.Table, *, transactions: Mapping[str, int] | None = None) -> None:
        """Append rows in one commit; the ``day`` column is derived. Raises LakeError, having added nothing.

        ``transactions`` (numbers by writer) are kept with the commit: from :meth:`last_transaction` a writer that was
        interrupted, or never learnt how a commit went, sees whether its rows are there.
        """
        if rows.num_rows == 0:
            return
        with self._writing(table) as delta:
            if self.is_local:
                # What a full disk or a read-only folder refuses, it refuses here: delta-rs would print a page about it.
                with tempfile.TemporaryFile(dir=self.location(table)) as file:
                    file.write(bytes(_TRIED_BYTES))
            files = write_rows(self.uri, self.storage_options, table, rows)
            self._commit(table, delta, added(files), transactions)

    def mark(self, table: Table, writer: str, number: int) -> None:
        """Keep a writer's number with a commit of no rows. Raises LakeError."""
        with self._writing(table) as delta:
            self._commit(table, delta, [], {writer: number})

    def write_files(self, table: Table, rows: pa.Table) -> pa.Table:
        """Write rows as data files: see :func:`lagwise.tables.written_files.write_rows`. Raises LakeError."""
        with self._writing(table):
            return write_rows(self.uri, self.storage_options, table, rows)

    def add_files(self, table: Table, files: pa.Table) -> None:
        """Make data files part of a table in one commit: of :meth:`write_files`, or of tasks. Raises LakeError."""
        with self._writing(table) as delta:
            self._commit(table, delta, added(files))

    def replace_files(self, table: Table, files: pa.Table) -> None:
        """As :meth:`add_files`, in place of all that a table of the present state had."""
        with self._writing(table) as delta:
            self._commit(table, delta, [*removed(data_files(delta, table)), *added(files)])

    def replace(self, table: Table, rows: pa.Table, where: str | None = None) -> None:
        """Replace all rows of a table, or those that a condition holds for, in one commit; the ``day`` column is
        derived. Raises LakeError, having written nothing."""
        with self._writing(table) as delta:
            if where is not None or table.partitioned:
                write_deltalake(delta, table.with_day(rows), mode="overwrite", predicate=where)
            else:
                files = write_rows(self.uri, self.storage_options, table, rows)
                self._commit(table, delta, [*removed(data_files(delta, table)), *added(files)])

    def commit(self, table: Table, actions: Sequence[Action]) -> bool:
        """Add and remove these data files in one commit; False, with nothing done, if another process has just removed
        one of them. Raises LakeError."""
        with self._writing(table) as delta, suppress(CommitFailedError):
            self._commit(table, delta, actions)
            return True
        return False

    @contextmanager
    def _writing(self, table: Table) -> Iterator[DeltaTable]:
        if (delta := self.open(table)) is None:
            raise LakeError(f"there is no table {self.location(table)}")
        self.before_writing()
        with as_lake_errors(f"cannot write to the table {self.location(table)}"):
            yield delta

    def _commit(
        self, table: Table, delta: DeltaTable, actions: Sequence[Action], numbers: Mapping[str, int] | None = None
    ) -> None:
        kept = [Transaction(writer, number) for writer, number in (numbers or {}).items()] or None
        who = {_WRITTEN_BY: self.written_by} if self.written_by else None
        by, how = ["day"] if table.partitioned else None, CommitProperties(custom_metadata=who, app_transactions=kept)
        try:
            delta.create_write_transaction(list(actions), "append", delta.schema(), by, commit_properties=how)
        finally:
            self._tables.changed(table)

    def last_transaction(self, table: Table, writer: str) -> int | None:
        """Number of the last append that this writer gave one; None if there is none. Raises LakeError."""
        delta = self.open(table)
        return None if delta is None else delta.transaction_version(writer)

    def recent_writers(self, table: Table) -> list[str]:
        """The processes that made the last commits (:attr:`written_by`), the newest first. Raises LakeError."""
        delta = self.open(table)
        with as_lake_errors(f"cannot read the log of the table {self.location(table)}"):
            commits = [] if delta is None else delta.history(_RECENT_COMMITS)
        return list(dict.fromkeys(commit[_WRITTEN_BY] for commit in commits if _WRITTEN_BY in commit))

    def files(
        self,
        table: Table,
        *,
        days: tuple[str, str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[str]:
        """Data files of the newest version, for other readers. ``days`` (first, last; ISO dates) leaves out other days'
        files, ``since`` and ``until`` those that by their statistics have no row whose clock lies between the two."""
        return [self._place(table, file) for file in self._files(self.open(table), table, days, since, until)]

    def relative_files(self, table: Table) -> list[str]:
        """All data files of the newest version, by their path in the table's folder. Raises LakeError."""
        delta = self.open(table)
        return [] if delta is None else [file.path for file in data_files(delta, table)]

    def _files(
        self,
        delta: DeltaTable | None,
        table: Table,
        days: tuple[str, str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[DataFile]:
        if delta is None:
            return []
        found = data_files(delta, table, days, since, until)
        return [file for file in found if not self._is_left_out(table, file.path)]

    def _place(self, table: Table, file: DataFile) -> str:
        return f"{self.location(table)}/{file.path}"

    def _is_left_out(self, table: Table, file: str) -> bool:
        """Whether readers do without this data file, named by its path in the table's folder."""
        return False

    def newest_day(self, table: Table) -> str | None:
        """The last day (ISO date) of a partitioned table that has rows; None if none has."""
        delta = self.open(table)
        return max((p["day"] for p in delta.partitions()), default=None) if delta is not None else None

    def scan(
        self,
        connection: "duckdb.DuckDBPyConnection",
        table: Table,
        *,
        days: tuple[str, str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> str:
        """Make the table a DuckDB view of its own name on this connection, and return that name.

        The view sees one snapshot: call again to see newer data. A table that does not exist yet is an empty view.
        What is in an object store is read as delta-rs reads it, with its options and credentials: DuckDB's own way
        would need an extension that it loads from the network, and the same options once more in its own words.
        """
        files = self._files(self.open(table), table, days, since, until) if self.kept is not None else []
        if self.kept is not None and self.kept.keeps(table, files):
            show(connection, table, self._rows(table, files))
        else:
            self.scan_new(connection, table, frozenset(), days=days, since=since, until=until)
        return f'"{table.name}"'

    def _rows(self, table: Table, files: Sequence[DataFile]) -> pa.Table:
        """All rows of these data files. Raises LakeError."""

        def read(file: str) -> pa.Table:
            return rows_of_file(self.uri, self.storage_options, file, table)

        places = [self._place(table, file) for file in files]
        if self.kept is None or not self.kept.keeps(table, files):
            return pa.concat_tables([no_rows(table.arrow), *map(read, places)])
        # In one piece: whoever reads a hundred small ones is busy with the pieces.
        return pa.concat_tables([no_rows(table.arrow), *self.kept.of(places, read)]).combine_chunks()

    def scan_new(
        self,
        connection: "duckdb.DuckDBPyConnection",
        table: Table,
        read_before: Collection[str],
        *,
        days: tuple[str, str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> frozenset[str]:
        """As :meth:`scan`, but without the data files that were ``read_before``; returns the names of all.

        A data file never changes: who keeps what it read and hands the names back reads each file once. Compaction puts
        rows that were read before into new files.
        """
        delta = self.open(table)
        files = {self._place(table, file): file for file in self._files(delta, table, days, since, until)}
        names = frozenset(files)
        new = sorted(names.difference(read_before))
        if delta is None or not new:
            show(connection, table, no_rows(table.arrow))
        elif self.is_local:
            show_files(connection, table, delta, new)
        else:
            show_stored_files(connection, table, delta, {files[name].path for name in new})
        return names

    def query(
        self,
        sql: str,
        values: Sequence[object] | Mapping[str, object] = (),
        *,
        over: Sequence[Table],
        days: tuple[str, str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        given: Mapping[str, pa.Table] | None = None,
    ) -> pa.Table:
        """What a DuckDB query over the named tables (each a view of its own name) returns, times in UTC. ``days``,
        ``since`` and ``until`` leave out files as in :meth:`files`; ``given`` are further tables by name."""
        import duckdb

        from lagwise.tables.duckdb_connection import OUR_MISTAKES, borrowed

        def answer() -> pa.Table:
            with borrowed() as connection:
                try:
                    for table in over:
                        self.scan(connection, table, days=days, since=since, until=until)
                    for name, rows in (given or {}).items():
                        connection.register(name, rows)
                    params = dict(values) if isinstance(values, Mapping) else list(values)
                    return connection.sql(sql, params=params).to_arrow_table()
                except OUR_MISTAKES:
                    raise
                except duckdb.Error as error:
                    names = ", ".join(self.location(table) for table in over)
                    raise UnreadableTable(f"cannot read {names}: {in_a_line(error)}") from error

        return self._reading(over, answer)

    def read(self, table: Table, *, since: datetime | None = None) -> pa.Table:
        """The whole table as Arrow, without the files that by their statistics have no row ``since`` then; older rows
        of others are there. For small tables and tests; use :meth:`scan` for the rest."""
        return self._reading([table], lambda: self._rows(table, self._files(self.open(table), table, since=since)))

    def _reading(self, tables: Sequence[Table], read: Callable[[], T]) -> T:
        """The result of ``read``, a function that reads these tables."""
        return read()

    def select(self, sql: str, table: Table, *, since: datetime | None = None) -> pa.Table | None:
        """What a query over one table (by its own name) returns; None where the table does not exist yet.

        In the SQL of DataFusion, which is part of delta-rs and needs no time to start: for short commands. ``since``
        leaves out rows whose clock is before it.
        """
        delta = self.open(table)
        if delta is None:
            return None
        condition = ""
        if since is not None:
            since = since.astimezone(UTC)
            condition = f"where day >= '{since:%Y-%m-%d}' and {table.clock} >= '{since.isoformat()}'"
        rows = f'with "{table.name}" as (select * from lake_table {condition})'  # noqa: S608 (names of our own)
        try:
            # Not through a pyarrow dataset: it reads ahead in threads of its own that call back into Python, and a
            # short command that ends meanwhile aborts ("terminate called without an active exception"). Nor through
            # pa.table(), which imports pandas to check whether it was given a data frame.
            reader = QueryBuilder().register("lake_table", delta).execute(f"{rows} {sql}")
            return pa.RecordBatchReader.from_stream(reader).read_all()
        except Exception as error:  # DataFusion's errors come as just that
            raise UnreadableTable(f"cannot read the table {self.location(table)}: {in_a_line(error)}") from error
