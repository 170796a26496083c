"""What the person at the other end may see: the one way of the pages to the lake and to the names in the settings.

Who may see everything gets the lake itself, and shares every answer with everybody of that kind. Who may not
(``dashboard.sign_in.teams``) gets a :class:`VisibleLake`, whose answers are kept apart by what it shows.
"""

import streamlit as st

from lagwise.config.model import AnyCluster
from lagwise.config.visibility import EVERYTHING, NOTHING, Visibilities
from lagwise.tables.kept_rows import KeptRows
from lagwise.tables.tolerant import TolerantLake
from lagwise_dashboard import context, identity
from lagwise_dashboard.visible_lake import VisibleLake

#: Rows of small data files that are kept in memory.
_KEPT_BYTES = 32 * 2**20
#: So many different sets of teams keep the names that they see.
_MAX_VISIBILITIES = 200


def of_reader() -> Visibilities:
    """What the reader sees: nothing where nobody is known to ask."""
    sign_in = context.config().dashboard.sign_in
    if sign_in is None or not sign_in.teams:
        return EVERYTHING  # whom `identity.gate` lets through
    access = identity.access_of_reader(sign_in)
    return NOTHING if access.role is None else access.sees


def sees_everything() -> bool:
    """Whether the reader sees everything, also what is about no group."""
    return of_reader().is_unlimited


def lake() -> TolerantLake:
    """The lake as the reader sees it. Raises ConfigError."""
    seen = of_reader()
    return _whole_lake() if seen.is_unlimited else _visible_lake(seen)


def key() -> str:
    """What tells the answers of readers apart who see different groups; empty for those who see everything."""
    seen = of_reader()
    return "" if seen.is_unlimited else _visible_lake(seen).key


def clusters() -> tuple[AnyCluster, ...]:
    """The clusters of the settings that the reader sees."""
    seen = of_reader()
    return tuple(one for one in context.config().clusters if seen.shows_cluster(one.name))


@st.cache_resource(max_entries=1, show_spinner=False)
def _whole_lake() -> TolerantLake:
    """The one handle on the lake; its tables are refreshed as they are used. Raises ConfigError."""
    settings = context.config()
    made = TolerantLake(settings.lake_uri, settings.lake.resolved_storage_options())
    # Each round adds a small file to most tables, and every page asks for what is newest in some of them.
    made.kept = KeptRows(_KEPT_BYTES, of_partitions=False)
    return made


def _visible_lake(seen: Visibilities) -> VisibleLake:
    return _made(key=repr(seen), _seen=seen)


@st.cache_resource(max_entries=_MAX_VISIBILITIES, show_spinner=False)
def _made(*, key: str, _seen: Visibilities) -> VisibleLake:
    return VisibleLake(_whole_lake(), _seen, key)
