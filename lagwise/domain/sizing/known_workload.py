"""What the table ``capacity`` knows of a workload: numbers that nobody has to type in, and where each comes from."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from lagwise.domain.humanise import duration, plural

#: Fields of a Workload that a group's row fills under their own names, as its inputs are called, too.
_SAME = ("t1_seconds", "t2_seconds", "cores", "partitions", "hottest_share", "lag")
#: What an input's samples are.
_SAMPLES = {
    "t1_seconds": "message",
    "t2_seconds": "message",
    "threads_per_node": "message",
    "hottest_share": "record",
    "peak_rate_per_second": "minute",
    "forecast_peak_per_second": "hour",
    "observed_rate_per_second": "block",
}


def known_values(row: Mapping[str, Any], now: datetime) -> tuple[dict[str, Any], dict[str, str]]:
    """Fields of a Workload that the row knows, and where each comes from."""
    inputs = {i["name"]: i for i in row["inputs"]}
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name in _SAME:
        if row[name] is not None:
            values[name] = row[name]
            sources[name] = _source(inputs.get(name), now)
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


def _source(told: Mapping[str, Any] | None, now: datetime) -> str:
    if told is None:
        return "measured"
    text = str(told["source"])
    if told["samples"] is not None:
        text += f", from {plural(told['samples'], _SAMPLES.get(told['name'], 'sample'))}"
    if told["measured_at"] is not None:
        text += f", {duration((now - told['measured_at']).total_seconds())} ago"
    return text
