"""The verdicts that are undecided, folded: how many for which reason, and what would decide them."""

from collections.abc import Mapping
from dataclasses import replace

import streamlit as st

from lagwise.domain.capacity.observed import Undecided
from lagwise.links import pages, parameters
from lagwise_dashboard import address, tables, visibility
from lagwise_dashboard.cache import ask
from lagwise_dashboard.queries import capacity as queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.tables import TableColumn
from lagwise_dashboard.widgets import list_view

_LOAD_TEST = "run the load test that the page of each group describes"
_PROBE = "let a consumer measure T1 and T2 with the probe"
#: Which verdicts these are, and what decides them, by reason.
REASONS: dict[str, tuple[str, str]] = {
    queries.NO_PEAK: (
        "with less than a whole hour of history",
        "Wait: the first clock hour in which the whole topic was sampled gives a peak to compare with.",
    ),
    Undecided.NEVER_SATURATED: (
        "without a real backlog so far",
        f"Wait for a backlog, {_LOAD_TEST}, or {_PROBE}.",
    ),
    Undecided.TOO_LITTLE: (
        "with too short a backlog so far",
        f"Wait for the next backlog, {_LOAD_TEST}, or {_PROBE}.",
    ),
    Undecided.IMPRECISE: (
        "with too varied a rate under backlog",
        f"Wait for more backlogs, {_LOAD_TEST}, or {_PROBE}.",
    ),
    Undecided.UNSTEADY: (
        "fast at times and slow at others under backlog",
        f"Find what slows them at times; else {_PROBE}.",
    ),
    Undecided.EXCEEDED: (
        "slower under backlog than without",
        f"Find what slows them under a backlog; else {_PROBE}.",
    ),
    Undecided.SHARED: (
        "whose members read other topics too",
        f"No backlog of one topic shows it: {_PROBE}.",
    ),
}


def show(cluster: str | None, reasons: Mapping[str, int]) -> None:
    """One line that unfolds, on the verdicts of a cluster, or of all; ``reasons`` are counts of them, at least one."""
    number, listing = sum(reasons.values()), parameters.UNDECIDED_LIST
    fold = st.expander(
        f"{number:,} undecided: " + ", ".join(f"{n:,} {_which(reason)}" for reason, n in reasons.items()),
        expanded=address.get(listing.page) > 1,
        key="capacity_undecided",
        on_change="rerun",
        icon=":material/help:",
    )
    if not fold.open:
        return
    with fold:
        st.markdown(
            "\n".join(
                f"- **{n:,} {_which(reason)}.** {REASONS[reason][1] if reason in REASONS else ''}"
                for reason, n in reasons.items()
            )
        )
        result = ask(queries.headroom, cluster, list_view.query(listing), undecided=True)
        if result.pages > 1:
            st.caption(f"{result.counted('undecided verdict')}.")
        list_view.table(
            listing,
            result,
            columns,
            lambda query: queries.headroom(visibility.lake(), cluster, query, undecided=True),
            name="undecided",
            label="Undecided verdicts on capacity",
            orders=queries.ORDERS,
            links=address.group_links(result, pages.CAPACITY, with_topic=True),
            visible_rows=10,
        )


def _which(reason: str) -> str:
    return REASONS[reason][0] if reason in REASONS else "for a reason that this version of the dashboard does not know"


def columns(rows: list[Row]) -> list[TableColumn]:
    """The columns of the table."""
    result = [
        tables.text("Group", [r["group"] for r in rows], width=240).sorts_by("group"),
        tables.text("Topic", [r["topic"] for r in rows], width=240).sorts_by("topic"),
        _because(rows),
        tables.rate("Peak so far", [r["peak_rate_per_second"] for r in rows], unit="/s"),
        tables.rate("Did at least", [r["capacity_low_per_second"] for r in rows], unit="/s")
        .with_help("The most that it read in five minutes.")
        .sorts_by("can_do"),
    ]
    if len({r["cluster"] for r in rows}) > 1:
        result.append(tables.text("Cluster", [r["cluster"] for r in rows]).sorts_by("cluster"))
    return result


def _because(rows: list[Row]) -> TableColumn:
    """The reasons in short. The sentences, with the load tests, are on the pages of the groups, and in a CSV."""
    made = tables.text("Undecided", [_which(r["undecided_because"]) for r in rows]).sorts_by("soonest")
    return replace(made, raw={**made.raw, "why": [r["sentence"] for r in rows]})
