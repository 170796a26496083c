"""Many data files in one commit: a long history, written in minutes."""

from collections import defaultdict

import pyarrow as pa
import pyarrow.compute as pc

from lagwise.tables.schema import DAY, Table
from lagwise.tables.store import Lake
from lagwise.tables.written_files import joined_groups, row_groups, rows_per_group, write_day


class Bulk:
    """Appends like :class:`Lake`, one data file each, but commits them together.

    The data files are what the product would have left: one of several minutes has the row groups of each, joined as by
    a compaction. The log is shorter: one commit and a checkpoint instead of a commit per append.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._written: dict[str, list[pa.Table]] = defaultdict(list)
        self._tables: dict[str, Table] = {}

    def append(self, table: Table, rows: pa.Table, *, by_topic: bool = False) -> None:
        """Write the rows, all of one UTC day, as a file, ``by_topic`` as after the compaction of a day of topics.
        Nobody sees it before :meth:`commit`."""
        clock = rows[table.clock]
        day = pc.cast(clock.slice(0, 1), DAY)[0].as_py().isoformat()
        content = rows.select(table.without_day.names).cast(table.without_day)
        parts = [content]
        if rows.num_rows > rows_per_group(table) and not by_topic:
            parts = [content.filter(pc.equal(clock, at)) for at in pc.unique(clock).sort()]
        of_parts = (group for part in parts for group in row_groups(table, part))
        groups = joined_groups(of_parts, rows_per_group(table))
        self._tables[table.name] = table
        self._written[table.name].append(write_day(self._lake.uri, self._lake.storage_options, table, day, groups))

    def commit(self) -> None:
        """Make visible what was written so far."""
        for name, files in self._written.items():
            self._lake.add_files(self._tables[name], pa.concat_tables(files))
            delta = self._lake.open(self._tables[name])
            assert delta is not None
            delta.create_checkpoint()
        self._written.clear()
