"""What the whole process shares: the settings and the clock."""

from datetime import UTC, datetime

from lagwise.config import Config
from lagwise.platform.errors import ConfigError

_in_use: Config | None = None
_STARTED_AT = datetime.now(UTC)


def use(config: Config) -> None:
    """Have the pages run with these settings: those that the process which serves them was started with."""
    global _in_use
    _in_use = config


def config() -> Config:
    """The settings of this process. They are never looked up again: a page that did might find others than the server.

    Raises ConfigError where the pages are served by something else than Lagwise.
    """
    if _in_use is None:
        raise ConfigError("these pages were started without settings: serve them with `lagwise dashboard`")
    return _in_use


def started_at() -> datetime:
    """When this process was started: in `lagwise up` together with the collector and the analysis."""
    return _STARTED_AT


def now() -> datetime:
    """The present moment, UTC. The only clock of the dashboard."""
    return datetime.now(UTC)


def rounded_up(at: datetime, step_seconds: float) -> datetime:
    """The next whole step: spans that end there are the same in all browsers, so they share one answer."""
    return datetime.fromtimestamp(-(-at.timestamp() // step_seconds) * step_seconds, at.tzinfo)
