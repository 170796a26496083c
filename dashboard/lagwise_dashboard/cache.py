"""Ask the lake a question once for everybody: answers are kept until one of the tables they rest on changes.

An answer is stored under the versions of its tables, so that it is never older than the data and twenty open browsers
cost as much as one. Nothing is read again while nothing was written. Readers who see different groups
(:mod:`lagwise_dashboard.visibility`) do not share answers.
"""

import hashlib
import pickle
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import streamlit as st

from lagwise.platform.errors import LakeError
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_dashboard import visibility
from lagwise_dashboard.queries.base import Query

P = ParamSpec("P")
R = TypeVar("R")

#: An answer is read again after so long, whether it was used or not.
_TTL_SECONDS = 300
_MAX_ANSWERS = 200


def ask(query: Query[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """The answer to a query over the newest snapshot. Raises LakeError."""
    lake = visibility.lake()
    versions = tuple(_version(lake, table) for table in query.tables)
    return _kept(query, lake, versions, args, kwargs)


def ask_of_the_past(query: Query[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """The answer to a query over a span that lies so far back that what is written now does not change it. It is read
    again every few minutes at most. Raises LakeError."""
    return _kept(query, visibility.lake(), (), args, kwargs)


def computed_once(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """What a function makes of answers, and of nothing else: neither the reader's address nor their time zone."""
    key = key_of(function, args, kwargs)
    result: R = _computed(key=key, _compute=lambda: function(*args, **kwargs))
    return result


def _version(lake: Lake, table: Table) -> int | str | None:
    """The table's version; of one that cannot be read, why: a query may do without it."""
    try:
        return lake.version(table)
    except LakeError as error:
        return str(error)


def key_of(*things: Any) -> str:
    """What these things say, as one word: the key of what follows from them. Streamlit would look up the signature of
    the cached function for each argument, each time, which takes longer than to read the answer."""
    return hashlib.blake2b(pickle.dumps(things)).hexdigest()


def _kept(query: Query[..., R], lake: Lake, versions: tuple[int | str | None, ...], args: Any, kwargs: Any) -> R:
    key = key_of(lake.uri, visibility.key(), query.name, versions, args, kwargs)
    answer: R = _answer(key=key, _query=query, _lake=lake, _args=args, _kwargs=kwargs)
    return answer


@st.cache_data(ttl=_TTL_SECONDS, max_entries=_MAX_ANSWERS, show_spinner=False)
def _answer(*, key: str, _query: Query[..., Any], _lake: Lake, _args: Any, _kwargs: Any) -> Any:
    return _query(_lake, *_args, **_kwargs)


@st.cache_data(ttl=_TTL_SECONDS, max_entries=_MAX_ANSWERS, show_spinner=False)
def _computed(*, key: str, _compute: Callable[[], Any]) -> Any:
    return _compute()
