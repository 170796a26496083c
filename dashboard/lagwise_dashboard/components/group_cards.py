"""Groups as cards: what the table shows, for a narrow screen, for the keyboard and for whoever has it read aloud."""

from datetime import datetime

import streamlit as st

from lagwise.addresses import pages, query
from lagwise.domain import humanise
from lagwise_dashboard import address, literal, words
from lagwise_dashboard.components import group_table
from lagwise_dashboard.queries.base import Row

#: Cards of a page.
PAGE_CARDS = 50


def show(rows: list[Row], now: datetime, *, with_cluster: bool) -> None:
    """Draw a card for each group; its name is a link to the group's page."""
    for row in rows:
        with st.container(border=True, gap="small"):
            address.page_link(
                pages.GROUP,
                f"**{literal.markdown(row['group'])}**",
                values={query.CLUSTER: row["cluster"], query.GROUP: row["group"], query.TOPIC: None},
            )
            st.markdown(text(row, now, with_cluster=with_cluster))


def text(row: Row, now: datetime, *, with_cluster: bool) -> str:
    """Markdown: the status, the sentence, and the numbers that are known."""
    look = words.look(row["status"])
    where = f" · {literal.markdown(row['cluster'])}" if with_cluster else ""
    numbers = [
        (name, value)
        for name, value in (
            (
                "oldest unread",
                humanise.duration(row["lag_seconds"], lower_bound=bool(row["lag_seconds_is_lower_bound"])),
            ),
            ("lag", humanise.count(row["lag"])),
            ("caught up in", group_table.catch_up(row)),
            ("in/s", humanise.rate(row["produce_rate_per_second"])),
            ("out/s", humanise.rate(row["consume_rate_per_second"])),
        )
        if value != humanise.DASH
    ]
    return (
        f":{look.markdown}-badge[{look.label}] for {humanise.since(row['since'], now)}{where}  \n"
        f"{literal.markdown(row['sentence'])}  \n" + " · ".join(f"{name} **{value}**" for name, value in numbers)
    )
