"""Which team owns which groups, from the file of the alert rules (`owners`).

A module of its own because Streamlit executes the page's script anew at every draw, and with it would make the cache.
"""

import streamlit as st

from lagwise_alerts.operate import Owner, load_rules
from lagwise_dashboard import context

#: The file is read again after so long.
_TTL_SECONDS = 30


@st.cache_resource(ttl=_TTL_SECONDS, max_entries=1, show_spinner=False)
def owners() -> tuple[Owner, ...]:
    """The owners in the file's order. Raises ConfigError where the file cannot be used."""
    alerts = context.config().alerts
    return load_rules(alerts.rules_file, [channel.name for channel in alerts.channels]).owners
