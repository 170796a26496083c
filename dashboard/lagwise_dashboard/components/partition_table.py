"""The partitions of a group, worst first: how bad, why, and whose."""

from collections.abc import Mapping

import streamlit as st

from lagwise.domain import humanise
from lagwise_dashboard import literal, tables, words
from lagwise_dashboard.components import grid, lag_columns
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.tables import Column

QUEUE_HELP = "Broker and queue, as RocketMQ's own tools name them."


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
    grid.show(
        columns(rows, labels, with_topic=several_topics),
        name="partitions",
        label="Partitions of the group, the worst first",
        about=(rows[0]["cluster"], rows[0]["group"]),
        rows_seen=12,
    )


def columns(rows: list[Row], labels: Mapping[tuple[str, int], str], *, with_topic: bool) -> list[Column]:
    """The columns; those that are empty throughout are left out."""
    found = [
        tables.statuses("What holds", [_what_holds(r) for r in rows]),
        tables.text("Topic", [r["topic"] if with_topic else None for r in rows]),
        tables.number("Partition", [r["partition"] for r in rows]),
        tables.text("Queue", [labels.get((r["topic"], r["partition"])) for r in rows]).described(QUEUE_HELP),
        lag_columns.oldest_unread(rows, "Age of the oldest unread record."),
        lag_columns.lag(rows, "Unread records that still exist."),
        lag_columns.written(rows),
        lag_columns.read(rows),
        tables.text("Owner", [_owner(r) for r in rows]),
        tables.offset("Committed", [r["committed"] for r in rows]).described("Committed offset."),
        tables.duration("Unmoved for", [_unmoved(r) for r in rows]).described(
            "How long the committed offset has had its value."
        ),
        tables.offset("Log start", [r["log_start"] for r in rows]).described("Offset of the oldest record."),
        tables.offset("Log end", [r["high_watermark"] for r in rows]).described("High watermark."),
        lag_columns.loss_in(
            "Loss in",
            rows,
            [r["seconds_to_loss"] for r in rows],
            "Time until unread records are deleted or the commits expire. ≤ marks an upper bound.",
        ),
        tables.count("Lost", [r["records_lost"] or None for r in rows], of="records").described(
            "Records deleted before they were read."
        ),
    ]
    return tables.without_empty(found, "Topic", "Queue", "Lost", "Loss in")


def _what_holds(row: Row) -> list[str]:
    """The status, then whatever else holds; for an unknown one the reason in the place of that."""
    held = lag_columns.labels(row["status"], *(r for r in row["reasons"] if r != row["status"]))
    reason = words.reason_in_words(row["reason"])
    return [*held, reason] if reason else held


def _unmoved(row: Row) -> float | None:
    """As of the sample, like every number beside it: since then the group has had no chance to show a commit."""
    if row["committed"] is None or row["committed_since"] is None:
        return None
    return tables.lasted(row["committed_since"], row["as_of"])


def _owner(row: Row) -> str | None:
    if row["owner"] is None:
        return "none"
    client, host = row["client_id"], (row["host"] or "").removeprefix("/")
    return " · ".join(filter(None, (client, host))) or str(row["owner"])
