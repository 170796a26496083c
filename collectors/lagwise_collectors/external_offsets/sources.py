"""All external offset sources of one cluster: each is read in a thread, with a timeout, while Kafka is read.

A source that cannot be read does not even name its groups. Their names are therefore kept in a file
(:class:`GroupCache`): the groups are then unreadable, and neither gone nor, after a restart, without offsets.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from lagwise.config.external_offsets import ExternalOffsetSource, FlinkJobs, OffsetFiles, SparkCheckpoints, SqlOffsets
from lagwise.domain.humanise import plural
from lagwise.platform.files import BestEffortFile
from lagwise.platform.log_events import LogEvent, event
from lagwise_collectors.external_offsets.model import ExternalGroup, OffsetSourceTrouble, SourceResult
from lagwise_collectors.external_offsets.timed_read import TimedRead
from lagwise_collectors.protocol import Check, ErrorTally

log = logging.getLogger("lagwise.collectors.external_offsets")

_FORMAT = "lagwise-external-groups-1"
#: Types of groups by name, by source.
GroupTypes = dict[str, dict[str, str]]


class GroupCache:
    """The groups of one cluster's sources; ``path`` None keeps them for this process only. For one thread."""

    def __init__(self, path: Path | None) -> None:
        loss = "after a restart, the groups of a source are unknown until it can be read"
        self._file = None if path is None else BestEffortFile(path, log, loss)
        self._known: GroupTypes = {} if path is None else _load(path)
        self._is_saved = True

    def of(self, source: str) -> Mapping[str, str]:
        """Types by name of the groups that the source had at its last successful read."""
        return self._known.get(source, {})

    def save(self, source: str, groups: Mapping[str, str]) -> None:
        """Save what the source has now. Where the file cannot be written, this is lost at a restart."""
        if self._known.get(source, {}) == groups and self._is_saved:
            return
        self._known[source] = dict(groups)
        if self._file is not None:
            self._is_saved = self._file.write(json.dumps({"format": _FORMAT, "sources": self._known}).encode())


def _load(path: Path) -> GroupTypes:
    try:
        data = json.loads(path.read_bytes())
        if data["format"] != _FORMAT:
            raise ValueError(f"its format is {data['format']}")
        return {str(s): {str(name): str(kind) for name, kind in its.items()} for s, its in data["sources"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        log.warning(
            "%s cannot be used; groups are unknown until their sources have been read: %s",
            path,
            error,
            extra=event(LogEvent.STATE_UNREADABLE),
        )
        return {}


def reader_of(settings: ExternalOffsetSource, clock: Callable[[], datetime]) -> Callable[[], SourceResult]:
    """Reads a source once; raises OffsetSourceTrouble where nothing can be read. A new kind is added here and in the
    settings only."""
    # Imported here, so that the reader process loads database and HTTP libraries only where a source needs them.
    match settings:
        case SparkCheckpoints():
            from lagwise_collectors.external_offsets.spark_checkpoint import read_spark_checkpoints

            return partial(read_spark_checkpoints, settings)
        case SqlOffsets():
            from lagwise_collectors.external_offsets.sql_database import read_sql

            return partial(read_sql, settings)
        case OffsetFiles():
            from lagwise_collectors.external_offsets.json_csv_files import read_offset_files

            return partial(read_offset_files, settings)
        case FlinkJobs():
            from lagwise_collectors.external_offsets.flink_checkpoints import FlinkReader

            return FlinkReader(settings, clock).read


@dataclass(slots=True)
class ExternalOffsets:
    """What all sources returned in one sample."""

    groups: list[ExternalGroup] = field(default_factory=list)
    #: When the last source was read.
    read_at: datetime | None = None


class OffsetSources:
    """The sources of one cluster. :meth:`begin` starts reading, :meth:`finish` waits. For one thread."""

    def __init__(
        self,
        settings: Sequence[ExternalOffsetSource],
        *,
        state: Path | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._reads = [TimedRead(one.name, one.timeout_seconds, reader_of(one, clock), clock) for one in settings]
        self._group_cache = GroupCache(state)

    def begin(self) -> None:
        """Start to read every source that is not still being read."""
        for read in self._reads:
            read.begin()

    def finish(self, selects: Callable[[str], bool], errors: ErrorTally) -> ExternalOffsets:
        """The selected groups of all sources. The groups of a source that cannot be read have its error.

        Where two sources have the same group, the first one in the settings counts.
        """
        result = ExternalOffsets()
        seen: set[str] = set()
        for read in self._reads:
            name = read.name
            try:
                source_result, read_at = read.finish()
            except OffsetSourceTrouble as trouble:
                errors.note(trouble.kind, f"offsets from {name}: {trouble}")
                groups = [ExternalGroup(g, kind, error=trouble.kind) for g, kind in self._group_cache.of(name).items()]
            else:
                for kind, count in source_result.errors.counts.items():
                    errors.note(kind, f"offsets from {name}: {source_result.errors.example(kind)}", count)
                groups = list(source_result.groups.values())
                self._group_cache.save(name, {group.name: group.type for group in groups})
                result.read_at = max(result.read_at or read_at, read_at)
            for group in groups:
                if selects(group.name) and group.name not in seen:
                    seen.add(group.name)
                    group.source = name
                    result.groups.append(group)
        return result


_ADVICE = {
    "external_offsets_timeout": "find out why it takes so long, or raise the source's timeout_seconds",
    "external_offsets_unreachable": "check the address, and that it is running",
    "external_offsets_refused": "check the secret and the permissions of the account",
    "external_offsets_missing": "check the path, and that its contents match the source's type",
    "external_offsets_malformed": "compare the contents with docs/external-offsets.md",
}


def check_offset_sources(settings: Sequence[ExternalOffsetSource]) -> list[Check]:
    """One check for each source, for ``lagwise doctor``. None is required: a failure costs only its groups."""
    return [_check(source) for source in settings]


def _check(settings: ExternalOffsetSource) -> Check:
    sources, errors = OffsetSources([settings]), ErrorTally()
    sources.begin()
    result = sources.finish(lambda name: True, errors)
    name = f"offsets from {settings.name}"
    if errors:
        kind = next(iter(errors.counts))
        return Check(name, False, errors.example(kind), None, _ADVICE.get(kind), required=False)
    offsets = sum(len(group.offsets) for group in result.groups)
    return Check(name, True, f"{plural(len(result.groups), 'group')}, {plural(offsets, 'offset')}", required=False)
