"""The group that ``lagwise size GROUP`` is asked about."""

from collections.abc import Mapping
from typing import Any

from lagwise.domain.capacity.observed import ObservedCapacity, Undecided
from lagwise.domain.capacity.observed_words import load_test_of
from lagwise.platform.errors import LagwiseError
from lagwise.platform.logs import clean
from lagwise.platform.program import program
from lagwise.tables.capacity import CAPACITY, OBSERVED_CAPACITY
from lagwise.tables.store import Lake


def row_of(lake: Lake, group: str, cluster: str | None, topic: str | None) -> dict[str, Any]:
    """The row of `capacity` that is meant. Raises LagwiseError where there is none, more than one, or no
    such lake."""
    rows = [
        row
        for row in lake.read(CAPACITY).to_pylist()
        if row["group"] == group and cluster in (None, row["cluster"]) and topic in (None, row["topic"])
    ]
    if not rows and lake.open(CAPACITY) is None:
        raise LagwiseError(
            f"there is no lake with capacity in it at {lake.uri}: `{program()} up` fills one; --data or the settings' "
            "`data` name another folder. Without GROUP all numbers can be typed in"
        )
    if not rows:
        about = f"group {clean(group)!r}" + (f" on topic {clean(topic)!r}" if topic else "")
        raise LagwiseError(
            f"nothing is known of the capacity of {about} yet; `{program()} status` lists the groups, and the analysis "
            "works capacity out a few minutes after it has seen one. Without GROUP all numbers can be typed in"
        )
    if len({row["cluster"] for row in rows}) > 1:
        names = ", ".join(sorted({row["cluster"] for row in rows}))
        raise LagwiseError(f"there is a group {clean(group)!r} in {clean(names)}: name one with --cluster")
    if len(rows) > 1:
        names = ", ".join(sorted(row["topic"] for row in rows))
        raise LagwiseError(f"group {clean(group)!r} reads {clean(names)}: name one with --topic")
    return dict(rows[0])


def load_test_for(lake: Lake, row: Mapping[str, Any], peak_per_second: float | None, target: float) -> str | None:
    """How to see whether the group can do what such a peak needs; None where it is known what it can do."""
    if peak_per_second is None:
        return None
    found = lake.query(
        """select reason, at_least_per_second, missing_seconds from observed_capacity
        where cluster = ? and "group" = ? and topic = ? and member is null""",
        [row["cluster"], row["group"], row["topic"]],
        over=[OBSERVED_CAPACITY],
    ).to_pylist()
    seen = None
    if found:
        reason, at_least, missing = found[0].values()
        seen = ObservedCapacity(
            reason=Undecided(reason) if reason else None,
            at_least_per_second=at_least,
            missing_seconds=missing or 0.0,
        )
    is_known = row["capacity_high_per_second"] is not None
    return load_test_of(is_known, seen, row["produce_rate_per_second"], peak_per_second / target)
