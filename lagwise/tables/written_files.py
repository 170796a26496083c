"""How data files of the lake are written: in order of their keys where there are many rows, with a checksum on every
page, and with what the table's log keeps of them.

delta-rs writes pages without checksums. A flipped bit would go unnoticed there.
"""

import functools
import io
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from lagwise.tables.data_files import object_store
from lagwise.tables.schema import DAY, Table, no_rows

#: Rows of a row group. Tasks read the row groups that hold their part of the topic-partitions: larger ones would be
#: read by several tasks, smaller ones make the file's footer long.
ROWS_PER_GROUP = 10_000
#: The same of tables that have one row for all groups.
LOGS_PER_GROUP = 2_000
#: Data files that have been written and are not yet part of their table; ``day`` is null where that has none.
WRITTEN = pa.schema([("path", pa.string()), ("day", pa.string()), ("size", pa.int64()), ("statistics", pa.string())])
#: Rows of more than one row group are written in this order, as far as the table has these columns.
_KEY = ("cluster", "topic", "partition", "group")


def rows_per_group(table: Table) -> int:
    """About how many rows a row group of this table has."""
    names = table.arrow.names
    return LOGS_PER_GROUP if "partition" in names and "group" not in names else ROWS_PER_GROUP


def write_rows(uri: str, options: Mapping[str, str], table: Table, rows: pa.Table) -> pa.Table:
    """Write rows as new data files of a table, one for each day. They belong to the table once what is returned, a row
    of :data:`WRITTEN` for each of them, has been committed to its log. Raises OSError."""
    if rows.num_rows == 0:
        return no_rows(WRITTEN)
    schema = table.without_day
    rows = rows.select(schema.names).cast(schema)
    return pa.concat_tables(
        write_day(uri, options, table, day, row_groups(table, part)) for day, part in _days(table, rows)
    )


def group_starts(starts: Any, count: int, most: int) -> list[int]:
    """Where row groups of at most so many of the rows begin, of which there are ``count``: each at one of ``starts``,
    where topic-partitions begin (an ascending array), so that no topic-partition lies in two of them."""
    found = [0]
    while found[-1] + most < count:
        place = starts.searchsorted(found[-1] + most, "right") - 1
        if starts[place] <= found[-1]:
            place += 1  # a topic-partition with more rows than that
        if place == len(starts):
            break
        found.append(int(starts[place]))
    return found


def row_groups(table: Table, rows: pa.Table) -> Iterator[pa.Table]:
    """Rows as row groups, in order of their keys where there are several."""
    most = rows_per_group(table)
    names = [name for name in _KEY if name in rows.column_names]
    if rows.num_rows <= most or not names:
        yield rows
        return
    import numpy as np  # only where there are many rows

    keys = [_ranks(rows[name]) for name in names]
    order = np.lexsort(keys[::-1])
    if (np.diff(order) != 1).any():
        rows = rows.take(pa.array(order))
    logs = [key[order] for name, key in zip(names, keys, strict=True) if name != "group"]
    starts = np.flatnonzero(np.append(True, np.any([key[1:] != key[:-1] for key in logs], axis=0)))
    cuts = group_starts(starts, rows.num_rows, most)
    for start, stop in pairwise([*cuts, rows.num_rows]):
        yield rows.slice(start, stop - start)


def joined_groups(groups: Iterable[pa.Table], most: int) -> Iterator[pa.Table]:
    """Merge successive row groups into larger ones of at most ``most`` rows. One that is already that large is passed
    on unchanged, because it holds only some of the topic-partitions."""
    parts: list[pa.Table] = []
    for group in groups:
        if parts and sum(part.num_rows for part in parts) + group.num_rows > most:
            yield pa.concat_tables(parts)
            parts = []
        parts.append(group)
    if parts:
        yield pa.concat_tables(parts)


def _ranks(values: pa.ChunkedArray) -> Any:
    """Numbers in the order of the values."""
    import numpy as np

    if not pa.types.is_string(values.type):
        return values.to_numpy()
    encoded = values.combine_chunks().dictionary_encode()
    names = encoded.dictionary.to_pylist()
    rank = np.empty(len(names), np.int64)
    rank[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    return rank[encoded.indices.to_numpy()]


def _days(table: Table, rows: pa.Table) -> Iterator[tuple[str | None, pa.Table]]:
    import pyarrow.compute as pc

    if table.clock is None:
        yield None, rows
        return
    clock = rows[table.clock]
    first, last = (at.astimezone(UTC).date().isoformat() for at in pc.min_max(clock).as_py().values())
    if first == last:
        yield first, rows
        return
    days = clock.cast(DAY)
    for day in sorted(days.unique().to_pylist()):
        yield day.isoformat(), rows.filter(pc.equal(days, pa.scalar(day, DAY)))


def write_day(
    uri: str, options: Mapping[str, str], table: Table, day: str | None, groups: Iterable[pa.Table]
) -> pa.Table:
    """Write rows of one day as one new data file: a row of :data:`WRITTEN`. Raises OSError."""
    name = f"part-{uuid.uuid4()}.lz4.parquet"
    path = name if day is None else f"day={day}/{name}"
    if "://" in uri:
        with object_store(uri, options).open_output_stream(f"{table.path}/{path}") as sink:
            statistics = _write_file(sink, groups, table)
            size = sink.tell()
    else:
        final = Path(uri, table.path, path)
        final.parent.mkdir(exist_ok=True)
        # Readers and repairs ignore names that begin with a dot.
        partial = final.with_name(f".{name}")
        try:
            statistics = _write_file(partial, groups, table)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        partial.rename(final)
        size = final.stat().st_size
    return pa.table([[path], [day], [size], [statistics]], schema=WRITTEN)


def _write_file(sink: Any, groups: Iterable[pa.Table], table: Table) -> str:
    """Write row groups to a path or an open file. Returns the statistics, as JSON, that the table's log keeps of it."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    rows, ends = 0, []
    with pq.ParquetWriter(sink, table.without_day, **_how(table)) as writer:
        for part in groups:
            writer.write_table(part, row_group_size=ROWS_PER_GROUP)
            rows += part.num_rows
            if table.clock is not None:
                ends += pc.min_max(part[table.clock]).as_py().values()
    statistics: dict[str, object] = {"numRecords": rows}
    if table.clock is not None:
        statistics |= {
            "minValues": {table.clock: _iso(min(ends))},
            "maxValues": {table.clock: _iso(max(ends))},
            "nullCount": {table.clock: 0},
        }
    return json.dumps(statistics)


@functools.cache
def _how(table: Table) -> dict[str, Any]:
    """How the files of a table are written: integers and times as differences, which are smaller than dictionaries.
    Minutes are read in each round for an hour: with LZ4, files are a little larger than with Zstandard, and read much
    sooner."""
    import pyarrow.parquet as pq

    schema, none = table.without_day, io.BytesIO()
    pq.write_table(no_rows(schema), none)
    leaves = [column.path for column in pq.ParquetFile(none).schema]
    whole = [f.name for f in schema if pa.types.is_integer(f.type) or pa.types.is_timestamp(f.type)]
    return {
        "compression": "lz4",
        "write_page_checksum": True,
        "use_dictionary": [leaf for leaf in leaves if leaf not in whole],
        "column_encoding": dict.fromkeys(whole, "DELTA_BINARY_PACKED"),
    }


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
