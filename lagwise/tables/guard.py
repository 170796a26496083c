"""Refuse tables whose Delta features our readers would misread.

With column mapping, delta-rs' Arrow readers return columns of nulls without a word; with deletion vectors, a plain
list of files still holds deleted rows. Lagwise switches on neither, so a table that has one was altered by other
software, and reading it is an error instead of wrong numbers.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa
from deltalake import DeltaTable

from lagwise.platform.errors import LakeError
from lagwise.tables.schema import Table

#: Reader features that change nothing about how the files are read.
HARMLESS_READER_FEATURES = frozenset({"timestampNtz"})


def check_protocol(delta: DeltaTable, location: str) -> None:
    """Raise LakeError unless every reader of ours can trust the table's plain files."""
    protocol = delta.protocol()
    features = set(protocol.reader_features or [])
    mapping = delta.metadata().configuration.get("delta.columnMapping.mode", "none")
    foreign = sorted(features - HARMLESS_READER_FEATURES)
    if mapping != "none":
        foreign.append(f"column mapping ({mapping})")
    if foreign or (protocol.min_reader_version > 1 and not features):
        named = ", ".join(foreign) or f"reader version {protocol.min_reader_version}"
        raise LakeError(
            f"the table {location} uses {named}, which Lagwise cannot read correctly: other software altered it. "
            "Re-create it without, from raw if it is an analysis table."
        )


def check_columns(delta: DeltaTable, table: Table, location: str) -> None:
    """Raises LakeError where the table has other columns than ours: nothing is migrated before the first release."""
    there, ours = list(_names(pa.schema(delta.schema().to_arrow()))), list(_names(table.arrow))
    missing, surplus = ([name for name in a if name not in b] for a, b in ((ours, there), (there, ours)))
    if missing or surplus:
        found = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"also has {', '.join(surplus)}"] * bool(surplus)
        raise LakeError(
            f"the table {location} {' and '.join(found)}: another version of Lagwise made it. Move that lake away, or "
            "name another folder with --data"
        )


def _names(fields: Iterable[pa.Field], within: str = "") -> Iterator[str]:
    """The names of columns, and of the fields of those that are structs or lists of them."""
    for field in fields:
        yield f"{within}{field.name}"
        kind = (
            field.type.value_type if pa.types.is_list(field.type) or pa.types.is_large_list(field.type) else field.type
        )
        if pa.types.is_struct(kind):
            yield from _names(list(kind), f"{within}{field.name}.")
