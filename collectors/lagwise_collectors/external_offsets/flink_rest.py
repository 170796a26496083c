"""Flink's REST interface: requests, and what can be wrong with their answers."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import httpx

from lagwise.config.external_offsets import FlinkJobs
from lagwise.platform.errors import ConfigError
from lagwise.platform.secrets import redact, resolve, resolve_address
from lagwise_collectors.external_offsets.model import OffsetSourceTrouble

#: Metrics asked for in one request: their names make the address, which servers and proxies limit.
_METRICS_AT_ONCE = 40
_UNAUTHORISED = (401, 403)
_OFFSET = re.compile(r"\d+\..*KafkaSourceReader\.topic\.(.+)\.partition\.(\d+)\.(currentOffset|committedOffset)")
#: More than the column takes is no number of slots.
_MAX_SLOTS = 2**31 - 1
#: What Flink says is the interval of a job without checkpoints: the largest long.
_NEVER = 2**63 - 1

#: Offsets by topic (as Flink spells it) and partition.
FlinkOffsets = dict[tuple[str, int], int]


class FlinkRest:
    """One Flink cluster. Every method raises OffsetSourceTrouble."""

    def __init__(self, settings: FlinkJobs) -> None:
        self._settings = settings
        self._client: httpx.Client | None = None

    def jobs(self) -> list[dict[str, Any]]:
        """All jobs that the cluster remembers: ``jid``, ``name``, ``state``, ``start-time``."""
        jobs = self.get("jobs/overview").get("jobs")
        if not isinstance(jobs, list) or not all(isinstance(job, dict) and "jid" in job for job in jobs):
            raise OffsetSourceTrouble("malformed", "what answers is not Flink's REST interface: it lists no jobs")
        return jobs

    def task_slots(self, within_seconds: float) -> tuple[int, int]:
        """Task slots of the cluster: all of them, and those that are free."""
        overview = self.get("overview", within_seconds=within_seconds)
        slots = overview if isinstance(overview, dict) else {}
        total, free = slots.get("slots-total"), slots.get("slots-available")
        if not (isinstance(total, int) and isinstance(free, int) and 0 <= free <= total <= _MAX_SLOTS):
            raise OffsetSourceTrouble("malformed", "the answer to overview has no task slots")
        return int(total), int(free)

    def get(self, path: str, *, absent: Any = None, within_seconds: float | None = None, **parameters: str) -> Any:
        """The JSON of an answer; ``absent`` where it is 404 and that means something. ``within_seconds`` is for answers
        that are not worth waiting for as long as for others."""
        try:
            assert self._client is not None, "requests are made inside connected()"
            timeout = self._settings.timeout_seconds if within_seconds is None else within_seconds
            answer = self._client.get(f"v1/{path}", params=parameters, timeout=timeout)
        except httpx.TimeoutException:
            raise OffsetSourceTrouble("timeout", f"no answer to {path}") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise OffsetSourceTrouble("unreachable", redact(str(error) or type(error).__name__)) from None
        if answer.status_code == 404 and absent is not None:
            return absent
        if answer.status_code != 200:
            kind = "refused" if answer.status_code in _UNAUTHORISED else "unreachable"
            kind = "missing" if answer.status_code == 404 else kind
            raise OffsetSourceTrouble(kind, f"the answer to {path} is {answer.status_code}")
        try:
            return answer.json()
        except (ValueError, RecursionError):
            raise OffsetSourceTrouble("malformed", f"the answer to {path} is not JSON") from None

    def checkpoint_interval_seconds(self, job: str) -> float | None:
        """How often the job is to make a checkpoint; None is never."""
        interval = self.get(f"jobs/{job}/checkpoints/config", absent={}).get("interval")
        return interval / 1000 if isinstance(interval, int) and 0 < interval < _NEVER else None

    def offsets(self, job: str, vertices: Sequence[str]) -> tuple[FlinkOffsets, FlinkOffsets]:
        """Offset of the last record that the sources handed on, and the committed ones (the next to be read), of
        partitions of which they are known.

        Flink fetches metrics when they are asked for, and has none the first time.
        """
        current: FlinkOffsets = {}
        committed: FlinkOffsets = {}
        for vertex in vertices:
            path = f"jobs/{job}/vertices/{vertex}/metrics"
            names = [name for name in (str(m.get("id")) for m in self.get(path)) if _OFFSET.fullmatch(name)]
            for start in range(0, len(names), _METRICS_AT_ONCE):
                wanted = ",".join(names[start : start + _METRICS_AT_ONCE])
                for metric in self.get(path, get=wanted):
                    _take(metric, current, committed)
        return current, committed

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Connections for the requests inside: none is held open between reads."""
        try:
            url = resolve_address(self._settings.url)
            headers = {"Authorization": f"Bearer {resolve(self._settings.token)}"} if self._settings.token else {}
            client = httpx.Client(
                base_url=url,
                headers=headers,
                follow_redirects=True,  # a standby sends on to the leader
                verify=not url.startswith("http://"),  # certificates take long to load, and plain HTTP uses none
            )
        except ConfigError as error:
            raise OffsetSourceTrouble("refused", str(error)) from None
        except httpx.InvalidURL:
            raise OffsetSourceTrouble("unreachable", "the address is not a URL") from None
        with client:
            self._client = client
            try:
                yield
            finally:
                self._client = None


def _take(metric: Mapping[str, Any], current: FlinkOffsets, committed: FlinkOffsets) -> None:
    match = _OFFSET.fullmatch(str(metric.get("id")))
    value = str(metric.get("value"))
    if match is None or not re.fullmatch(r"-?\d{1,19}", value):
        return
    topic, partition, what = match.groups()
    into = current if what == "currentOffset" else committed
    key = (topic, int(partition))
    # Both subtasks may report a partition that has moved from one to the other: its offsets only ever grow.
    into[key] = max(into.get(key, -1), int(value))
