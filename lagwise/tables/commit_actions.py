"""What a commit to a table's log consists of: data files that are added, and others that are removed."""

from collections.abc import Iterable
from datetime import UTC, datetime

import pyarrow as pa
from deltalake.transaction import AddAction, RemoveAction

from lagwise.tables.data_files import DataFile


def added(files: pa.Table, *, are_new: bool = True) -> list[AddAction]:
    """Data files as :data:`lagwise.tables.written_files.WRITTEN` tells of them; ``are_new`` is False where their rows
    were in the table before."""
    now, made = _now_milliseconds(), []
    for file in files.to_pylist():
        partition = {} if file["day"] is None else {"day": file["day"]}
        made.append(AddAction(file["path"], file["size"], partition, now, are_new, file["statistics"]))
    return made


def removed(files: Iterable[DataFile], day: str | None = None, *, are_gone: bool = True) -> list[RemoveAction]:
    """Data files of a day; ``are_gone`` is False where their rows stay in the table."""
    now = _now_milliseconds()
    partition: dict[str, str | None] = {} if day is None else {"day": day}
    return [RemoveAction(file.path, are_gone, now, file.size, partition) for file in files]


def _now_milliseconds() -> int:
    return round(datetime.now(UTC).timestamp() * 1000)
