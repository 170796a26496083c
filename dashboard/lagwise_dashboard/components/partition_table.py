"""The partitions of a group, worst first: how bad, why, and whose."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import streamlit as st

from lagwise.domain import humanise
from lagwise_dashboard import literal, words
from lagwise_dashboard.components import tables
from lagwise_dashboard.queries.base import Row


def show(rows: list[Row], labels: Mapping[tuple[str, int], str], *, readable: bool) -> None:
    """Draw the partitions; of a group that is not ``readable`` there may be more than are known. ``labels`` are the
    names that the system itself has for them."""
    several_topics = len({r["topic"] for r in rows}) > 1
    topic = "" if several_topics or not rows else f" of **{literal.markdown(rows[0]['topic'])}**"
    total = rows[0]["of"] if rows else 0
    st.subheader("Partitions", anchor=False)
    if not rows:
        st.caption(
            "It has no partitions: nothing is committed and nothing is assigned."
            if readable
            else "None is known: the group could not be read."
        )
        return
    st.caption(f"{len(rows):,} of {humanise.plural(total, 'partition')}{topic}, the worst first.")
    st.dataframe(
        frame(rows, labels, with_topic=several_topics),
        key="group_partitions",
        hide_index=True,
        height=tables.height(min(len(rows), 12)),
        row_height=tables.ROW_HEIGHT,
        placeholder=tables.PLACEHOLDER,
        alt="Partitions of the group, the worst first",
        column_config={
            "Status": tables.status_column("What holds", width=_width(rows)),
            "Partition": st.column_config.NumberColumn(format="%d"),
            "Queue": tables.queue_column(),
            "Oldest unread": tables.right_column(),
            "Lag": st.column_config.NumberColumn(format="localized", help="Unread records that still exist."),
            "In/s": tables.right_column(help=tables.WRITTEN_HELP),
            "Out/s": tables.right_column(help=tables.READ_HELP),
            "Committed": tables.right_column(help="Committed offset."),
            "Unmoved for": tables.right_column(help="How long the committed offset has had its value."),
            "Log": st.column_config.TextColumn(help="Log start and high watermark."),
            "Lost": st.column_config.NumberColumn(format="localized", help="Records deleted before they were read."),
            "Loss in": tables.right_column(help="Time until unread records are deleted or the commits expire."),
        },
    )


def frame(rows: list[Row], labels: Mapping[tuple[str, int], str], *, with_topic: bool) -> pa.Table:
    """The rows as they are shown; columns that are empty throughout are left out."""
    columns: dict[str, list[Any]] = {
        "Status": [_what_holds(r) for r in rows],
        "Topic": [literal.shown(r["topic"]) for r in rows],
        "Partition": [r["partition"] for r in rows],
        "Queue": [literal.shown(labels.get((r["topic"], r["partition"]))) or None for r in rows],
        "Oldest unread": [
            humanise.duration(r["lag_seconds"], lower_bound=bool(r["lag_seconds_is_lower_bound"])) for r in rows
        ],
        "Lag": [r["lag"] for r in rows],
        "In/s": [humanise.rate(r["produce_rate_per_second"]) for r in rows],
        "Out/s": [humanise.rate(r["consume_rate_per_second"]) for r in rows],
        "Owner": [_owner(r) for r in rows],
        "Committed": [_offset(r["committed"]) for r in rows],
        "Unmoved for": [_unmoved(r) for r in rows],
        "Log": [_log(r) for r in rows],
        "Loss in": [
            humanise.loss_in(r["seconds_to_loss"], upper_bound=bool(r["seconds_to_loss_is_upper_bound"])) for r in rows
        ],
        "Lost": [r["records_lost"] for r in rows],
    }
    if not with_topic:
        del columns["Topic"]
    if not any(columns["Queue"]):
        del columns["Queue"]
    if not any(r["records_lost"] for r in rows):
        del columns["Lost"]
    if all(r["seconds_to_loss"] is None for r in rows):
        del columns["Loss in"]
    return tables.table(columns)


def _width(rows: list[Row]) -> int:
    """Room for as many badges as the fullest row has, up to three."""
    return 115 * min(3, max(len(_what_holds(r)) for r in rows)) + 10


def _what_holds(row: Row) -> list[str]:
    """The status, then whatever else holds; for an unknown one the reason in the place of that."""
    held = tables.badges([row["status"], *(r for r in row["reasons"] if r != row["status"])])
    reason = words.reason_in_words(row["reason"])
    return [*held, reason] if reason else held


def _unmoved(row: Row) -> str | None:
    """As of the sample, like every number beside it: since then the group has had no chance to show a commit."""
    if row["committed"] is None or row["committed_since"] is None:
        return None
    return humanise.since(row["committed_since"], row["as_of"])


def _offset(offset: int | None) -> str | None:
    return None if offset is None else str(offset)


def _owner(row: Row) -> str | None:
    if row["owner"] is None:
        return "nobody"
    client, host = literal.shown(row["client_id"]), literal.shown(row["host"]).removeprefix("/")
    return " · ".join(filter(None, (client, host))) or literal.shown(row["owner"])


def _log(row: Row) -> str:
    def number(offset: int | None) -> str:
        return humanise.DASH if offset is None else str(offset)

    return f"{number(row['log_start'])} … {number(row['high_watermark'])}"
