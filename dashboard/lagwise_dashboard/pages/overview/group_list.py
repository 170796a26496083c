"""A list of groups, as a table or as cards. Cards suit a narrow screen, the keyboard and screen readers."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.vocabulary import REBALANCING_STATES, GroupState
from lagwise.links import pages, parameters
from lagwise.links.parameter_types import ListParameters
from lagwise_dashboard import address, appearance, escaping, tables
from lagwise_dashboard.queries import overview
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.queries.listing import ListPage, ListQuery
from lagwise_dashboard.tables import TableColumn
from lagwise_dashboard.widgets import grid, lag_columns, list_view

#: Groups of a page. The strip above has all of them, so a page is what one looks at, and it is sent at every refresh.
_PAGE_GROUPS, _PAGE_CARDS = 100, 50
_WHY_WIDTH, _WHY_LINES = 360, 2
TITLE, _LABEL = "Who is in trouble?", "Consumer groups"


@dataclass(frozen=True, slots=True)
class ListStyle:
    """How groups are shown: ages as of ``now``, with the cluster's name or without, as cards or as a table."""

    now: datetime
    with_cluster: bool
    as_cards: bool

    @property
    def page_rows(self) -> int:
        """How many groups a page holds."""
        return _PAGE_CARDS if self.as_cards else _PAGE_GROUPS


def show(
    listing: ListParameters,
    result: ListPage[Row],
    read: Callable[[ListQuery], ListPage[Row]],
    style: ListStyle,
    *,
    name: str,
) -> None:
    """Draw a page of the groups; each opens the page of its group. ``read`` reads the whole list, for the CSV."""
    if style.as_cards:
        for row in result:
            _card(row, style)
        list_view.pagination(listing, result)
        return
    list_view.table(
        listing,
        result,
        lambda rows: _columns(rows, style),
        read,
        name=name,
        label=_LABEL,
        orders=overview.ORDERS,
        links=address.group_links(result),
    )


def table_data(listing: ListParameters, result: ListPage[Row], style: ListStyle) -> dict[str, Any]:
    """What the script of the table is given that :func:`show` draws."""
    return grid.data_of(
        _columns(result.rows, style),
        label=_LABEL,
        links=address.group_links(result),
        sorting=list_view.sorting(listing, overview.ORDERS),
        sorts=result.pages == 1,
    )


def _columns(rows: list[Row], style: ListStyle) -> list[TableColumn]:
    """The columns; the cluster is left out where all groups are of one."""
    result = [
        lag_columns.statuses(rows).sorts_by("worst"),
        tables.text("Group", [r["group"] for r in rows], width=190).sorts_by("name"),
        tables.text("Why", [r["sentence"] for r in rows], width=_WHY_WIDTH, wraps=True, max_lines=_WHY_LINES).with_help(
            "The verdict in one sentence, and after it the likely cause where one is known. All of it is at the "
            "pointer, and on the page of the group."
        ),
        lag_columns.oldest_unread(rows, "Age of the oldest record the group has not read."),
        lag_columns.lag(rows, "Unread records; unknown partitions and ghosts left out."),
        tables.trend("Lag, last hour", [r["trend"] for r in rows]).with_help(
            "Unread records over the last hour of data (or since the first sample, if that is more recent), each group "
            "on its own scale from zero up."
        ),
        tables.duration("Caught up in", [lag_columns.seconds_to_catch_up(r) for r in rows], endless="never")
        .with_help("Time until the lag is gone at today's rates; never if it is not shrinking.")
        .sorts_by("catch_up"),
        tables.duration("Since", [tables.elapsed_seconds(r["since"], style.now) for r in rows])
        .with_help("How long the group has had this status.")
        .sorts_by("since"),
        lag_columns.written(rows),
        lag_columns.read(rows),
        tables.text("Worst partition", [_worst_partition(r) for r in rows], width=120).with_help(
            "By status, then by age of its oldest unread record."
        ),
        _members(rows).sorts_by("members"),
    ]
    if style.with_cluster:
        result.append(tables.text("Cluster", [r["cluster"] for r in rows]).sorts_by("cluster"))
    return result


def _worst_partition(row: Row) -> str | None:
    """``topic-partition``, as Kafka's own tools write it."""
    topic, partition = row["worst_topic"], row["worst_partition"]
    return None if topic is None else f"{topic}-{partition}"


def _members(rows: list[Row]) -> TableColumn:
    """How many members a group has, with its state, or in the usual one with how many own nothing: ``0, Empty``,
    ``5, rebalancing``, ``6, 2 idle``."""
    states = ["rebalancing" if r["state"] in REBALANCING_STATES else r["state"] for r in rows]
    made = tables.count("Members", [r["members"] for r in rows])
    idle = [r["idle_members"] for r in rows]
    notes = [
        (f"{humanise.count(without)} idle" if without else "") if state in (None, GroupState.STABLE) else state
        for state, without in zip(states, idle, strict=True)
    ]
    cells = [f"{cell or humanise.DASH}, {note}" if note else cell for cell, note in zip(made.cells, notes, strict=True)]
    complete = replace(made, cells=cells, raw={**made.raw, "state": states, "idle_members": idle})
    return complete.with_help(
        "With the state that the group coordinator reports, unless the group is stable. Idle members own no partition."
    )


def _card(row: Row, style: ListStyle) -> None:
    """The name as a link, the status, the sentence, and the numbers that are known."""
    age = humanise.duration(row["lag_seconds"], lower_bound=bool(row["lag_seconds_is_lower_bound"]))
    numbers = {
        "oldest unread": age,
        "lag": humanise.count(row["lag"]),
        "caught up in": lag_columns.catch_up(row),
        "in/s": humanise.rate(row["produce_rate_per_second"]),
        "out/s": humanise.rate(row["consume_rate_per_second"]),
    }
    known = " · ".join(f"{name} **{value}**" for name, value in numbers.items() if value != humanise.DASH)
    badge = appearance.of_status(row["status"])
    where = f" · {escaping.markdown(row['cluster'])}" if style.with_cluster else ""
    with st.container(border=True, gap="xsmall", key=f"card_{(row['cluster'], row['group'])}"):
        address.page_link(
            pages.GROUP,
            f"**{escaping.markdown(row['group'])}**",
            values={parameters.CLUSTER: row["cluster"], parameters.GROUP: row["group"], parameters.TOPIC: None},
        )
        st.markdown(
            f":{badge.markdown}-badge[{badge.label}] for {humanise.since(row['since'], style.now)}{where}  \n"
            f"{escaping.markdown(row['sentence'])}  \n{known}"
        )
