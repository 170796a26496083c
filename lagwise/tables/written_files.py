"""How data files of the lake are written: small, with a checksum on every page, and with what its log keeps of them.

delta-rs writes pages without checksums. A flipped bit would go unnoticed there.
"""

import io
import json
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lagwise.tables.schema import Table, no_rows

#: Rows of a row group, at most. Tasks read the row groups that may hold their part of the topic-partitions: larger ones
#: would all be read by every task, smaller ones make the file's footer long.
ROWS_PER_GROUP = 50_000


def new_file_name(day: str) -> str:
    """A name that no other file of a partitioned table has, by its path in the table's folder."""
    return f"day={day}/part-{uuid.uuid4()}.zstd.parquet"


def write_file(sink: Any, parts: Iterable[pa.Table], table: Table) -> str:
    """Write the rows of a day, whose column ``day`` is left out, to a path or an open file. Returns the statistics, as
    JSON, that the table's log keeps of the file."""
    clock, rows = str(table.clock), 0
    ends: list[datetime] = []
    with pq.ParquetWriter(sink, table.without_day, **_how(table)) as writer:
        for part in parts:
            writer.write_table(part, row_group_size=ROWS_PER_GROUP)
            rows += part.num_rows
            ends += pc.min_max(part[clock]).as_py().values()
    return json.dumps(
        {
            "numRecords": rows,
            "minValues": {clock: _iso(min(ends))},
            "maxValues": {clock: _iso(max(ends))},
            "nullCount": {clock: 0},
        }
    )


def _how(table: Table) -> dict[str, Any]:
    """How the files of a table are written: integers and times as differences, which are smaller than dictionaries."""
    schema, none = table.without_day, io.BytesIO()
    pq.write_table(no_rows(schema), none)
    leaves = [column.path for column in pq.ParquetFile(none).schema]
    whole = [f.name for f in schema if pa.types.is_integer(f.type) or pa.types.is_timestamp(f.type)]
    return {
        "compression": "zstd",
        "write_page_checksum": True,
        "use_dictionary": [leaf for leaf in leaves if leaf not in whole],
        "column_encoding": dict.fromkeys(whole, "DELTA_BINARY_PACKED"),
    }


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
