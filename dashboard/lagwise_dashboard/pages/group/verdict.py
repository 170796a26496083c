"""The verdict on a group in one sentence, and its numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.findings import not_told_by
from lagwise.domain.subscription_findings import ALL, Subscription
from lagwise.domain.vocabulary import BROADCAST_HINT, LOCAL_FILES, LossCause, Status
from lagwise_dashboard import appearance, escaping, time_zone
from lagwise_dashboard.pages.group.current_round import GroupSnapshot
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.widgets import lag_columns, tiles

Gravity = Literal["error", "warning", "success", "info"]
_GRAVITIES: dict[str, Gravity] = {
    **dict.fromkeys((Status.LOSING_DATA, Status.AT_RISK, Status.STOPPED, Status.STALLED), "error"),
    **dict.fromkeys((Status.REWOUND, Status.FALLING_BEHIND, Status.LAGGING), "warning"),
    Status.OK: "success",
}
_BOXES: dict[Gravity, Callable[[str], object]] = {
    "error": st.error,
    "warning": st.warning,
    "success": st.success,
    "info": st.info,
}
_TYPE_HELP = (
    "Kafka: the group protocol (classic, consumer, share, simple). RocketMQ: concurrent, orderly, pop, pull or "
    "broadcasting. Other systems: what stores the offsets."
)
_SOURCE_HELP = {
    LOCAL_FILES: "The files in which the group's members store their offsets.",
    BROADCAST_HINT: "What the broker saw members fetch; the members are not asked (ask_members: false). Some of it may "
    "not be processed yet, so the lag is at least this.",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict in plain text: the sign and word of the status, the sentence, and since when, with how it compares with
    an earlier day. Control characters are visible."""

    gravity: Gravity
    status: str
    sentence: str
    since: str


def of(row: Row, now: datetime, compared: str) -> Verdict:
    """The verdict of a row of `group_status`, and how it ``compared`` with an earlier day.

    Durations are those of the moment that was judged; only the date of a clock time depends on ``now``.
    """
    since = f"Since {time_zone.clock(row['since'], now)}, for {humanise.since(row['since'], row['as_of'])}."
    return Verdict(
        _GRAVITIES.get(row["status"], "info"),
        appearance.label(row["status"], row["reason"]),
        escaping.visible(row["sentence"]),
        f"{since} {compared}".rstrip(),
    )


def show(verdict: Verdict) -> None:
    """Draw the verdict, loud as it deserves."""
    _BOXES[verdict.gravity](
        f"**{verdict.status}** &nbsp; {escaping.markdown(verdict.sentence)}  \n{time_zone.markdown(verdict.since)}"
    )


def tiles_of(snapshot: GroupSnapshot, described: Row) -> list[tiles.Tile]:
    """The numbers of a group; ``described`` is how it consumes."""
    return [*_metrics(snapshot.group, snapshot.unknown_lag), *_consumption(described)]


def numbers(snapshot: GroupSnapshot, described: Row) -> None:
    """The numbers on one strip, and below it what would help and the findings. ``described`` is how the group
    consumes."""
    row = snapshot.group
    tiles.show(
        tiles_of(snapshot, described),
        name="group",
        missing_because=appearance.reason_in_words(row["reason"]) or "not in the newest samples",
    )
    if would_help := _what_would_help(row):
        st.markdown(f"**What would help:** {escaping.markdown(would_help)}")
    findings = [
        f"- {escaping.markdown(f['sentence'])}" + (f" *{escaping.markdown(f['remedy'])}*" if f["remedy"] else "")
        for f in not_told_by(row["sentence"], row["findings"])
    ]
    if findings:
        st.markdown("\n".join(findings))


def _what_would_help(row: Row) -> str | None:
    """What would help against the likely cause, if the sentence names one."""
    sentence, remedy = row["what_changed_sentence"], row["what_changed_remedy"]
    if not remedy or not row["sentence"].endswith(sentence):
        return None
    return str(remedy)


def _catch_up_help(row: Row) -> str:
    if row["seconds_to_catch_up"] is None:
        return "At today's rates; never if the lag is not shrinking."
    return f"Time until no partition has lag, at today's rates: {_interval(row, 'catch_up')}."


def _breach_help(row: Row) -> str:
    return (
        "Time until the oldest unread record of a partition exceeds the group's objective, at today's rates: "
        f"{_interval(row, 'breach')}."
    )


def _interval(row: Row, what: str) -> str:
    ends = humanise.interval(row[f"seconds_to_{what}_low"], row[f"seconds_to_{what}_high"])
    return f"{ends}, with 99 % confidence"


