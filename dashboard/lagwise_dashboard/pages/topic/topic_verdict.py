"""Does the slowest reader of a topic read its records before retention deletes them? One sentence and the numbers."""

from collections.abc import Callable
from datetime import datetime, timedelta

import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.vocabulary import LossCause, Status
from lagwise_dashboard import escaping, time_zone
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.queries.topic import TopicTotals
from lagwise_dashboard.widgets import lag_columns, tiles

#: From this share of the retention on, the verdict is a warning.
_CLOSE = 0.5


def show(settings: Row | None, readers: list[Row], totals: TopicTotals, now: datetime) -> None:
    """The sentence, loud as it deserves, and the topic's numbers below it."""
    box, text = _verdict(settings, [r for r in readers if r["status"] != Status.GHOST], now)
    box(text)
    tiles.show(_metrics(settings, totals), name="topic", missing_because="not in the newest samples")


def _verdict(settings: Row | None, readers: list[Row], now: datetime) -> tuple[Callable[[str], object], str]:
    """The box for the sentence, and the sentence in Markdown. ``readers`` come nearest to losing records first, ghosts
    left out."""
    keeps = f"The topic keeps records {_retention(settings)}."
    if not readers:
        return st.info, f"**No group reads it.** {keeps}"
    first = next((r for r in readers if r["loss_cause"] == LossCause.DELETION), None)
    if first is not None:
        name = f"**{escaping.markdown(first['group'])}**"
        if first["seconds_to_loss"] <= 0:
            text = f"{name} is losing records: retention deletes them before the group reads them. {keeps}"
            return st.error, text
        within = "at the latest, maybe sooner" if first["seconds_to_loss_is_upper_bound"] else "at the earliest"
        at = first["as_of"] + timedelta(seconds=first["seconds_to_loss"])
        return st.warning, (
            f"{keeps} Retention will delete unread records of {name} in "
            f"{humanise.duration(first['seconds_to_loss'])} {within}: at {time_zone.clock_markdown(at, now)}."
        )
    slow = max((r for r in readers if r["lag_seconds"] is not None), key=lambda r: r["lag_seconds"], default=None)
    if slow is None:
        return st.info, f"{keeps} How far behind its readers are is unknown."
    share = lag_columns.used_share(slow, settings)
    box = st.info if share is None else st.warning if share >= _CLOSE else st.success
    if not slow["lag_seconds"]:
        return box, f"{keeps} Its readers have read everything."
    used = "" if share is None else f", which is {_percent(share)} of that"
    behind = humanise.duration(slow["lag_seconds"], lower_bound=bool(slow["lag_seconds_is_lower_bound"]))
    return box, f"{keeps} The slowest reader, **{escaping.markdown(slow['group'])}**, is {behind} behind{used}."


def _retention(settings: Row | None) -> str:
    """Half a sentence: for how long, up to which size, or that it is unknown."""
    if settings is None or settings["retention_ms"] is None:
        return "for an unknown time"
    policy = settings["cleanup_policy"] or ""
    if "delete" not in policy and "compact" in policy:
        return "by key: compaction removes only older values of a key"
    limits = []
    if settings["retention_ms"] >= 0:
        limits.append(f"for {humanise.duration(settings['retention_ms'] / 1000)}")
    if (settings["retention_bytes"] or -1) >= 0:
        limits.append(f"up to {humanise.size(settings['retention_bytes'])} a partition")
    return " and ".join(limits) or "for ever"


def _percent(share: float) -> str:
    return "less than 1 %" if share < 0.01 else f"{100 * share:.0f} %"


def _metrics(settings: Row | None, totals: TopicTotals) -> list[tiles.Tile]:
    known = settings or {}
    return [
        ("Written /s", humanise.rate(totals.rate_per_second), lag_columns.WRITTEN_HELP),
        ("Offsets kept", humanise.count(totals.offsets_kept), "Log end minus log start."),
        ("Partitions", humanise.count(totals.partitions or known.get("partitions")), None),
        ("Replicas", humanise.count(known.get("replication_factor")), "Of each partition."),
        (
            "Min in-sync replicas",
            humanise.count(known.get("min_isr")),
            "`min.insync.replicas`: with fewer, writes fail.",
        ),
        ("Cleanup policy", escaping.visible(known.get("cleanup_policy")) or humanise.DASH, "`cleanup.policy`."),
    ]
