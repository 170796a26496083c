"""Which team owns which groups, from the file of the alert rules (`owners`).

A module of its own because Streamlit executes the page's script anew at every draw, and with it would make the cache.
"""

import streamlit as st

from lagwise.platform.errors import ConfigError
from lagwise_alerts.operate import Owner, load_rules, owner_of
from lagwise_dashboard import context, visibility
from lagwise_dashboard.cache import ask
from lagwise_dashboard.queries import overview
from lagwise_dashboard.queries.listing import ListQuery
from lagwise_dashboard.queries.overview import GroupKeys

#: The file is read again after so long.
_TTL_SECONDS = 30


def owners() -> tuple[Owner, ...]:
    """The owners in the file's order. Raises ConfigError where the file cannot be used."""
    found = _read()
    if isinstance(found, ConfigError):
        # A new one: an error that is raised again and again keeps every place it came from.
        raise ConfigError(*found.args, code=found.code)
    return found


@st.cache_resource(ttl=_TTL_SECONDS, max_entries=1, show_spinner=False)
def _read() -> tuple[Owner, ...] | ConfigError:
    """The owners, or why the file cannot be used: so that one that is wrong is not parsed at every draw."""
    alerts = context.config().alerts
    try:
        return load_rules(alerts.rules_file, [channel.name for channel in alerts.channels]).owners
    except ConfigError as error:
        return error.with_traceback(None)


def teams() -> set[str]:
    """The names of the teams that own a group which the reader sees. Raises ConfigError and LakeError."""
    known = owners()
    if visibility.sees_everything():
        return {owner.team for owner in known if owner.team}
    found = (owner_of(known, *one) for one in _names())
    return {owner.team for owner in found if owner is not None and owner.team}


def groups_of(team: str) -> GroupKeys | None:
    """The groups of a team, whatever their status; without a name None, which is all groups."""
    if not team:
        return None
    known = owners()
    return tuple(one for one in _names() if (owner := owner_of(known, *one)) is not None and owner.team == team)


def _names() -> GroupKeys:
    return tuple((row["cluster"], row["group"]) for row in ask(overview.names, ListQuery().all_rows))
