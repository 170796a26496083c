"""Rates and busy shares of a Flink job's vertices between two samples, from the totals that Flink counts up."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lagwise_collectors.external_offsets.model import FlinkVertex

#: Flink's names of accumulated times, in ms, summed over all subtasks.
_BUSY, _BACKPRESSURED, _IDLE = (f"accumulated-{what}-time" for what in ("busy", "backpressured", "idle"))
_IN, _OUT = "read-records", "write-records"
_TIMES = (_BUSY, _BACKPRESSURED, _IDLE)
_COUNTED = (*_TIMES, _IN, _OUT)


class _Totals(NamedTuple):
    at_ms: int
    sums: Mapping[str, float]


class VertexRates:
    """The vertices of one job. A restarted job counts from 0: its rates are then unknown for one sample."""

    def __init__(self) -> None:
        self._before: dict[str, _Totals] = {}

    def rates(self, now_ms: int, vertices: Iterable[Mapping[str, Any]]) -> tuple[FlinkVertex, ...]:
        """Every vertex, with its rates since the previous call; ``now_ms`` is Flink's clock."""
        totals = {str(v["id"]): (v, _Totals(now_ms, _sums(v.get("metrics") or {}))) for v in vertices}
        held = _slots_held([vertex for vertex, _ in totals.values()])
        found = tuple(
            self._vertex(vertex, held[_sharing(vertex)], now, self._before.get(key))
            for key, (vertex, now) in totals.items()
        )
        self._before = {key: now for key, (_, now) in totals.items()}
        return found

    def _vertex(self, vertex: Mapping[str, Any], slots_held: int, now: _Totals, before: _Totals | None) -> FlinkVertex:
        parallelism = int(vertex["parallelism"])

        def increase(name: str) -> float | None:
            if before is None or name not in now.sums or name not in before.sums:
                return None
            difference = now.sums[name] - before.sums[name]
            return difference if difference >= 0 else None

        seconds = _seconds_counted([increase(what) for what in _TIMES], parallelism)
        if seconds is None and before is not None:
            seconds = (now.at_ms - before.at_ms) / 1000

        def per_second(what: str) -> float | None:
            count = increase(what)
            return count / seconds if seconds and count is not None else None

        def share(what: str) -> float | None:
            rate = per_second(what)
            return None if rate is None or parallelism < 1 else min(1.0, rate / 1000 / parallelism)

        return FlinkVertex(
            name=str(vertex["name"]),
            parallelism=parallelism,
            slots_held=slots_held,
            busy_share=share(_BUSY),
            backpressured_share=share(_BACKPRESSURED),
            idle_share=share(_IDLE),
            records_in_per_second=per_second(_IN),
            records_out_per_second=per_second(_OUT),
        )


def _slots_held(vertices: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Task slots by slot sharing group: a slot takes one subtask of each vertex of the group."""
    held: dict[str, int] = {}
    for vertex in vertices:
        held[_sharing(vertex)] = max(held.get(_sharing(vertex), 0), int(vertex["parallelism"]))
    return held


def _sharing(vertex: Mapping[str, Any]) -> str:
    """The slot sharing group of a vertex. Older versions of Flink do not report it: then all vertices share one."""
    return str(vertex.get("slotSharingGroupId", ""))


def _seconds_counted(increases_ms: Sequence[float | None], parallelism: int) -> float | None:
    """Seconds that the sums cover since the previous sample: a subtask is always busy, backpressured or idle.

    Flink fetches its metrics every ten seconds at most (`metrics.fetcher.update-interval`): between two samples there
    may be one fetch, two or none, and 15 s of a vertex that is always busy would by the clock be 10 s of work, or 20.
    None where a time is not reported, as by old sources; 0 where nothing was fetched.
    """
    known = [ms for ms in increases_ms if ms is not None]
    return sum(known) / 1000 / parallelism if len(known) == len(increases_ms) and parallelism > 0 else None


def _sums(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The complete sums: some subtasks may not have reported yet, and old sources have no busy time (NaN)."""
    found = {}
    for name in _COUNTED:
        value = metrics.get(name)
        if isinstance(value, int | float) and not math.isnan(value) and metrics.get(f"{name}-complete", True):
            found[name] = float(value)
    return found
