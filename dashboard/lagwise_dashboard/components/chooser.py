"""Which topic, or which group: asked for where the address does not say. Names are looked for in the lake, so that any
of very many is found; each is a link."""

import streamlit as st

from lagwise.addresses import pages, query
from lagwise.addresses.pages import Page
from lagwise.domain import humanise
from lagwise_dashboard import address, literal, words
from lagwise_dashboard.cache import ask
from lagwise_dashboard.components import filters
from lagwise_dashboard.queries import overview, topic
from lagwise_dashboard.queries.base import Row

#: Links at once; whoever looks for another one types more of its name.
MOST_CHOICES = 20
_WIDTH = 560


def group(page: Page, prompt: str) -> None:
    """Ask for a group, the worst first, and link each to the page."""
    st.markdown(prompt)
    filters.search("A part of its name")
    rows = ask(overview.names, address.get(query.SEARCH), MOST_CHOICES)
    for row in rows:
        address.page_link(
            page,
            f"{words.look(row['status']).sign} {_named(row, 'group')}",
            values={query.CLUSTER: row["cluster"], query.GROUP: row["group"], query.TOPIC: None, query.SEARCH: None},
        )
    _counted(rows, "group")


def a_topic(prompt: str) -> None:
    """Ask for a topic, in the order of names, and link each to its page."""
    st.markdown(prompt)
    filters.search("A part of its name")
    rows = ask(topic.names, address.get(query.SEARCH), MOST_CHOICES)
    for row in rows:
        address.page_link(
            pages.TOPIC,
            f"{_named(row, 'topic')} · {humanise.plural(row['groups'], 'group')}",
            values={query.CLUSTER: row["cluster"], query.TOPIC: row["topic"], query.SEARCH: None},
        )
    _counted(rows, "topic")


def _named(row: Row, kind: str) -> str:
    return f"{literal.markdown(row[kind])} ({literal.markdown(row['cluster'])})"


def _counted(rows: list[Row], kind: str) -> None:
    if not rows:
        st.caption(f"No {kind} has this in its name.")
    elif rows[0]["of"] > len(rows):
        st.caption(f"{len(rows):,} of {humanise.plural(rows[0]['of'], kind)}: type a part of the name to find another.")
