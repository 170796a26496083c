"""The result of a demo: one JSON object, documented in docs/reference/cli.md, and one sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lagwise.domain.humanise import duration
from lagwise_app.demo.expectations import ExpectedGroup, ExpectedGroups
from lagwise_app.demo.memory_use import MemoryUse
from lagwise_app.demo.webhook_receiver import ReceivedAlert
from lagwise_app.supervisor.supervisor import ProcessStatus

_ALERT_KEYS = ("event", "severity", "kind", "group", "status", "summary")


@dataclass(frozen=True, slots=True)
class JudgedPast:
    """A past that the demo has made up, and how many seconds it took to write and to judge it."""

    cluster: str
    seconds: float


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """How a run of the demo went, as of its last step before everything was ended."""

    expected: ExpectedGroups
    changes: Sequence[Mapping[str, Any]]
    started_at: datetime
    run_seconds: float
    processes: Sequence[ProcessStatus]
    memory: MemoryUse
    alerts: Sequence[ReceivedAlert]
    #: The made-up cluster, and how long its past took to write and to judge; None without one.
    past: JudgedPast | None = None


def document(outcome: DemoOutcome, *, wall_seconds: float) -> dict[str, Any]:
    """The JSON object."""
    groups = [_group(group, outcome) for group in outcome.expected.groups]
    return {
        "ok": outcome.expected.all_agree,
        "summary": _summary(outcome),
        "started_at": outcome.started_at,
        "run_seconds": round(outcome.run_seconds, 1),
        "wall_seconds": round(wall_seconds, 1),
        "past": outcome.past and {"cluster": outcome.past.cluster, "seconds": round(outcome.past.seconds, 1)},
        "groups": groups,
        "alerts": [_alert(alert, outcome.started_at) for alert in outcome.alerts],
        "processes": [{"process": p.name, "state": str(p.state), "restarts": p.restarts} for p in outcome.processes],
        "memory_mib": {
            **{name: round(mib) for name, mib in sorted(outcome.memory.peak_mib.items())},
            "total": round(outcome.memory.total_mib),
        },
    }


def _group(group: ExpectedGroup, outcome: DemoOutcome) -> dict[str, Any]:
    row = group.row or {}
    changes = [
        {
            "status": change["after"],
            "reason": change["reason"],
            "at_seconds": round((change["at"] - outcome.started_at).total_seconds(), 1),
        }
        for change in outcome.changes
        if change["group"] == group.scenario.group
    ]
    return {
        "group": group.scenario.group,
        "expected": list(group.expected),
        "shown": row.get("status"),
        "reason": row.get("reason"),
        "agrees": group.agrees,
        "lag": row.get("lag"),
        "lag_seconds": row.get("lag_seconds"),
        "sentence": row.get("sentence"),
        "seen": changes,
        "first_right_seconds": _rounded(group.first_right_seconds),
        "right_since_seconds": _rounded(group.right_since_seconds),
        "story": group.scenario.story,
    }


def _alert(alert: ReceivedAlert, started_at: datetime) -> dict[str, Any]:
    return {
        "at_seconds": round((alert.at - started_at).total_seconds(), 1),
        "signed": alert.signed,
        **{key: alert.body.get(key) for key in _ALERT_KEYS},
    }


def _summary(outcome: DemoOutcome) -> str:
    groups, after = outcome.expected.groups, duration(int(outcome.run_seconds))
    text = f"{sum(g.agrees for g in groups)} of {len(groups)} groups have the expected status after {after}"
    wrong = [f"{g.scenario.group} is {_shown(g)} instead of {g.expected_words}" for g in groups if not g.agrees]
    return text + (": " + "; ".join(wrong) if wrong else "")


def _shown(group: ExpectedGroup) -> str:
    if group.row is None:
        return "not shown"
    return f"{group.row['status']}:{group.row['reason']}" if group.row["reason"] else str(group.row["status"])


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
