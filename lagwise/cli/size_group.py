"""The group that ``lagwise size GROUP`` is asked about, and what is not known of it."""

from collections.abc import Mapping
from typing import Any

import click

from lagwise.errors import LagwiseError
from lagwise.logs import clean
from lagwise.tables.capacity import CAPACITY
from lagwise.tables.store import Lake

_REQUIRED = ("t1_seconds", "t2_seconds", "cores", "peak_rate_per_second", "partitions")


def row_of(lake: Lake, group: str, cluster: str | None, topic: str | None) -> dict[str, Any]:
    """The row of `capacity` that is meant. Raises LagwiseError where there is none, or more than one."""
    rows = [
        row
        for row in lake.read(CAPACITY).to_pylist()
        if row["group"] == group and cluster in (None, row["cluster"]) and topic in (None, row["topic"])
    ]
    if not rows:
        about = f"group {clean(group)!r}" + (f" on topic {clean(topic)!r}" if topic else "")
        raise LagwiseError(
            f"nothing is known of the capacity of {about} yet; `lagwise status` lists the groups, and the analysis "
            "works capacity out a few minutes after it has seen one. Without GROUP all numbers can be typed in"
        )
    if len({row["cluster"] for row in rows}) > 1:
        names = ", ".join(sorted({row["cluster"] for row in rows}))
        raise LagwiseError(f"there is a group {clean(group)!r} in {clean(names)}: name one with --cluster")
    if len(rows) > 1:
        names = ", ".join(sorted(row["topic"] for row in rows))
        raise LagwiseError(f"group {clean(group)!r} reads {clean(names)}: name one with --topic")
    return dict(rows[0])


def missing(values: Mapping[str, Any], options: Mapping[str, str], row: Mapping[str, Any]) -> click.UsageError | None:
    """What still has to be typed in; None where nothing has."""
    names = [options[name] for name in _REQUIRED if values.get(name) is None]
    if not names:
        return None
    return click.UsageError(
        f"not known of {clean(row['group'])}: {', '.join(names)}. {row['sentence']} Type them in, or let a consumer "
        "measure T1 and T2 with the probe and name the cores in `analysis.capacity.nodes`."
    )
