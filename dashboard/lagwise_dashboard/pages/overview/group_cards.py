"""Groups as cards: what the table shows, for a narrow screen, for the keyboard and for whoever has it read aloud."""

from datetime import datetime

import streamlit as st

from lagwise.domain import humanise
from lagwise.links import pages, parameters
from lagwise_dashboard import address, appearance, escaping
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.widgets import lag_columns

#: Cards of a page.
PAGE_CARDS = 50


def show(rows: list[Row], now: datetime, *, with_cluster: bool) -> None:
    """Draw a card for each group; its name is a link to the group's page."""
    for row in rows:
        with st.container(border=True, gap="small"):
            address.page_link(
                pages.GROUP,
                f"**{escaping.markdown(row['group'])}**",
                values={parameters.CLUSTER: row["cluster"], parameters.GROUP: row["group"], parameters.TOPIC: None},
            )
            st.markdown(text(row, now, with_cluster=with_cluster))


def text(row: Row, now: datetime, *, with_cluster: bool) -> str:
    """Markdown: the status, the sentence, and the numbers that are known."""
    badge = appearance.of_status(row["status"])
    where = f" · {escaping.markdown(row['cluster'])}" if with_cluster else ""
    numbers = [
        (name, value)
        for name, value in (
            (
                "oldest unread",
                humanise.duration(row["lag_seconds"], lower_bound=bool(row["lag_seconds_is_lower_bound"])),
            ),
            ("lag", humanise.count(row["lag"])),
            ("caught up in", lag_columns.catch_up(row)),
            ("in/s", humanise.rate(row["produce_rate_per_second"])),
            ("out/s", humanise.rate(row["consume_rate_per_second"])),
        )
        if value != humanise.DASH
    ]
    return (
        f":{badge.markdown}-badge[{badge.label}] for {humanise.since(row['since'], now)}{where}  \n"
        f"{escaping.markdown(row['sentence'])}  \n" + " · ".join(f"{name} **{value}**" for name, value in numbers)
    )
