"""Many data files in one commit: a long history, written in minutes."""

import json
import time
import uuid
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from lagwise.tables.schema import DAY, Table
from lagwise.tables.store import Lake


class Bulk:
    """Appends like :class:`Lake`, one data file each, but commits them together.

    The data files are what an append of the product would have left (partition, compression, the statistics that
    readers skip by). The log is shorter: one commit and a checkpoint instead of a commit per append.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._actions: dict[str, list[AddAction]] = defaultdict(list)
        self._tables: dict[str, Table] = {}

    def append(self, table: Table, rows: pa.Table, *, rows_per_group: int | None = None) -> None:
        """Write the rows, all of one UTC day, as a file. Nobody sees it before :meth:`commit`."""
        clock = rows[table.clock]
        bounds = pc.min_max(clock).as_py()
        day = pc.cast(clock.slice(0, 1), DAY)[0].as_py().isoformat()
        schema = table.without_day
        path = f"day={day}/part-00000-{uuid.uuid4()}-c000.snappy.parquet"
        file = Path(self._lake.location(table)) / path
        file.parent.mkdir(exist_ok=True)
        content = rows.select(schema.names).cast(schema)
        pq.write_table(content, file, compression="snappy", row_group_size=rows_per_group)
        statistics = {
            "numRecords": rows.num_rows,
            "minValues": {table.clock: _stamp(bounds["min"])},
            "maxValues": {table.clock: _stamp(bounds["max"])},
            "nullCount": {table.clock: 0},
        }
        self._tables[table.name] = table
        self._actions[table.name].append(
            AddAction(path, file.stat().st_size, {"day": day}, int(time.time() * 1000), True, json.dumps(statistics))
        )

    def commit(self) -> None:
        """Make visible what was written so far."""
        for name, actions in self._actions.items():
            delta = self._lake.open(self._tables[name])
            assert delta is not None
            delta.create_write_transaction(actions, "append", self._tables[name].arrow, partition_by=["day"])
            delta.create_checkpoint()
        self._actions.clear()


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
