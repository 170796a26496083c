"""What an answer of the scaling signal costs: CPU of the really started `lagwise scaling`, asked over HTTP.

A lake of 1,000 groups and 100,000 group-partitions in which the analysis does a round, and the collector writes a
sample, every 15 s; each group is asked twice a minute, as KEDA does by default, spread evenly. The CPU is that of the
whole process, user and system: noticing and reading what is new, and the HTTP server, are in it; starting is not.
Every group is asked once before the measurement begins.
"""

import http.client
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path

import psutil
import yaml

from benchmarks.common import cpu_seconds, options_parser
from benchmarks.pages_cast import CLUSTER, INTERVAL_SECONDS, Size, back
from benchmarks.pages_lake import PagesLake
from lagwise.tables.capacity import CAPACITY
from lagwise.tables.membership import ASSIGNMENTS
from lagwise.tables.raw import GROUPS
from lagwise.tables.store import Lake
from lagwise_app.supervisor.effective_settings import free_port

#: What must be reached.
CPU_MS = 2.0
_ASKED_EVERY_SECONDS = 30.0
_WATCHED_MINUTES = 25
_START_SECONDS = 30.0
_MEMBERS = 4
_SMALL = Size(groups=40, partitions=10, topics=4, minutes=0, hours=0, day_minutes=_WATCHED_MINUTES)
_LARGE = Size(minutes=0, hours=0, day_minutes=_WATCHED_MINUTES)


class ScalingLake:
    """The lake of the pages, with what a signal rests on besides: members all along, and what one of them can do."""

    def __init__(self, folder: Path, size: Size, now: datetime) -> None:
        self._lake = Lake(str(folder / "lake"))
        self._pages = PagesLake(self._lake, size, now)
        self._groups = [(f"group-{g:04d}", f"topic-{g % size.topics:03d}") for g in range(size.groups)]
        self._pages.write()
        for at in back(now, INTERVAL_SECONDS, _WATCHED_MINUTES * 4):
            self._sample(at)
        shared = {"cluster": CLUSTER, "as_of": now}
        known = {"partitions": size.partitions, "members": _MEMBERS, "nodes": _MEMBERS, "member_rate_per_second": 250.0}
        words = {"verdict": "enough", "sentence": "", "unit": "node", "capacity_source": "probe", "confidence": "high"}
        words["size_by"] = "objective"
        self._lake.append(
            CAPACITY,
            CAPACITY.from_rows([
                {**shared, **known, **words, "group": g, "topic": t, "hottest_share": 0.02, "inputs": []}
                for g, t in self._groups
            ]),
        )  # fmt: skip
        dealt = {"assignor": "range", "members": _MEMBERS, "idle_members": 0, "alternatives": [], "sentences": []}
        self._lake.append(
            ASSIGNMENTS, ASSIGNMENTS.from_rows([{**shared, **dealt, "group": g} for g, _ in self._groups])
        )

    def tick(self, now: datetime) -> None:
        """A sample and a round."""
        self._sample(now)
        self._pages.tick(now)

    def _sample(self, at: datetime) -> None:
        sample = {"sample_id": f"{at:%H%M%S}", "cluster": CLUSTER, "sampled_at": at}
        described = {"state": "Stable", "type": "classic", "assignor": "range", "member_count": _MEMBERS}
        self._lake.append(GROUPS, GROUPS.from_rows([{**sample, **described, "group": g} for g, _ in self._groups]))


def write_rounds(folder: str, size: Size, ready: Event) -> None:
    """In a process of its own, so that writing is no part of the measurement: a round every interval, until killed."""
    lake = ScalingLake(Path(folder), size, datetime.now(UTC) - timedelta(seconds=1))
    ready.set()
    due = time.monotonic()
    while True:
        due += INTERVAL_SECONDS
        time.sleep(max(0.0, due - time.monotonic()))
        lake.tick(datetime.now(UTC))


@contextmanager
def served(folder: Path) -> Iterator[tuple[int, psutil.Process]]:
    """The endpoint as a process of its own: its port, and the process."""
    port, settings = free_port(), folder / "lagwise.yaml"
    settings.write_text(yaml.safe_dump({"data": str(folder), "scaling": {"port": port}}), encoding="utf-8")
    command = [sys.executable, "-m", "lagwise", "--config", str(settings), "scaling"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while _status(port, "/healthz") != 200:
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("the endpoint does not start")
            time.sleep(0.1)
        yield port, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(20)


def _status(port: int, path: str) -> int | None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    except OSError:
        return None
    finally:
        connection.close()


def measure(size: Size, seconds: float) -> dict[str, object]:
    """All figures. Each question has a connection of its own, which is the dearest way."""
    groups = [f"/scaling/{CLUSTER}/group-{g:04d}" for g in range(size.groups)]
    context = get_context("spawn")
    ready = context.Event()
    with tempfile.TemporaryDirectory(prefix="lagwise-scaling-") as made:
        writer = context.Process(target=write_rounds, args=(made, size, ready))
        writer.start()
        try:
            ready.wait()
            with served(Path(made)) as (port, process):
                for path in groups:
                    _status(port, path)
                answers: Counter[int | None] = Counter()
                waits: list[float] = []
                used, began = cpu_seconds(process), time.monotonic()
                due, step, asked = began, _ASKED_EVERY_SECONDS / len(groups), 0
                while time.monotonic() - began < seconds:
                    time.sleep(max(0.0, due - time.monotonic()))
                    due += step
                    at = time.monotonic()
                    answers[_status(port, groups[asked % len(groups)])] += 1
                    waits.append(time.monotonic() - at)
                    asked += 1
                used, took = cpu_seconds(process) - used, time.monotonic() - began
                memory = process.memory_info().rss / 2**20
        finally:
            writer.terminate()
            writer.join()
    waits.sort()
    places = {"median": asked // 2, "99 %": -1 - asked // 100, "worst": -1}
    return {
        "size": {"groups": size.groups, "group_partitions": size.pairs},
        "asked_each_second": {"wanted": round(len(groups) / _ASKED_EVERY_SECONDS, 1), "done": round(asked / took, 1)},
        "answers_by_status": {str(status): count for status, count in sorted(answers.items(), key=str)},
        "cpu_ms_per_answer": {"measured": round(1000 * used / asked, 2), "must": CPU_MS},
        "cores": round(used / took, 3),
        "answer_ms": {name: round(1000 * waits[at], 1) for name, at in places.items()},
        "memory_mib": round(memory),
    }


def main() -> None:
    parser = options_parser(__doc__, "few groups, a few seconds: does it run at all?")
    parser.add_argument("--seconds", type=float, help="how long to ask (default: 120, small: 5)")
    options = parser.parse_args()
    size, seconds = (_SMALL, 5.0) if options.small else (_LARGE, 120.0)
    print(json.dumps(measure(size, options.seconds or seconds), indent=2))


if __name__ == "__main__":
    main()
