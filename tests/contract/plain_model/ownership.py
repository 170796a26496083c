"""Who owns what, whether that is settled, and how long the commits of a group without members are kept."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from lagwise.domain.verdicts.windows import WINDOWS_SECONDS
from lagwise.domain.vocabulary import REBALANCING_STATES, SHARE, WITHOUT_PROTOCOL, EventKind, GroupState
from tests.contract.plain_model.history import Clock, clock_from, whole_micros
from tests.contract.plain_model.records import Row, Rows


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """What the latest sample says of a group, and how settled it has been; see ``group_facts`` of the columns. Times by
    the clock of the evaluation."""

    state: str | None = None
    type: str | None = None
    members: int | None = None
    error: str | None = None
    assigned_topics: frozenset[str] = frozenset()
    idle_members: int = 0
    rebalancing_now: bool = False
    samples_of_unrest: int = 0
    samples: int = 0
    settled_seconds: float | None = None
    empty_since: float | None = None
    checkpointed_at: float | None = None
    checkpoint_interval_seconds: float | None = None


def group_facts(rows: Rows, sample_id: str, as_of: datetime) -> dict[str, GroupFacts]:
    """Facts of each group that the latest sample shows."""
    clock = clock_from(as_of)

    def is_recent(at: datetime) -> bool:
        return 0 <= clock(as_of) - clock(at) < WINDOWS_SECONDS[0]

    members: dict[str, list[Row]] = {}
    for member in rows.get("members", ()):
        if member["sample_id"] == sample_id:
            members.setdefault(member["group"], []).append(member)
    events = [e for e in rows.get("events", ()) if e["group"] is not None and e["at"] <= as_of]
    samples: dict[str, list[Row]] = {}
    for row in sorted(rows.get("groups", ()), key=lambda row: row["sampled_at"]):
        if is_recent(row["sampled_at"]):
            samples.setdefault(row["group"], []).append(row)
    facts = {}
    for group, its_samples in samples.items():
        latest = its_samples[-1]
        if latest["sample_id"] != sample_id:
            continue
        unsettled = [row["state"] in REBALANCING_STATES for row in its_samples]
        its_events = [e for e in events if e["group"] == group]
        rebalances = [e["at"] for e in its_events if e["kind"] == EventKind.REBALANCE and is_recent(e["at"])]
        unrest = [*rebalances, *(row["sampled_at"] for row in its_samples if row["state"] in REBALANCING_STATES)]
        owned = members.get(group, [])
        facts[group] = GroupFacts(
            state=latest["state"],
            type=latest.get("type"),
            members=latest.get("member_count"),
            error=latest.get("error"),
            assigned_topics=frozenset(a["topic"] for m in owned for a in m["assignment"]),
            idle_members=sum(m["assigned_partitions"] == 0 for m in owned),
            rebalancing_now=all(unsettled[-2:]),
            samples_of_unrest=min(sum(unsettled) + len(rebalances), len(its_samples)),
            samples=len(its_samples),
            settled_seconds=whole_micros(clock(as_of) - max(map(clock, unrest))) if unrest else None,
            empty_since=_empty_since(latest["state"], its_events, clock),
            checkpointed_at=_at(clock, latest.get("checkpointed_at")),
            checkpoint_interval_seconds=latest.get("checkpoint_interval_seconds"),
        )
    return facts


def _at(clock: Clock, at: datetime | None) -> float | None:
    return None if at is None else clock(at)


def _empty_since(state: str | None, events: Iterable[Row], clock: Clock) -> float | None:
    changes = [e for e in events if e["kind"] == EventKind.STATE_CHANGED]
    if state != GroupState.EMPTY or not changes:
        return None
    last = max(changes, key=lambda e: (e["at"], e["after"] or ""))
    return clock(last["at"]) if last["after"] == GroupState.EMPTY else None


def seconds_to_expiry(
    facts: GroupFacts,
    committed_since: float,
    now: float,
    retention_seconds: float | None,
    *,
    committed_at: float | None = None,
) -> float | None:
    """Time until the broker forgets the committed offsets of a group without members (KIP-211); None is never."""
    if facts.state != GroupState.EMPTY or facts.type == SHARE or retention_seconds is None:
        return None
    if facts.type in WITHOUT_PROTOCOL:
        return None if committed_at is None else max(0.0, retention_seconds - (now - committed_at))
    since = committed_at if committed_at is not None else committed_since
    counted_from = max(since, facts.empty_since if facts.empty_since is not None else since)
    return max(0.0, retention_seconds - (now - counted_from))
