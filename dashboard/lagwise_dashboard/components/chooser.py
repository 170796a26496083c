"""Which topic, or which group: asked for where the address does not say."""

from collections.abc import Sequence

import streamlit as st

from lagwise.domain import humanise
from lagwise_dashboard import literal, words
from lagwise_dashboard.cache import ask
from lagwise_dashboard.queries import overview, topic

MOST_CHOICES = 1000
_WIDTH = 560


def group(view: str, prompt: str) -> None:
    """Ask for a group, the worst first, and open the view with it."""
    known = [(r["cluster"], r["group"], r["status"]) for r in ask(overview.names, "", MOST_CHOICES)]
    several = _several([cluster for cluster, _, _ in known])
    chosen = st.selectbox(
        prompt,
        known,
        index=None,
        key="group_choice",
        placeholder="Type a part of its name",
        format_func=lambda k: f"{words.look(k[2]).sign}  {literal.shown(k[1])}" + (f"  ({k[0]})" if several else ""),
        width=_WIDTH,
    )
    if chosen:
        st.switch_page(view, query_params={"cluster": chosen[0], "group": chosen[1]})


def a_topic(view: str, prompt: str) -> None:
    """Ask for a topic, in the order of names, and open the view with it."""
    known = [(r["cluster"], r["topic"], r["groups"]) for r in ask(topic.names, MOST_CHOICES)]
    several = _several([cluster for cluster, _, _ in known])
    chosen = st.selectbox(
        prompt,
        known,
        index=None,
        key="topic_choice",
        placeholder="Type a part of its name",
        format_func=lambda k: (
            f"{literal.shown(k[1])}" + (f"  ({k[0]})" if several else "") + f"  · {humanise.plural(k[2], 'group')}"
        ),
        width=_WIDTH,
    )
    if chosen:
        st.switch_page(view, query_params={"cluster": chosen[0], "topic": chosen[1]})


def _several(clusters: Sequence[str]) -> bool:
    return len(set(clusters)) > 1
