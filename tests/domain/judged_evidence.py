"""Evidence on single group-partitions as columns, and the verdicts on them. Nothing was lost within a day."""

from collections.abc import Sequence
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import numpy as np

from lagwise.domain.lag_forecast import Forecast
from lagwise.domain.verdicts.columns import MICROS, NULL, Array
from lagwise.domain.verdicts.evidence import has_left_topic, unread
from lagwise.domain.verdicts.ownership import Names, described_by
from lagwise.domain.verdicts.status import judge
from tests.contract.plain_model.records import Evidence, Jumps, Policy, Trend
from tests.traces.judged import in_plain_values

#: The moment of all of it, in microseconds.
AS_OF = 86_400 * MICROS
#: Evidence that other columns are made of.
_OTHERS = ("readable", "recreated", "deleted_by_request", "trend", "longer", "longest", "earlier",
           "at_troughs", "at_recent_troughs", "log_start_jumps", "lost_of_day", "commits_seen", "state", "type",
           "owner", "topic_is_assigned", "group_is_assigned")  # fmt: skip


def judged(cases: Sequence[tuple[Evidence, Policy]]) -> list[SimpleNamespace]:
    """The verdicts, in plain values."""
    rows = columns_of(cases)
    found = in_plain_values({**rows, **judge(rows)})
    for one in found:
        for what in ("catch_up", "breach"):
            ends = [getattr(one, f"seconds_to_{what}{end}") for end in ("", "_low", "_high")]
            setattr(one, f"to_{what}", None if ends[0] is None else Forecast(*ends))
    return found


def columns_of(cases: Sequence[tuple[Evidence, Policy]]) -> dict[str, Array]:
    evidence = [e for e, _ in cases]

    def column(values: Sequence[Any], *, whole: bool = False) -> Array:
        if whole:
            return np.array([NULL if value is None else value for value in values], np.int64)
        return np.array(values, bool if isinstance(values[0], bool) else np.float64)

    rows = {
        f.name: column([getattr(e, f.name) for e in evidence], whole=str(f.type) in ("int", "int | None"))
        for f in fields(Evidence)
        if f.name not in _OTHERS
    }
    rows |= {f.name: column([getattr(policy, f.name) for _, policy in cases]) for f in fields(Policy)}
    for prefix, trends in (
        ("", [e.trend for e in evidence]),
        ("longer_", [e.longer for e in evidence]),
        ("longest_", [e.longest or e.longer for e in evidence]),
        ("earlier_", [e.earlier for e in evidence]),
        ("trough_", [e.at_troughs for e in evidence]),
        ("recent_trough_", [e.at_recent_troughs for e in evidence]),
    ):
        ends = np.array([trend or Trend(np.nan, np.nan, np.nan) for trend in trends], np.float64).T
        rows |= dict(
            zip((f"{prefix}slope", f"{prefix or 'slope_'}low", f"{prefix or 'slope_'}high"), ends, strict=True)
        )
    jumps = [e.log_start_jumps or Jumps(NULL, NULL) for e in evidence]
    states, state = _numbered([e.state for e in evidence])
    types, type_ = _numbered([e.type for e in evidence])
    rows |= described_by(Names(states, types, ()), state, type_)
    assigned = [np.array([getattr(e, f"{of}_is_assigned") for e in evidence], bool) for of in ("topic", "group")]
    nothing = np.zeros(len(cases), np.int64)
    rows |= {
        "as_of": np.full(len(cases), AS_OF),
        "moves": column([e.commits_seen for e in evidence], whole=True),
        "owner": _numbered([e.owner for e in evidence])[1],
        "is_readable": column([e.readable for e in evidence]),
        "is_recreated": column([e.recreated for e in evidence]),
        "is_deleted_by_request": column([e.deleted_by_request for e in evidence]),
        "has_left_topic": has_left_topic(rows["is_reading"], *assigned),
        "jump_records": column([one.records for one in jumps], whole=True),
        "jump_high_watermark": column([one.high_watermark for one in jumps], whole=True),
        "rewound_at": np.array([_ago(e.rewound_seconds) for e in evidence], np.int64),
        **dict.fromkeys(("lost_at_least", "lost_at_most"), nothing),
        **dict.fromkeys(("first_lost_at", "last_lost_at"), nothing + NULL),
    }
    return rows | unread(rows)


def _numbered(names: Sequence[str | None]) -> tuple[list[str], Array]:
    known = sorted({name for name in names if name is not None})
    return known, np.array([-1 if name is None else known.index(name) for name in names])


def _ago(seconds: float | None) -> int:
    return NULL if seconds is None else AS_OF - round(seconds * MICROS)
