"""Which topic, or which group: asked for where the address does not say. Names are looked for in the lake and listed a
page at a time, so that any of very many is found; each is a link."""

import streamlit as st

from lagwise.domain import humanise
from lagwise.links import pages, parameters
from lagwise.links.pages import Page
from lagwise_dashboard import address, appearance, escaping
from lagwise_dashboard.cache import ask
from lagwise_dashboard.queries import overview, topic
from lagwise_dashboard.queries.base import Query, Row
from lagwise_dashboard.queries.listing import ListPage
from lagwise_dashboard.widgets import filters, list_view

#: Links of a page.
PAGE_LINKS = 20


def cluster_of(clusters_of: Query[[str], list[str]], name: str) -> str:
    """The cluster of the address. Without one, the only cluster that has the group or topic of this name; empty where
    none or several have it."""
    if cluster := address.get(parameters.CLUSTER):
        return cluster
    result = ask(clusters_of, name)
    return result[0] if len(result) == 1 else ""


def group(page: Page, prompt: str) -> None:
    """Ask for a group, worst first, and link each to the page."""
    st.markdown(prompt)
    filters.search("A part of its name")
    result = ask(overview.names, list_view.query(parameters.NAME_LIST, PAGE_LINKS))
    for row in result:
        address.page_link(
            page,
            f"{appearance.of_status(row['status']).sign} {_named(row, 'group')}",
            values={
                parameters.CLUSTER: row["cluster"],
                parameters.GROUP: row["group"],
                parameters.TOPIC: None,
                parameters.SEARCH: None,
            },
        )
    _counted(result, "group")


def a_topic(prompt: str) -> None:
    """Ask for a topic, in the order of names, and link each to its page."""
    st.markdown(prompt)
    filters.search("A part of its name")
    result = ask(topic.names, list_view.query(parameters.NAME_LIST, PAGE_LINKS))
    for row in result:
        address.page_link(
            pages.TOPIC,
            f"{_named(row, 'topic')} · {humanise.plural(row['groups'], 'group')}",
            values={parameters.CLUSTER: row["cluster"], parameters.TOPIC: row["topic"], parameters.SEARCH: None},
        )
    _counted(result, "topic")


def _named(row: Row, kind: str) -> str:
    return f"{escaping.markdown(row[kind])} ({escaping.markdown(row['cluster'])})"


def _counted(result: ListPage[Row], kind: str) -> None:
    if not result:
        st.caption(f"No {kind} has this in its name.")
    elif result.pages > 1:
        st.caption(f"{result.counted(kind)}. Type a part of the name to find another.")
    list_view.pagination(parameters.NAME_LIST, result)
