"""Which group runs out of capacity first? One bar a group and topic, on the scale of what each can do."""

from dataclasses import replace
from datetime import datetime

import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.capacity.verdict import CapacityVerdict
from lagwise.domain.humanise import per_cent, significant_rate
from lagwise.links import pages, parameters
from lagwise_dashboard import address, appearance, context, tables, visibility
from lagwise_dashboard.cache import ask
from lagwise_dashboard.pages.capacity import undecided
from lagwise_dashboard.queries import capacity as queries
from lagwise_dashboard.queries import overview
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.queries.listing import ListPage
from lagwise_dashboard.report.current_capacity import advised_change, enough_until, running
from lagwise_dashboard.tables import Bullet, TableColumn
from lagwise_dashboard.widgets import browser_window, filters, list_view

#: Where the scale ends, as a share of what a group can do.
_END_OF_SCALE = 1.5
#: Labels of the scale that are nearer to each other than this overlap.
_LEAST_GAP = 0.2
#: Columns of the table `capacity` that are drawn, and in a CSV are numbers.
_BEHIND_THE_BARS = (
    "forecast_demand_high_per_second",
    "planned_objective_rate_per_second",
)


def show(now: datetime) -> None:
    """Draw the bars, and folded below them what is undecided."""
    st.subheader("Headroom", anchor=False)
    listing, cluster = parameters.HEADROOM_LIST, address.get(parameters.CLUSTER) or None
    query = list_view.query(listing)
    decided = ask(queries.headroom, cluster, query, undecided=False)
    reasons = ask(queries.undecided_reasons, cluster, query.text)
    total = decided.total + sum(reasons.values())
    clusters = ask(overview.clusters)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        list_view.search(listing, total, "Group or topic", "Search the verdicts")
        filters.cluster(clusters)
    if not total and (cluster or list_view.is_searched(listing)):
        st.caption("No verdict matches.")
        return
    if not total:
        st.info(
            "**No verdict on capacity yet.** The analysis produces one for every watched group, a few minutes after it "
            "first sees the group. Until then, *Plan a new workload* calculates with numbers that you enter.",
            icon=":material/hourglass_top:",
        )
        return
    if decided:
        _bars(cluster, decided, now)
    if reasons:
        undecided.show(cluster, reasons)


def _bars(cluster: str | None, decided: ListPage[Row], now: datetime) -> None:
    listing, target = parameters.HEADROOM_LIST, context.config().analysis.capacity.target_utilisation
    st.caption(
        f"{decided.counted('verdict')}, the oldest {humanise.since(decided[0]['oldest'], now)} old. A bar is today's "
        "demand as a share of the least that the group can do. Where that is what the lag objective takes, a hollow "
        "bar goes on to the highest minute. ◆ is the highest forecast, with a line to its upper bound. Grey goes on "
        "from 100 % to the most that the group can do; dots mean that only the least is known. Beyond "
        f"{per_cent(target)} the slack is used, beyond 100 % the group may not keep up."
    )
    list_view.table(
        listing,
        decided,
        lambda rows: columns(rows, target, is_narrow=browser_window.is_narrow()),
        lambda query: queries.headroom(visibility.lake(), cluster, query),
        name="headroom",
        label="Headroom of groups" + list_view.if_default_order(listing, ", those whose capacity ends soonest first"),
        orders=queries.ORDERS,
        links=address.group_links(decided, pages.CAPACITY, with_topic=True),
    )


