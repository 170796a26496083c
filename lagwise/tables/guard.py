"""Refuse tables whose Delta features our readers would misread.

With column mapping, delta-rs' Arrow readers return columns of nulls without a word; with deletion vectors, a plain
list of files still holds deleted rows. Lagwise switches on neither, so a table that has one was altered by other
software, and reading it is an error instead of wrong numbers.
"""

from deltalake import DeltaTable

from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import LakeError
from lagwise.platform.program import program
from lagwise.tables.column_changes import lacking_and_surplus
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
            "Re-create it without, from raw if it is an analysis table.",
            code=ErrorCode.TABLE_ALTERED,
        )


def check_columns(delta: DeltaTable, table: Table, location: str) -> None:
    """Raises LakeError where the table has other columns than ours."""
    missing, surplus = lacking_and_surplus(delta, table)
    if missing or surplus:
        found = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"also has {', '.join(surplus)}"] * bool(surplus)
        raise LakeError(
            f"the table {location} {' and '.join(found)}: another version of Lagwise made it. `{program()} migrate` "
            "brings the lake of an older version up to date",
            code=ErrorCode.TABLE_OF_ANOTHER_VERSION,
        )
