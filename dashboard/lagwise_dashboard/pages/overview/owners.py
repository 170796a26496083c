"""Whose a group is, as the file of the alert rules says (`owners`)."""

import streamlit as st

from lagwise_alerts.operate import Owner, load_rules, owner_of
from lagwise_dashboard import context

#: Seconds for which a file of rules is not read again.
_TTL_SECONDS = 30


def team_of(cluster: str, group: str) -> str | None:
    """The team that owns a group; None is nobody's. Raises ConfigError where the file cannot be used."""
    its = owner_of(_owners(), cluster, group)
    return None if its is None else its.team


def teams() -> list[str]:
    """The teams there are, in the order of their names. Raises ConfigError where the file cannot be used."""
    return sorted({owner.team for owner in _owners() if owner.team is not None})


@st.cache_resource(ttl=_TTL_SECONDS, max_entries=1, show_spinner=False)
def _owners() -> tuple[Owner, ...]:
    alerts = context.config().alerts
    return load_rules(alerts.rules_file, [channel.name for channel in alerts.channels]).owners
