"""A snapshot as bytes, on the pipe from a reader process and in the spool on disk.

A snapshot is a sequence of Arrow IPC streams, one per table, with the table's name in the schema's metadata. The last
one is ``samples``, so a truncated file is recognised: it has none.
"""

from typing import BinaryIO

import pyarrow as pa

from lagwise.platform.errors import LagwiseError
from lagwise.tables.raw import SAMPLES
from lagwise_collectors.protocol import Snapshot

_NAME = b"lagwise.table"
_CLUSTER = b"lagwise.cluster"
_SAMPLE_ID = b"lagwise.sample_id"


class BrokenSnapshot(LagwiseError):
    """The bytes are not a complete snapshot."""


def write(sink: BinaryIO | pa.NativeFile, snapshot: Snapshot, *, compression: str | None = None) -> None:
    """Write a snapshot. ``compression`` (``zstd`` or ``lz4``) is for disks; a pipe is faster without."""
    options = pa.ipc.IpcWriteOptions(compression=compression)
    names = [name for name in snapshot.tables if name != SAMPLES.name]
    for name in [*names, SAMPLES.name]:
        rows = snapshot.tables[name].combine_chunks()
        metadata = {_NAME: name, _CLUSTER: snapshot.cluster, _SAMPLE_ID: snapshot.sample_id}
        with pa.ipc.new_stream(sink, rows.schema.with_metadata(metadata), options=options) as stream:
            stream.write_table(rows)


def read(source: BinaryIO | pa.NativeFile) -> Snapshot:
    """Read one snapshot from the current position. Raises BrokenSnapshot if it is damaged or truncated."""
    tables: dict[str, pa.Table] = {}
    while True:
        try:
            rows = pa.ipc.open_stream(source).read_all()
            metadata = rows.schema.metadata or {}
            name = metadata[_NAME].decode()
            tables[name] = rows.replace_schema_metadata(None)
            if name == SAMPLES.name:
                return Snapshot(metadata[_CLUSTER].decode(), metadata[_SAMPLE_ID].decode(), tables)
        except (pa.ArrowInvalid, OSError, KeyError, UnicodeDecodeError) as error:
            raise BrokenSnapshot(f"it is damaged or truncated ({' '.join(str(error).split())})") from error
