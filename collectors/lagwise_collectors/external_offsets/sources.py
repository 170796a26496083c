"""All sources of one cluster, read beside Kafka's own requests: each in a thread, none of them waited for too long."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from lagwise.config import FlinkJobs, OffsetFiles, OffsetsFrom, SparkCheckpoints, SqlOffsets
from lagwise_collectors.external_offsets.group_cache import GroupCache
from lagwise_collectors.external_offsets.model import GroupFound, OffsetReader, Trouble
from lagwise_collectors.external_offsets.timed_read import TimedRead
from lagwise_collectors.protocol import ErrorTally


def reader_of(settings: OffsetsFrom, clock: Callable[[], datetime]) -> OffsetReader:
    """What reads a source. A new kind is added here and in the settings, and nowhere else."""
    # Imported here: whoever has no such source need not load a database's or HTTP's library in the reader process.
    match settings:
        case SparkCheckpoints():
            from lagwise_collectors.external_offsets.spark_checkpoint import SparkCheckpointReader

            return SparkCheckpointReader(settings)
        case SqlOffsets():
            from lagwise_collectors.external_offsets.sql_database import SqlReader

            return SqlReader(settings)
        case OffsetFiles():
            from lagwise_collectors.external_offsets.json_csv_files import OffsetFilesReader

            return OffsetFilesReader(settings)
        case FlinkJobs():
            from lagwise_collectors.external_offsets.flink_checkpoints import FlinkReader

            return FlinkReader(settings, clock)


@dataclass(slots=True)
class Elsewhere:
    """What all sources showed in one sample: groups with the name of their source, and when the last was read."""

    groups: list[tuple[str, GroupFound]] = field(default_factory=list)
    read_at: datetime | None = None


class Sources:
    """The sources of one cluster. :meth:`begin` has them read, :meth:`finish` waits for them. For one thread."""

    def __init__(
        self,
        settings: Sequence[OffsetsFrom],
        *,
        state: Path | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._lanes = [TimedRead(one.name, one.timeout_seconds, reader_of(one, clock).read, clock) for one in settings]
        self._known = GroupCache(state)

    def begin(self) -> None:
        """Start to read every source that is not still being read."""
        for lane in self._lanes:
            lane.begin()

    def finish(self, selects: Callable[[str], bool], errors: ErrorTally) -> Elsewhere:
        """What they showed, of the selected groups. The groups of a source that cannot be read have its error.

        Of a group that two sources have, the one that stands first in the settings is believed.
        """
        result = Elsewhere()
        seen: set[str] = set()
        for lane in self._lanes:
            name = lane.name
            try:
                found, read_at = lane.finish()
            except Trouble as trouble:
                errors.note(trouble.kind, f"offsets from {name}: {trouble}")
                groups = [GroupFound(g, kind, error=trouble.kind) for g, kind in self._known.of(name).items()]
            else:
                for kind, count in found.errors.counts.items():
                    errors.note(kind, f"offsets from {name}: {found.errors.example(kind)}", count)
                groups = list(found.groups.values())
                self._known.keep(name, {group.name: group.type for group in groups})
                result.read_at = max(result.read_at or read_at, read_at)
            for group in groups:
                if selects(group.name) and group.name not in seen:
                    seen.add(group.name)
                    result.groups.append((name, group))
        return result
