"""Filters that several pages have: text, statuses and cluster. What is chosen stands in the address."""

from collections.abc import Mapping, Sequence

import streamlit as st

from lagwise.domain.vocabulary import DISPLAY_ORDER
from lagwise.links import parameters
from lagwise.links.parameter_types import Parameter
from lagwise_dashboard import address, appearance, escaping
from lagwise_dashboard.appearance import Appearance


def search(
    placeholder: str, parameter: Parameter[str] = parameters.SEARCH, label: str = "Search", *, width: int = 320
) -> None:
    """A field for text, ``width`` pixels wide, which filters while it is typed."""
    st.text_input(
        label,
        type="search",
        live=True,
        placeholder=placeholder,
        label_visibility="collapsed",
        width=width,
        **address.bound(parameter, empty="", typed=True),
    )


def statuses(label: str, counts: Mapping[str, int], parameter: Parameter[tuple[str, ...]]) -> None:
    """Counts by status, each a filter."""
    counted(label, counts, parameter, {s.value: appearance.of_status(s) for s in DISPLAY_ORDER})


def counted(
    label: str,
    counts: Mapping[str, int],
    parameter: Parameter[tuple[str, ...]],
    appearances: Mapping[str, Appearance],
) -> None:
    """Counts by one of some words, each a filter, in the order of their ``appearances``."""
    chosen = address.get(parameter)

    def chip(word: str) -> str:
        badge = appearances[word]
        return f":{badge.markdown}[{badge.sign}] {badge.word} **{counts.get(word, 0):,}**"

    st.pills(
        label,
        [word for word in appearances if counts.get(word) or word in chosen],
        selection_mode="multi",
        format_func=chip,
        label_visibility="collapsed",
        **address.bound(parameter),
    )


def cluster(known: Sequence[str]) -> None:
    """A choice between the clusters, where there are several or one is asked for."""
    wanted = address.get(parameters.CLUSTER)
    options = [*known, *([wanted] if wanted and wanted not in known else [])]
    if len(options) > 1 or wanted:
        st.selectbox(
            "Cluster",
            options,
            index=None,
            placeholder="All clusters",
            format_func=escaping.visible,
            label_visibility="collapsed",
            width=160,
            **address.bound(parameters.CLUSTER, resets=(parameters.GROUP, parameters.TOPIC)),
        )
