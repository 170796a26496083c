"""Refuse tables whose Delta features our readers would misread.

With column mapping, delta-rs' Arrow readers return columns of nulls without a word; with deletion vectors, a plain
list of files still holds deleted rows. Neither is switched on by us, so finding one means that somebody altered the
table, and the honest answer is an error instead of wrong numbers.
"""

from deltalake import DeltaTable

from lagwise.errors import LakeError

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
            f"the table {location} uses {named}, which Lagwise cannot read correctly: somebody altered the table. "
            "Re-create it without, from raw if it is an analysis table."
        )
