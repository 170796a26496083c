"""What the whole process shares: the settings, the lake, and the clock."""

from datetime import UTC, datetime

import streamlit as st

from lagwise.config import Config
from lagwise.platform.errors import ConfigError
from lagwise.tables.kept_rows import KeptRows
from lagwise.tables.tolerant import TolerantLake

#: Rows of small data files that are kept in memory.
_KEPT_BYTES = 32 * 2**20

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


@st.cache_resource(max_entries=1, show_spinner=False)
def lake() -> TolerantLake:
    """The one handle on the lake; its tables are refreshed as they are used. Raises ConfigError."""
    settings = config()
    made = TolerantLake(settings.lake_uri, settings.lake.resolved_storage_options())
    # Each round adds a small file to most tables, and every page asks for what is newest in some of them.
    made.kept = KeptRows(_KEPT_BYTES, of_partitions=False)
    return made


def started_at() -> datetime:
    """When this process was started: in `lagwise up` together with the collector and the analysis."""
    return _STARTED_AT


def now() -> datetime:
    """The present moment, UTC. The only clock of the dashboard."""
    return datetime.now(UTC)


def rounded_up(at: datetime, step_seconds: float) -> datetime:
    """The next whole step: spans that end there are the same in all browsers, so they share one answer."""
    return datetime.fromtimestamp(-(-at.timestamp() // step_seconds) * step_seconds, at.tzinfo)
