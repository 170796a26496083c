"""From records (rows of a query, of a file) to groups: each record is one offset of a group."""

from collections.abc import Iterable, Mapping
from typing import Any

from lagwise_collectors.external_offsets.model import FoundOffsets, Trouble, group_named, offset_of


def groups_of(records: Iterable[Mapping[str, Any]], kind: str, *, group: str | None = None, where: str) -> FoundOffsets:
    """Groups by name; ``group`` is that of records that name none, ``where`` is named in errors.

    A record that cannot be understood makes its whole group unreadable, and costs no other: without it, its partition
    would look as if its offset were gone. One that does not even name its group is counted. Of two records about the
    same partition the later one counts, or the last where no times are told.
    """
    found = FoundOffsets()
    spoilt: set[str] = set()
    kept: dict[tuple[str, str, int], int] = {}
    for number, record in enumerate(records, 1):
        name = None
        try:
            name = group_named(record.get("group") or group)
            offset = offset_of(record)
        except ValueError as error:
            trouble = Trouble("malformed", f"record {number} of {where}: {error}")
            if name is None:
                found.errors.note(trouble.kind, str(trouble))
            else:
                spoilt.add(name)
                found.spoil(name, kind, trouble)
            continue
        if name in spoilt:
            continue
        offsets = found.group(name, kind).offsets
        key = (name, offset.topic, offset.partition)
        if key not in kept:
            kept[key] = len(offsets)
            offsets.append(offset)
            continue
        before = offsets[kept[key]]
        if before.updated_at is None or offset.updated_at is None or offset.updated_at >= before.updated_at:
            offsets[kept[key]] = offset
    return found
