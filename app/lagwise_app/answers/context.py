"""What the answers are read from, and what is added to a group's row by the settings: its owner, and whether it is
stale."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lagwise.config import Config
from lagwise.domain.staleness import DataAge, allowed_age_seconds
from lagwise.platform.errors import ConfigError
from lagwise.tables.store import Lake
from lagwise_alerts.operate import Owner, load_rules, owner_of
from lagwise_app.answers.alerts import AlertAnswers

Row = Mapping[str, Any]

#: Interval of a cluster that is not in the settings, as in other places that show its age.
_USUAL_INTERVAL_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Context:
    """What answers are read from. May be used from any thread."""

    lake: Lake
    config: Config
    alerts: AlertAnswers
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    _owners: dict[Path, tuple[tuple[int, int], tuple[Owner, ...] | ConfigError]] = field(default_factory=dict)

    def owners(self) -> tuple[Owner, ...]:
        """The owners of groups, read again when the file of the rules changes. Raises ConfigError."""
        path = self.config.alerts.rules_file
        if path is None:
            return ()
        try:
            stat = path.stat()
        except OSError as error:
            raise ConfigError(f"cannot read {path}: {error.strerror}") from error
        version = stat.st_mtime_ns, stat.st_size
        kept = self._owners.get(path)
        if kept is None or kept[0] != version:
            channels = [channel.name for channel in self.config.alerts.channels]
            kept = self._owners[path] = version, _owners_in(path, channels)
        found = kept[1]
        if isinstance(found, ConfigError):
            # A new one: an error that is raised again and again keeps every place it came from.
            raise ConfigError(*found.args, code=found.code)
        return found


def _owners_in(path: Path, channels: Sequence[str]) -> tuple[Owner, ...] | ConfigError:
    """The owners, or why the file cannot be used: so that one that is wrong is not parsed for every question."""
    try:
        return load_rules(path, channels).owners
    except ConfigError as error:
        return error.with_traceback(None)


def team_of(owners: Sequence[Owner], row: Row) -> str | None:
    """The team that owns a group; None without one."""
    owner = owner_of(owners, row["cluster"], row["group"])
    return None if owner is None else owner.team


def with_freshness(context: Context, row: Row, team: str | None) -> dict[str, Any]:
    """A group's row with its owner, and whether it is older than it should be."""
    return {**row, "is_stale": stale_groups(context, [row]) > 0, "owner": team}


def stale_groups(context: Context, rows: Iterable[Row]) -> int:
    """How many groups' rows are older than they should be. A list of groups in trouble that is empty proves nothing
    then."""
    now, every = context.clock(), context.config.analysis.interval_seconds
    allowed = {one.name: allowed_age_seconds(one.interval_seconds, every) for one in context.config.clusters}
    usual = allowed_age_seconds(_USUAL_INTERVAL_SECONDS, every)
    return sum(DataAge(row["as_of"], now, allowed.get(row["cluster"], usual)).is_stale for row in rows)
