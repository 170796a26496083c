"""The lake: Delta tables under one URI, opened, appended to and read through delta-rs.

Tables are created by us with plain features only, because the other side (Spark, DuckDB over the file list) must be
able to trust what it sees: see :mod:`lagwise.tables.guard` and ``docs/adr/0002-plain-delta-tables.md``.
"""

import tempfile
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, QueryBuilder, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from lagwise.platform.errors import LakeError, UnreadableTable
from lagwise.tables.data_files import empty, rows_of_files, wanted_files
from lagwise.tables.engine_errors import as_lake_errors, in_a_line
from lagwise.tables.guard import check_columns, check_protocol
from lagwise.tables.schema import Table

if TYPE_CHECKING:
    import duckdb  # 0.2 s, imported where it is needed: short commands do without

T = TypeVar("T")

#: Pinned at creation; a later default of either engine must not change what the other can read.
TABLE_PROPERTIES = {
    "delta.enableChangeDataFeed": "false",
    "delta.enableDeletionVectors": "false",
    "delta.columnMapping.mode": "none",
    "delta.checkpointInterval": "50",
    "delta.logRetentionDuration": "interval 1 days",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
}
#: A disk that takes so much takes the next commit, as a rule.
_TRIED_BYTES = 64 * 1024


class Lake:
    """All tables under one URI. Cheap to make; opened tables are kept and refreshed. Safe to use from threads."""

    def __init__(self, uri: str, storage_options: Mapping[str, str] | None = None) -> None:
        self.uri = uri.rstrip("/")
        self.storage_options = dict(storage_options or {})
        #: Called before each write, by everything that writes; may raise to prevent it.
        self.before_writing: Callable[[], None] = lambda: None
        self._open: dict[str, DeltaTable] = {}
        self._lock = threading.Lock()

    @property
    def is_local(self) -> bool:
        return "://" not in self.uri

    def location(self, table: Table) -> str:
        """URI of one table."""
        return f"{self.uri}/{table.path}"

    def create(self, *tables: Table) -> None:
        """Create the tables that do not exist yet. Raises LakeError if that is not possible."""
        for table in tables:
            skipping = {} if table.clock is None else {"delta.dataSkippingStatsColumns": table.clock}
            with as_lake_errors(f"cannot create the table {self.location(table)}"):
                if self.is_local:
                    Path(self.location(table)).mkdir(parents=True, exist_ok=True)
                DeltaTable.create(
                    self.location(table),
                    schema=table.arrow,
                    mode="ignore",
                    partition_by=["day"] if table.partitioned else None,
                    name=table.name,
                    description=f"one row per {table.rows}",
                    configuration=TABLE_PROPERTIES | skipping,
                    storage_options=self.storage_options or None,
                )

    def open(self, table: Table) -> DeltaTable | None:
        """The table at its newest version; None if it does not exist yet.

        Raises LakeError if it cannot be read or uses a feature that our readers do not understand.
        """
        with self._lock:
            try:
                delta = self._open.get(table.name)
                if delta is None:
                    delta = DeltaTable(self.location(table), storage_options=self.storage_options or None)
                else:
                    delta.update_incremental()
            except TableNotFoundError:
                self._open.pop(table.name, None)
                return None
            except (DeltaError, OSError) as error:
                self._open.pop(table.name, None)
                raise UnreadableTable(f"cannot read the table {self.location(table)}: {in_a_line(error)}") from error
            check_protocol(delta, self.location(table))
            if table.name not in self._open:
                check_columns(delta, table, self.location(table))
            self._open[table.name] = delta
            return delta

    def version(self, table: Table) -> int | None:
        """Number of the table's newest version, which changes with every write; None if the table does not exist yet.

        Raises LakeError.
        """
        delta = self.open(table)
        return None if delta is None else delta.version()

    def forget(self, table: Table) -> None:
        """Open the table again the next time: its log was changed in another way than by a commit."""
        with self._lock:
            self._open.pop(table.name, None)

    def append(self, table: Table, rows: pa.Table, *, transactions: Mapping[str, int] | None = None) -> None:
        """Append rows in one commit; the ``day`` column is derived. Raises LakeError, having written nothing.

        ``transactions`` (numbers by writer) are kept with the commit: from :meth:`last_transaction` a writer that was
        interrupted, or never learnt how a commit went, sees whether its rows are there.
        """
        if rows.num_rows == 0:
            return
        self._append(table, table.with_day(rows), transactions or {})

    def mark(self, table: Table, writer: str, number: int) -> None:
        """Keep a writer's number with a commit of no rows. Raises LakeError."""
        self._append(table, table.arrow.empty_table(), {writer: number})

    def _append(self, table: Table, rows: pa.Table, transactions: Mapping[str, int]) -> None:
        self.before_writing()
        kept = [Transaction(writer, number) for writer, number in transactions.items()]
        with as_lake_errors(f"cannot write to the table {self.location(table)}"):
            if self.is_local:
                # What a full disk or a read-only folder refuses, it refuses here: delta-rs would print a page about it.
                with tempfile.TemporaryFile(dir=self.location(table)) as file:
                    file.write(bytes(_TRIED_BYTES))
            write_deltalake(
                self.location(table),
                rows,
                mode="append",
                storage_options=self.storage_options or None,
                commit_properties=CommitProperties(app_transactions=kept or None),
            )

    def commit(self, table: Table, actions: Sequence[AddAction | RemoveAction]) -> bool:
        """Add and remove these data files in one commit; False, with nothing done, if another process has just removed
        one of them. Raises LakeError."""
        delta = self.open(table)
        if delta is None:
            raise LakeError(f"there is no table {self.location(table)}")
        self.before_writing()
        by = ["day"] if table.partitioned else None
        with as_lake_errors(f"cannot write to the table {self.location(table)}"):
            try:
                delta.create_write_transaction(list(actions), "append", delta.schema(), partition_by=by)
            except CommitFailedError:
                return False
            finally:
                self.forget(table)
        return True

    def last_transaction(self, table: Table, writer: str) -> int | None:
        """Number of the last append that this writer gave one; None if there is none. Raises LakeError."""
        delta = self.open(table)
        return None if delta is None else delta.transaction_version(writer)

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
        delta = self.open(table)
        return [] if delta is None else self._files(delta, table, wanted_files(table, days, since, until))

    def relative_files(self, table: Table) -> list[str]:
        """All data files of the newest version, by their path in the table's folder. Raises LakeError."""
        delta = self.open(table)
        if delta is None:
            return []
        return [unquote(path) for path in pa.table(delta.get_add_actions(flatten=True))["path"].to_pylist()]

    def _files(self, delta: DeltaTable, table: Table, wanted: list[tuple[str, str, Any]] | None) -> list[str]:
        uris = delta.file_uris(file_pruning_predicate=wanted)
        # Of a lake on a disk delta-rs returns paths, escaped like URIs.
        found = [unquote(uri) for uri in uris] if self.is_local else uris
        folder = f"{self.location(table)}/"
        return [file for file in found if not self._is_left_out(table, file.removeprefix(folder))]

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
    ) -> str:
        """Make the table a DuckDB view of its own name on this connection, and return that name.

        The view sees one snapshot: call again to see newer data. A table that does not exist yet is an empty view.
        What is in an object store is read as delta-rs reads it, with its options and credentials: DuckDB's own way
        would need an extension that it loads from the network, and the same options once more in its own words.
        """
        self.scan_new(connection, table, frozenset(), days=days, since=since)
        return f'"{table.name}"'

    def scan_new(
        self,
        connection: "duckdb.DuckDBPyConnection",
        table: Table,
        read_before: Collection[str],
        *,
        days: tuple[str, str] | None = None,
        since: datetime | None = None,
    ) -> frozenset[str]:
        """As :meth:`scan`, but without the data files that were ``read_before``; returns the names of all.

        A data file never changes: who keeps what it read and hands the names back reads each file once. Compaction puts
        rows that were read before into new files.
        """
        delta, wanted = self.open(table), wanted_files(table, days, since)
        names = frozenset[str]()
        if delta is not None and not self.is_local:
            from pyarrow.dataset import FileSystemDataset  # takes a moment, and a lake on a disk does without

            rows = delta.to_pyarrow_dataset(file_pruning_predicate=wanted)
            fragments = [one for one in rows.get_fragments() if not self._is_left_out(table, one.path)]
            files = {fragment.path: fragment for fragment in fragments}
            names = frozenset(files)
            new = [fragment for name, fragment in files.items() if name not in read_before]
            rows = FileSystemDataset(new, rows.schema, rows.format, rows.filesystem)
        elif delta is not None:
            names = frozenset(self._files(delta, table, wanted))
            if names.difference(read_before):
                connection.read_parquet(
                    sorted(names.difference(read_before)), hive_partitioning=table.partitioned, union_by_name=False
                ).create_view(table.name, replace=True)
                return names
        if not names.difference(read_before):
            rows = empty(table)
        registered = f"{table.name}__rows"
        connection.register(registered, rows)
        connection.execute(f'create or replace view "{table.name}" as select * from "{registered}"')  # noqa: S608 (own)
        return names

    def query(
        self,
        sql: str,
        values: Sequence[object] | Mapping[str, object] = (),
        *,
        over: Sequence[Table],
        days: tuple[str, str] | None = None,
        since: datetime | None = None,
        given: Mapping[str, pa.Table] | None = None,
    ) -> pa.Table:
        """What a DuckDB query over the named tables (each a view of its own name) returns, times in UTC. ``days`` and
        ``since`` leave out files as in :meth:`files`; ``given`` are further tables by name."""
        import duckdb

        from lagwise.tables.duckdb_connection import OUR_MISTAKES, connected

        def answer() -> pa.Table:
            with connected() as connection:
                try:
                    for table in over:
                        self.scan(connection, table, days=days, since=since)
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

    def read(self, table: Table) -> pa.Table:
        """The whole table as Arrow. For small tables and tests; use :meth:`scan` for the rest."""

        def rows() -> pa.Table:
            if self.is_local and (delta := self.open(table)) is not None:
                return rows_of_files(self._files(delta, table, None), table)
            found = self.select(f'select * from "{table.name}"', table)  # noqa: S608 (names of our own)
            return found.select(table.arrow.names).cast(table.arrow) if found is not None else empty(table)

        return self._reading([table], rows)

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
