"""All sources of one cluster, read beside Kafka's own requests: each in a thread, none of them waited for too long."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from lagwise.config import ExternalOffsets, FlinkJobs, OffsetFiles, SparkCheckpoints, SqlOffsets
from lagwise.domain.humanise import plural
from lagwise.platform.files import KeptFile
from lagwise_collectors.external_offsets.model import GroupFound, OffsetReader, Trouble
from lagwise_collectors.external_offsets.timed_read import TimedRead
from lagwise_collectors.protocol import Check, ErrorTally

log = logging.getLogger("lagwise.collectors.elsewhere")

_FORMAT = "lagwise-groups-elsewhere-1"
#: Types of groups by name, by source.
Known = dict[str, dict[str, str]]


class GroupCache:
    """The groups of one cluster's sources; ``path`` None keeps them for this process only. For one thread."""

    def __init__(self, path: Path | None) -> None:
        cost = "after a restart, the groups of a source are unknown until it can be read"
        self._file = None if path is None else KeptFile(path, log, cost)
        self._known: Known = {} if path is None else _load(path)
        self._is_kept = True

    def of(self, source: str) -> Mapping[str, str]:
        """Types by name of the groups that the source had when it could last be read."""
        return self._known.get(source, {})

    def keep(self, source: str, groups: Mapping[str, str]) -> None:
        """Remember what the source has now. A file that cannot be written costs only the memory across a restart."""
        if self._known.get(source, {}) == groups and self._is_kept:
            return
        self._known[source] = dict(groups)
        if self._file is not None:
            self._is_kept = self._file.write(json.dumps({"format": _FORMAT, "sources": self._known}).encode())


def _load(path: Path) -> Known:
    try:
        data = json.loads(path.read_bytes())
        if data["format"] != _FORMAT:
            raise ValueError(f"its format is {data['format']}")
        return {str(s): {str(name): str(kind) for name, kind in its.items()} for s, its in data["sources"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        log.warning("%s cannot be used, so groups are known again once their sources were read: %s", path, error)
        return {}


def reader_of(settings: ExternalOffsets, clock: Callable[[], datetime]) -> OffsetReader:
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
        settings: Sequence[ExternalOffsets],
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


_ADVICE = {
    "elsewhere_timeout": "see why it takes so long, or raise the source's timeout_seconds",
    "elsewhere_unreachable": "check the address, and whether it runs",
    "elsewhere_refused": "check the secret and the rights of the account",
    "elsewhere_missing": "check the path, and whether it holds what its type says",
    "elsewhere_malformed": "compare what is there with docs/offsets-elsewhere.md",
}


def check_elsewhere(settings: Sequence[ExternalOffsets]) -> list[Check]:
    """One check a source. None of them is required: a source that cannot be read costs its own groups."""
    return [_check(source) for source in settings]


def _check(settings: ExternalOffsets) -> Check:
    sources, errors = Sources([settings]), ErrorTally()
    sources.begin()
    found = sources.finish(lambda name: True, errors)
    name = f"offsets from {settings.name}"
    if errors:
        kind = next(iter(errors.counts))
        return Check(name, False, errors.example(kind), None, _ADVICE.get(kind), required=False)
    offsets = sum(len(group.offsets) for _, group in found.groups)
    return Check(name, True, f"{plural(len(found.groups), 'group')}, {plural(offsets, 'offset')}", required=False)
