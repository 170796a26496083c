"""What is known of a group, for ``lagwise size GROUP``: the numbers that nobody has to type in."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click

from lagwise.domain.humanise import count, duration
from lagwise.errors import LagwiseError
from lagwise.logs import clean
from lagwise.tables.capacity import CAPACITY
from lagwise.tables.store import Lake

#: Fields of a Workload that a group's row fills: the input that each is told with.
_INPUTS = {
    "t1_seconds": "t1_seconds",
    "t2_seconds": "t2_seconds",
    "cores": "cores",
    "partitions": "partitions",
    "hottest_share": "hottest_share",
    "lag": "lag",
}
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


def known_values(row: Mapping[str, Any], now: datetime) -> tuple[dict[str, Any], dict[str, str]]:
    """Fields of a Workload that the row knows, and where each comes from."""
    inputs = {i["name"]: i for i in row["inputs"]}
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name, source in _INPUTS.items():
        if row[name] is not None:
            values[name] = row[name]
            sources[name] = _source(inputs.get(source), now)
    peaks = {name: row[name] for name in ("peak_rate_per_second", "forecast_peak_rate_per_second") if row[name]}
    if peaks:
        highest = max(peaks, key=lambda name: peaks[name])
        values["peak_rate_per_second"] = peaks[highest]
        told = "peak_rate_per_second" if highest == "peak_rate_per_second" else "forecast_peak_per_second"
        sources["peak_rate_per_second"] = _source(inputs.get(told), now)
    if row["concurrency"] is not None:
        values |= {"concurrency": row["concurrency"], "max_threads_per_node": row["max_threads_per_node"]}
        sources |= dict.fromkeys(("concurrency", "max_threads_per_node"), "how the group runs now")
    if row["t2_seconds"] == 0.0 and "t2_seconds" not in inputs:
        # The time per message of a member as a whole: how much of it is CPU is not known, so cores do not matter.
        values["cores"] = values.get("cores", 1.0)
        whole = "time per message seen under saturation, taken as waiting"
        sources |= {"t1_seconds": whole, "t2_seconds": whole, "cores": "does not matter: T2 is not known"}
    return values, sources


def missing(values: Mapping[str, Any], options: Mapping[str, str], row: Mapping[str, Any]) -> click.UsageError | None:
    """What still has to be typed in; None where nothing has."""
    names = [options[name] for name in _REQUIRED if values.get(name) is None]
    if not names:
        return None
    return click.UsageError(
        f"not known of {clean(row['group'])}: {', '.join(names)}. {row['sentence']} Type them in, or let a consumer "
        "measure T1 and T2 with the probe and name the cores in `analysis.capacity.nodes`."
    )


def _source(told: Mapping[str, Any] | None, now: datetime) -> str:
    if told is None:
        return "measured"
    text = str(told["source"])
    if told["samples"] is not None:
        text += f", from {count(told['samples'])}"
    if told["measured_at"] is not None:
        text += f", {duration((now - told['measured_at']).total_seconds())} ago"
    return text