def _at_latest(row: Row) -> str:
    seconds = row["seconds_to_loss_at_latest"]
    return f"; at the latest in {humanise.duration(seconds)}, as whole segments are deleted" if seconds else ""


def _lost(row: Row) -> str:
    """How many, or between which numbers it lies."""
    low, high = humanise.count(row["lost_at_least"]), humanise.count(row["lost_at_most"])
    return low if low == high else f"{low} to {high}"


def _consumption(described: Row) -> list[tiles.Tile]:
    """How the group consumes, in the words of its system."""
    result: list[tiles.Tile] = []
    if described.get("type"):
        result.append(("Consumes as", escaping.visible(described["type"]), _TYPE_HELP))
    if described.get("source"):
        source = described["source"]
        result.append(
            ("Offsets from", escaping.visible(source), _SOURCE_HELP.get(source, "A source in `external_offsets`."))
        )
    filtered = [Subscription(**one) for one in described.get("subscriptions") or () if one["filter"] != ALL]
    if filtered:
        wanted = ", ".join(sorted({str(one) for one in filtered}))
        result.append(
            (
                "Subscribes to",
                escaping.visible(wanted),
                "Tags or an SQL expression. Lag counts all messages of the topic, including those filtered out.",
            )
        )
    if described.get("unacknowledged") is not None:
        result.append(
            (
                "Not acknowledged",
                humanise.count(described["unacknowledged"]),
                "Messages delivered to members that have not acknowledged them yet. Lag counts them as read.",
            )
        )
    return result


def _lag(row: Row, unknown_lag: int | None) -> tiles.Tile:
    """The lag; where no partition has a known status, that of the unknown ones, which the verdict names too."""
    if row["lag"] is None and unknown_lag is not None:
        return "Lag", humanise.count(unknown_lag), "Unread records; the status of every partition is unknown."
    return "Lag", humanise.count(row["lag"]), "Unread records; unknown partitions and ghosts left out."


def _metrics(row: Row, unknown_lag: int | None) -> list[tiles.Tile]:
    """Label, value and explanation; those that do not concern this group are left out."""
    result: list[tiles.Tile] = [
        (
            "Oldest unread",
            humanise.duration(row["lag_seconds"], lower_bound=bool(row["lag_seconds_is_lower_bound"])),
            "Age of the oldest unread record of any partition. ≥ marks a lower bound: it is older than the "
            "history kept.",
        ),
        _lag(row, unknown_lag),
        ("Written /s", humanise.rate(row["produce_rate_per_second"]), lag_columns.WRITTEN_HELP),
        ("Read /s", humanise.rate(row["consume_rate_per_second"]), lag_columns.READ_HELP),
    ]
    if unknown_lag and row["lag"] is not None:
        result.append(
            (
                "Lag, unknown status",
                humanise.count(unknown_lag),
                "Unread records of the partitions whose status is unknown. Lag and the other numbers leave them out.",
            )
        )
    # Of a lag that is usual for the group nothing is worked out, as there is nothing to catch up with.
    if lag_columns.seconds_to_catch_up(row) is not None:
        result.append(("Caught up in", lag_columns.catch_up(row), _catch_up_help(row)))
    if row["seconds_to_breach"] is not None:
        result.append(("Objective missed in", humanise.duration(row["seconds_to_breach"]), _breach_help(row)))
    if row["seconds_to_loss"] is not None:
        label, explained = (
            ("Commits expire in", "Time until the broker deletes the committed offsets of this group without members.")
            if row["loss_cause"] == LossCause.EXPIRY
            else ("Loss in", f"Time until retention deletes unread records, at the earliest{_at_latest(row)}.")
        )
        if is_bound := bool(row["seconds_to_loss_is_upper_bound"]):
            explained = (
                "≤ marks an upper bound: the oldest unread record is older than the history kept, so retention may "
                "delete it at any moment until then."
            )
        result.append((label, humanise.loss_in(row["seconds_to_loss"], upper_bound=is_bound), explained))
    if row["lost_at_least"]:
        result.append(
            ("Lost in all", _lost(row), "Records deleted before they were read, within 24 hours or still missing.")
        )
    idle = f" ({row['idle_members']} idle)" if row["idle_members"] else ""
    members = humanise.DASH if row["members"] is None else f"{row['members']:,}{idle}"
    result.append(("Members", members, "Idle members own no partition."))
    result.append(("Partitions", humanise.count(row["partitions"]), "Ghosts left out."))
    result.append(("State", escaping.visible(row["state"]) or humanise.DASH, "As reported by the group coordinator."))
    return result