def columns(rows: list[Row], target: float, *, is_narrow: bool = False) -> list[TableColumn]:
    """The columns of the table. ``target`` is the share of what a group can do that may be used. A narrow window has
    room for two columns: which group, and its bar."""
    group = tables.text("Group", [r["group"] for r in rows], width=92 if is_narrow else 190).sorts_by("group")
    verdict = tables.badges(
        "Verdict",
        [[appearance.of_capacity_verdict(r["verdict"]).label] for r in rows],
        appearance.CAPACITY_APPEARANCES.values(),
    ).sorts_by("worst")
    bars = _used(rows, target)
    topic = tables.text("Topic", [r["topic"] for r in rows], width=150).sorts_by("topic")
    ends = _enough_until(rows)
    result = [
        *([group, bars, ends, verdict, topic] if is_narrow else [verdict, group, topic, ends, bars]),
        _demand(rows),
        tables.rate("Forecast", [r["forecast_demand_per_second"] for r in rows], unit="/s")
        .with_help(
            "The highest demand of a day in the forecast. The page of the group has the highest minute at its end."
        )
        .sorts_by("forecast"),
        tables.between(
            "Can do",
            [r["capacity_low_per_second"] for r in rows],
            [r["capacity_high_per_second"] for r in rows],
            formatter=significant_rate,
            of="per_second",
        )
        .with_help("≥ marks a lower bound: it never had a backlog.")
        .sorts_by("can_do"),
        _advised(rows),
    ]
    if len({r["cluster"] for r in rows}) > 1:
        result.append(tables.text("Cluster", [r["cluster"] for r in rows]).sorts_by("cluster"))
    return result


def _demand(rows: list[Row]) -> TableColumn:
    """Today's demand; in a CSV also the peak, which it may not be."""
    made = tables.rate("Demand", [r["demand_per_second"] for r in rows], unit="/s")
    peaks = tables.rate("Peak so far", [r["peak_rate_per_second"] for r in rows])
    return (
        replace(made, raw={**peaks.raw, **made.raw, "size_by": [r["size_by"] for r in rows]})
        .with_help(
            "The busiest minute so far, or where the lag objective decides, the least capacity that would have kept it."
        )
        .sorts_by("demand")
    )


def _enough_until(rows: list[Row]) -> TableColumn:
    shown = tables.text("Enough until", [enough_until(r).removeprefix(humanise.DASH) for r in rows])
    return (
        replace(shown, raw={name: [r[name] for r in rows] for name in ("enough_until", "is_exceeded")})
        .with_help("The day, in UTC, on which the forecast exceeds what the group can do, less the target slack.")
        .sorts_by("soonest")
    )


def _used(rows: list[Row], target: float) -> TableColumn:
    """The bars. In a CSV there are all numbers behind them, and the verdict's reason."""
    target_label = per_cent(target) if _LEAST_GAP <= target <= 1.0 - _LEAST_GAP else ""
    made = tables.bullet(
        "Used of what it can do",
        [_bar(r) for r in rows],
        [(0.0, "0"), (target, target_label), (1.0, "100 %"), (_END_OF_SCALE, per_cent(_END_OF_SCALE))],
        appearance.CAPACITY_APPEARANCES.values(),
    )
    raw = {name: [r[name] for r in rows] for name in _BEHIND_THE_BARS}
    why = [r["sentence"] for r in rows]
    return (
        replace(
            made,
            raw={**raw, "forecast_peak_per_second": [r["forecast_peak_rate_per_second"] for r in rows], "why": why},
        )
        .with_help(
            "Bar: today's demand. It is the highest minute so far, or what the lag objective took: then an outline "
            "shows the highest minute.\n"
            "◆: the highest forecast; the line beside it ends at its upper bound.\n"
            "100 %: the least that the group can do; grey: up to what it can do; dots: only the least is known.\n"
            f"{per_cent(target)}: what the target slack leaves.\n"
            "An arrow at the end: more than the scale holds."
        )
        .sorts_by("used")
    )


def _bar(row: Row) -> Bullet | None:
    least = row["capacity_low_per_second"]
    if row["used_share"] is None:
        return None

    def share(name: str) -> float | None:
        return row[name] / least if least and row[name] is not None else None

    return Bullet(
        label=appearance.of_capacity_verdict(row["verdict"]).label,
        value=row["used_share"],
        outline=share("peak_rate_per_second"),
        mark=share("forecast_demand_per_second"),
        mark_high=share("forecast_demand_high_per_second"),
        limit_high=share("capacity_high_per_second"),
        text=row["sentence"],
    )


def _advised(rows: list[Row]) -> TableColumn:
    """What should run instead; in a CSV also what runs, and the confidence."""
    shown = [None if r["verdict"] == CapacityVerdict.UNDECIDED else advised_change(r) or "no change" for r in rows]
    made = tables.text("Advised", shown, width=170).with_help("Instead of what runs.")
    return replace(
        made, raw={"runs": [running(r) for r in rows], **made.raw, "confidence": [r["confidence"] for r in rows]}
    )
