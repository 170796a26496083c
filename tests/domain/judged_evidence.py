"""Evidence on single group-partitions as columns, and the verdicts on them."""

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
_OTHERS = ("readable", "recreated", "deleted_by_request", "trend", "longer", "log_start_jumps", "lost_of_day",
           "commits_seen", "state", "type", "owner", "topic_is_assigned", "group_is_assigned")  # fmt: skip


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
    for name, trends in (("slope", [e.trend for e in evidence]), ("longer", [e.longer for e in evidence])):
        known = np.array([trend or Trend(np.nan, np.nan, np.nan) for trend in trends], np.float64)
        names = (name if name == "slope" else "longer_slope", f"{name}_low", f"{name}_high")
        rows |= dict(zip(names, known.T, strict=True))
    jumps = [e.log_start_jumps or Jumps(NULL, NULL) for e in evidence]
    names = Names(*(sorted({value for e in evidence if (value := getattr(e, name))}) for name in ("state", "type")), ())
    state, type_ = (
        np.array([-1 if (value := getattr(e, name)) is None else words.index(value) for e in evidence])
        for name, words in (("state", names.states), ("type", names.types))
    )
    rows |= described_by(names, state, type_)
    assigned = [np.array([getattr(e, f"{of}_is_assigned") for e in evidence], bool) for of in ("topic", "group")]
    lost = [e.lost_of_day for e in evidence]
    times = [[lost_.first_seconds, lost_.last_seconds] for lost_ in lost]
    first_lost, last_lost = np.array([[_ago(seconds) for seconds in its] for its in times], np.int64).T
    rows |= {
        "as_of": np.full(len(cases), AS_OF),
        "moves": column([e.commits_seen for e in evidence], whole=True),
        "owner": np.array([-1 if e.owner is None else 0 for e in evidence]),
        "is_readable": column([e.readable for e in evidence]),
        "is_recreated": column([e.recreated for e in evidence]),
        "is_deleted_by_request": column([e.deleted_by_request for e in evidence]),
        "has_left_topic": has_left_topic(rows["is_reading"], *assigned),
        "jump_records": column([one.records for one in jumps], whole=True),
        "jump_high_watermark": column([one.high_watermark for one in jumps], whole=True),
        "rewound_at": np.array([_ago(e.rewound_seconds) for e in evidence], np.int64),
        "lost_at_least": column([one.at_least for one in lost], whole=True),
        "lost_at_most": column([one.at_most for one in lost], whole=True),
        "first_lost_at": first_lost,
        "last_lost_at": last_lost,
    }
    return rows | unread(rows)


def _ago(seconds: float | None) -> int:
    return NULL if seconds is None else AS_OF - round(seconds * MICROS)
