"""Filters that several pages have: text and cluster. What is chosen stands in the address."""

from collections.abc import Sequence

import streamlit as st

from lagwise.addresses import query
from lagwise_dashboard import address, literal


def search(placeholder: str) -> None:
    """A field for text, which filters while it is typed."""
    st.text_input(
        "Search",
        type="search",
        live=True,
        placeholder=placeholder,
        label_visibility="collapsed",
        width=320,
        **address.bound(query.SEARCH, empty="", typed=True),
    )


def cluster(known: Sequence[str]) -> None:
    """A choice between the clusters, where there are several or one is asked for."""
    asked = address.get(query.CLUSTER)
    options = [*known, *([asked] if asked and asked not in known else [])]
    if len(options) > 1 or asked:
        st.selectbox(
            "Cluster",
            options,
            index=None,
            placeholder="All clusters",
            format_func=literal.shown,
            label_visibility="collapsed",
            width=180,
            **address.bound(query.CLUSTER, resets=(query.GROUP, query.TOPIC)),
        )
