"""What the whole process shares: the settings, the lake, and the clock."""

import logging
from datetime import UTC, datetime

import streamlit as st

from lagwise import logs
from lagwise.config import Config, load_config
from lagwise.tables.store import Lake

log = logging.getLogger("lagwise.dashboard")


@st.cache_resource(max_entries=1, show_spinner=False)
def config() -> Config:
    """The settings, read once. Raises ConfigError."""
    logs.configure("dashboard")
    return load_config()


@st.cache_resource(max_entries=1, show_spinner=False)
def lake() -> Lake:
    """The one handle on the lake; its tables are refreshed as they are used. Raises ConfigError."""
    settings = config()
    return Lake(settings.lake_uri, settings.lake.resolved_storage_options())


def now() -> datetime:
    """The present moment, UTC. The only clock of the dashboard."""
    return datetime.now(UTC)
