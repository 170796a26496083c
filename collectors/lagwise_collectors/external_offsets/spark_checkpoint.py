"""Offsets in the checkpoint folders of Spark Structured Streaming.

Before a batch Spark writes ``offsets/N``, up to where each of its sources is to be read, and after it ``commits/N``.
So the offsets of the last batch that has a commit are what the query has surely processed. Both are text: a version, a
line about the batch, and, in ``offsets``, a line a source in the source's own JSON (of version 2, with its name and a
colon before it). That of Kafka is ``{"topic": {"0": 12}}``, 12 being the next to be read. Seen with Spark 4.2.1,
whose logs of both versions the tests have it write.
"""

import json
import re
from datetime import UTC, datetime
from typing import Any

import pyarrow.fs as pafs

from lagwise.config.external_offsets import SparkCheckpoints
from lagwise.domain.vocabulary import Engine
from lagwise_collectors.external_offsets.file_system import OffsetFileSystem
from lagwise_collectors.external_offsets.model import (
    ExternalGroup,
    ExternalOffset,
    OffsetSourceTrouble,
    SourceResult,
    offset_of,
)

#: Log formats that are known.
_VERSIONS = {"v1": 1, "v2": 2}


def read_spark_checkpoints(settings: SparkCheckpoints) -> SourceResult:
    """One group per checkpoint folder of a path. A folder that cannot be read costs only its group."""
    file_system = OffsetFileSystem(settings.path)
    result = SourceResult()
    for info in file_system.matches():
        if info.type != pafs.FileType.Directory:
            continue
        name = settings.group or info.base_name
        try:
            offsets = _offsets(file_system, info.path)
        except OffsetSourceTrouble as trouble:
            result.mark_unreadable(name, Engine.SPARK, trouble)
            continue
        result.groups[name] = ExternalGroup(name, Engine.SPARK, offsets=offsets)
    return result


def _offsets(file_system: OffsetFileSystem, folder: str) -> list[ExternalOffset]:
    """The offsets that the query has processed; None where it has completed no batch yet."""
    planned, completed = (_batches(file_system, f"{folder}/{log}") for log in ("offsets", "commits"))
    if not planned and not completed:
        if any(info.base_name == "metadata" for info in file_system.listed(folder)):
            return []  # the query has started, but there was nothing to read yet
        raise OffsetSourceTrouble(
            "missing", f"{folder} is not the checkpoint of a streaming query: it has neither offsets nor commits"
        )
    if not completed:
        first = kafka_offsets(file_system.text(f"{folder}/offsets/{max(planned)}"), f"{folder}/offsets/{max(planned)}")
        return [ExternalOffset(topic, partition, None) for topic, partition in first]
    batch = max(completed)
    path = f"{folder}/offsets/{batch}"
    if batch not in planned:
        raise OffsetSourceTrouble("missing", f"{path} does not exist, although the batch was completed")
    ends = kafka_offsets(file_system.text(path), path)
    return [ExternalOffset(topic, partition, end, completed[batch]) for (topic, partition), end in ends.items()]


def _batches(file_system: OffsetFileSystem, folder: str) -> dict[int, datetime | None]:
    """When each batch's file was written. Empty files do not count, nor do names that are no number."""
    return {
        int(info.base_name): info.mtime.astimezone(UTC) if info.mtime is not None else None
        for info in file_system.listed(folder)
        if info.type == pafs.FileType.File and re.fullmatch(r"[0-9]{1,18}", info.base_name) and info.size
    }


def kafka_offsets(text: str, path: str) -> dict[tuple[str, int], int | None]:
    """Offsets by topic and partition of all Kafka sources of an ``offsets`` file.

    Where two sources read the same partition, the lower offset counts. Raises OffsetSourceTrouble where the file is not
    of a known version, or is truncated.
    """
    version, *lines = text.splitlines() or [""]
    if text and version not in _VERSIONS:
        raise OffsetSourceTrouble(
            "malformed", f"{path} begins with {version!r:.40}, which is not a known version of Spark's logs"
        )
    if len(lines) < 2:
        raise OffsetSourceTrouble("malformed", f"{path} was truncated or is not written yet")
    found: dict[tuple[str, int], int | None] = {}
    for line in lines[1:]:
        for offset in _of_source(line.partition(":")[2] if _VERSIONS[version] == 2 else line, path):
            key = (offset.topic, offset.partition)
            before = found.get(key, offset.committed)
            found[key] = None if None in (before, offset.committed) else min(before or 0, offset.committed or 0)
    return found


def _of_source(line: str, path: str) -> list[ExternalOffset]:
    """The offsets of a source's line; none of one that is not Kafka's, or has not been read yet."""
    if not line.startswith("{"):
        return []
    try:
        data: Any = json.loads(line)
    except (ValueError, RecursionError):
        raise OffsetSourceTrouble("malformed", f"{path} was truncated in the middle of a line") from None
    by_topic = [(topic, those) for topic, those in data.items() if isinstance(those, dict)]
    if len(by_topic) < len(data) or not all(p.isdecimal() for _, those in by_topic for p in those):
        return []
    try:
        return [
            offset_of({"topic": topic, "partition": partition, "offset": offset})
            for topic, those in by_topic
            for partition, offset in those.items()
        ]
    except ValueError as error:
        raise OffsetSourceTrouble("malformed", f"{path}: {error}") from None
