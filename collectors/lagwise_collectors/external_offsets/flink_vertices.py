"""What the vertices of a Flink job did between two looks, from the times and counts that Flink adds up."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lagwise_collectors.external_offsets.model import Vertex

#: Flink's names of the times that it adds up, in ms over all subtasks.
_BUSY, _BACKPRESSURED, _IDLE = (f"accumulated-{what}-time" for what in ("busy", "backpressured", "idle"))
_IN, _OUT = "read-records", "write-records"
_TIMES = (_BUSY, _BACKPRESSURED, _IDLE)
_COUNTED = (*_TIMES, _IN, _OUT)


class _Look(NamedTuple):
    at_ms: int
    sums: Mapping[str, float]


class Vertices:
    """The vertices of one job. A job that was started anew counts from 0: then there is no difference to tell."""

    def __init__(self) -> None:
        self._before: dict[str, _Look] = {}

    def look(self, now_ms: int, vertices: Iterable[Mapping[str, Any]]) -> tuple[Vertex, ...]:
        """What each did since the look before; ``now_ms`` is Flink's clock."""
        looks = {str(v["id"]): (v, _Look(now_ms, _sums(v.get("metrics") or {}))) for v in vertices}
        held = _slots_held([vertex for vertex, _ in looks.values()])
        found = tuple(
            self._vertex(vertex, held[_sharing(vertex)], now, self._before.get(key))
            for key, (vertex, now) in looks.items()
        )
        self._before = {key: now for key, (_, now) in looks.items()}
        return found

    def _vertex(self, vertex: Mapping[str, Any], slots_held: int, now: _Look, before: _Look | None) -> Vertex:
        parallelism = int(vertex["parallelism"])

        def grown(what: str) -> float | None:
            if before is None or what not in now.sums or what not in before.sums:
                return None
            difference = now.sums[what] - before.sums[what]
            return difference if difference >= 0 else None

        seconds = _seconds_told([grown(what) for what in _TIMES], parallelism)
        if seconds is None and before is not None:
            seconds = (now.at_ms - before.at_ms) / 1000

        def per_second(what: str) -> float | None:
            count = grown(what)
            return count / seconds if seconds and count is not None else None

        def share(what: str) -> float | None:
            rate = per_second(what)
            return None if rate is None or parallelism < 1 else min(1.0, rate / 1000 / parallelism)

        return Vertex(
            str(vertex["name"]),
            parallelism,
            slots_held,
            share(_BUSY),
            share(_BACKPRESSURED),
            share(_IDLE),
            per_second(_IN),
            per_second(_OUT),
        )


def _slots_held(vertices: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Task slots by slot sharing group: a slot takes one subtask of each vertex of the group."""
    held: dict[str, int] = {}
    for vertex in vertices:
        held[_sharing(vertex)] = max(held.get(_sharing(vertex), 0), int(vertex["parallelism"]))
    return held


def _sharing(vertex: Mapping[str, Any]) -> str:
    """The slot sharing group of a vertex. Older Flinks do not tell it: then all are taken to share, as by default."""
    return str(vertex.get("slotSharingGroupId", ""))


def _seconds_told(grown_ms: Sequence[float | None], parallelism: int) -> float | None:
    """How long the sums have gone on since the look before: a subtask is always busy, held back or idle.

    Flink fetches its metrics every ten seconds at most (`metrics.fetcher.update-interval`): between two looks there may
    be one fetch, two or none, and 15 s of a vertex that is always busy would by the clock be 10 s of work, or 20. None
    where a time is not told, as by old sources; 0 where nothing was fetched.
    """
    known = [ms for ms in grown_ms if ms is not None]
    return sum(known) / 1000 / parallelism if len(known) == len(grown_ms) and parallelism > 0 else None


def _sums(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The sums that are whole: some subtasks may not have reported yet, and old sources tell no busy time (NaN)."""
    found = {}
    for name in _COUNTED:
        value = metrics.get(name)
        if isinstance(value, int | float) and not math.isnan(value) and metrics.get(f"{name}-complete", True):
            found[name] = float(value)
    return found
