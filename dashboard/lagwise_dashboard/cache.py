"""Ask the lake a question once for everybody: answers are kept until one of the tables they rest on changes.

An answer is stored under the versions of its tables, so that it is never older than the data and twenty open browsers
cost as much as one. Looking up a version costs a few milliseconds; nothing is read again while nothing was written.
"""

from typing import Any, ParamSpec, TypeVar

import streamlit as st

from lagwise.platform.errors import LakeError
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_dashboard import context
from lagwise_dashboard.queries.base import Query

P = ParamSpec("P")
R = TypeVar("R")

#: An answer is read again after so long, whether it was used or not.
_TTL_SECONDS = 300
_MAX_ANSWERS = 200


def ask(query: Query[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """The answer to a query over the newest snapshot. Raises LakeError."""
    lake = context.lake()
    versions = tuple(_version(lake, table) for table in query.tables)
    answer: R = _answer(lake, query, lake.uri, query.name, versions, args, tuple(sorted(kwargs.items())))
    return answer


def _version(lake: Lake, table: Table) -> int | str | None:
    """The table's version; of one that cannot be read, why: a query may do without it."""
    try:
        return lake.version(table)
    except LakeError as error:
        return str(error)


@st.cache_data(ttl=_TTL_SECONDS, max_entries=_MAX_ANSWERS, show_spinner=False)
def _answer(
    _lake: Lake,
    _query: Query[..., Any],
    uri: str,
    name: str,
    versions: tuple[int | str | None, ...],
    args: tuple[Any, ...],
    kwargs: tuple[tuple[str, Any], ...],
) -> Any:
    return _query(_lake, *args, **dict(kwargs))
