"""The group that ``lagwise size GROUP`` is asked about, and what is not known of it."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from lagwise.errors import LagwiseError
from lagwise.logs import clean
from lagwise.program import program
from lagwise.tables.capacity import CAPACITY
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


def not_known(row: Mapping[str, Any], options: Sequence[str]) -> click.UsageError:
    """That these still have to be typed in, why, and what would help."""
    return click.UsageError(
        f"not known of {clean(row['group'])}: {', '.join(options)}. {row['sentence']} Type them in, or let a consumer "
        "measure T1 and T2 with the probe, which tells the cores, too (where it does not: `analysis.capacity.nodes`)."
    )
