"""The demo's last word: one JSON object, documented in docs/reference/cli.md, and one sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lagwise.domain.humanise import duration
from lagwise_app.demo.expectations import ExpectedGroup, Watch
from lagwise_app.demo.memory_use import MemoryUse
from lagwise_app.demo.webhook_receiver import Received
from lagwise_app.supervisor.supervisor import ProcessStatus

_ALERT_KEYS = ("event", "severity", "kind", "group", "status", "summary")


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """How a run of the demo went, as of its last look before everything was ended."""

    watch: Watch
    changes: Sequence[Mapping[str, Any]]
    started_at: datetime
    run_seconds: float
    parts: Sequence[ProcessStatus]
    memory: MemoryUse
    alerts: Sequence[Received]


def document(outcome: DemoOutcome, *, wall_seconds: float) -> dict[str, Any]:
    """The JSON object."""
    groups = [_group(group, outcome) for group in outcome.watch.groups]
    return {
        "ok": outcome.watch.all_agree,
        "summary": _summary(outcome),
        "started_at": outcome.started_at,
        "run_seconds": round(outcome.run_seconds, 1),
        "wall_seconds": round(wall_seconds, 1),
        "groups": groups,
        "alerts": [_alert(alert, outcome.started_at) for alert in outcome.alerts],
        "parts": [{"part": p.name, "state": str(p.state), "restarts": p.restarts} for p in outcome.parts],
        "memory_mib": {
            **{part: round(mib) for part, mib in sorted(outcome.memory.peak_mib.items())},
            "total": round(outcome.memory.total_mib),
        },
    }


def _group(group: ExpectedGroup, outcome: DemoOutcome) -> dict[str, Any]:
    row = group.row or {}
    seen = [
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
        "seen": seen,
        "first_right_seconds": _rounded(group.first_right_seconds),
        "right_since_seconds": _rounded(group.right_since_seconds),
        "story": group.scenario.story,
    }


def _alert(alert: Received, started_at: datetime) -> dict[str, Any]:
    return {
        "at_seconds": round((alert.at - started_at).total_seconds(), 1),
        "signed": alert.signed,
        **{key: alert.body.get(key) for key in _ALERT_KEYS},
    }


def _summary(outcome: DemoOutcome) -> str:
    groups, after = outcome.watch.groups, duration(int(outcome.run_seconds))
    text = f"{sum(g.agrees for g in groups)} of {len(groups)} groups are shown as expected after {after}"
    wrong = [f"{g.scenario.group} is {_shown(g)}, not {' or '.join(g.expected)}" for g in _wrong(outcome.watch)]
    return text + (": " + "; ".join(wrong) if wrong else "")


def _wrong(watch: Watch) -> list[ExpectedGroup]:
    return [group for group in watch.groups if not group.agrees]


def _shown(group: ExpectedGroup) -> str:
    if group.row is None:
        return "not shown at all"
    return f"{group.row['status']}:{group.row['reason']}" if group.row["reason"] else str(group.row["status"])


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
