"""What will be lost, soonest first: records that retention deletes unread, and commits that expire."""

from datetime import datetime

import streamlit as st

from lagwise.domain import humanise
from lagwise.links import parameters
from lagwise_dashboard import address, context
from lagwise_dashboard.cache import ask
from lagwise_dashboard.pages.retention import loss_table
from lagwise_dashboard.queries import overview
from lagwise_dashboard.queries import retention as queries
from lagwise_dashboard.queries.retention import LossCounts
from lagwise_dashboard.widgets import empty_page, filters, freshness, list_view, page, time_range

_ANY = parameters.WITHIN.default
_HORIZONS: dict[str, float | None] = {
    "1h": 3600.0,
    "6h": 6 * 3600.0,
    "24h": 86400.0,
    "7d": 7 * 86400.0,
    _ANY: None,
}


def body() -> None:
    now = context.now()
    fresh = freshness.read(now)
    freshness.strip(fresh)
    if fresh.nothing_collected:
        empty_page.nothing_collected(fresh)
        return
    if fresh.as_of is None:
        empty_page.nothing_judged(fresh)
        return
    clusters = ask(overview.clusters)
    text, cluster, within = (
        address.get(parameters.SEARCH),
        address.get(parameters.CLUSTER),
        address.get(parameters.WITHIN),
    )
    _inputs(clusters)
    horizon = context.config().analysis.risk_horizon_seconds
    counts = ask(queries.counts, cluster or None, text, horizon)
    _tiles(counts, horizon)
    _list(text, cluster or None, within, now, with_cluster=len(clusters) > 1)


def _inputs(clusters: list[str]) -> None:
    """The fields above the list."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        filters.search("Group or topic")
        filters.cluster(clusters)
        st.segmented_control(
            "Lost within",
            list(_HORIZONS),
            required=True,
            format_func=lambda w: "All" if w == _ANY else time_range.in_words(w),
            **address.bound(parameters.WITHIN),
        )


def _tiles(counts: LossCounts, horizon: float) -> None:
    with st.container(horizontal=True, gap="small"):
        soon = f"Within {humanise.duration(horizon)}"
        for label, number, explained in (
            ("Losing now", counts.now, "Groups whose unread records are being deleted."),
            (soon, counts.soon, "Groups that lose something within the setting `analysis.risk_horizon_seconds`."),
            ("Later", counts.later, "Groups that lose something after that, if nothing changes."),
        ):
            st.metric(label, f"{number:,}", help=explained, border=True)


def _list(text: str, cluster: str | None, within: str, now: datetime, *, with_cluster: bool) -> None:
    result = ask(queries.losses, cluster, text, _HORIZONS[within], list_view.query(parameters.LOSS_LIST))
    if not result:
        is_filtered = bool(text or cluster or within != _ANY)
        where = " that matches the filters" if is_filtered else ""
        st.success(f"Nothing{where} will be lost at today's rates.", icon=":material/check_circle:")
        return
    st.caption(f"{result.counted('row')}, one a group and topic. At today's rates.")
    loss_table.show(
        result,
        now,
        all_rows=lambda: queries.losses(context.lake(), cluster, text, _HORIZONS[within], result.query.all_rows).rows,
        with_cluster=with_cluster,
    )


page.show("What will be lost?", body, help_text="Unread records and committed offsets, the soonest loss first.")
