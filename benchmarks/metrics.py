"""What a scrape costs: the really started `lagwise serve`, over a lake of 1,000 groups of 100 partitions.

Beside it, in the same run, what the same text takes that Prometheus' client library writes for each scrape.
"""

import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil
import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from benchmarks.common import cpu_seconds, machine, options_parser
from lagwise.config import Config
from lagwise.tables.analysis import GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.rounds import TICKS
from lagwise.tables.store import Lake
from lagwise_app.server.metrics.documents import Document, MetricsWriter
from lagwise_app.supervisor.effective_settings import free_port
from tests.lake_rows import append, overwrite, row

#: What a scrape of 200,000 series must stay below, in seconds.
MUST_SECONDS = 0.3
_START_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Size:
    groups: int
    partitions: int


_LARGE, _SMALL = Size(1_000, 100), Size(20, 10)


def write_lake(folder: Path, size: Size, now: datetime) -> Lake:
    """A round's results: all that is read for Lagwise's own metrics."""
    lake = Lake(str(folder / "lake"))
    lake.create(GROUP_STATUS, PARTITION_STATUS, TICKS)
    groups = [f"payments-service-{g:04d}" for g in range(size.groups)]
    shared = {"cluster": "production", "as_of": now, "since": now, "status": "ok", "sentence": "It is ok."}
    numbers = {"lag": 1234, "lag_seconds": 5.678, "produce_rate_per_second": 87.5, "consume_rate_per_second": 86.25}
    counts = {"members": 4, "idle_members": 0, "partitions": size.partitions}
    of_groups = [row(GROUP_STATUS, group=group, **shared, **numbers, **counts) for group in groups]
    overwrite(lake, GROUP_STATUS, of_groups)
    partitions = [
        {**shared, "group": group, "topic": f"payments-events-{g % 50:02d}", "partition": p, "reasons": ["ok"],
         "lag": g * p, "lag_seconds": (g * p) / 87.5, "records_lost": 0}
        for g, group in enumerate(groups)
        for p in range(size.partitions)
    ]  # fmt: skip
    kept = [{key: value for key, value in one.items() if key != "sentence"} for one in partitions]
    overwrite(lake, PARTITION_STATUS, kept)
    append(lake, TICKS, [row(TICKS, started_at=now, finished_at=now)])
    return lake


@contextmanager
def served(folder: Path) -> Iterator[tuple[int, psutil.Process]]:
    """The server as a process of its own, once it has read the lake: its port, and the process."""
    port, settings = free_port(), folder / "lagwise.yaml"
    tree = {"data": str(folder), "server": {"port": port, "metrics": {"stale_after_seconds": 3600}}}
    settings.write_text(yaml.safe_dump(tree), encoding="utf-8")
    command = [sys.executable, "-m", "lagwise", "--config", str(settings), "serve"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while _scraped(port)[0] != 200:
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("the server does not start")
            time.sleep(0.1)
        yield port, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(20)


def _scraped(port: int, headers: Mapping[str, str] | None = None) -> tuple[int | None, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", "/metrics", headers=dict(headers or {}))
        answer = connection.getresponse()
        return answer.status, answer.read()
    except OSError:
        return None, b""
    finally:
        connection.close()


def scrapes(port: int, process: psutil.Process, headers: Mapping[str, str], times: int) -> dict[str, float]:
    """Wall time of scrapes, and CPU of the server for each."""
    _scraped(port, headers)
    waits, used, size = [], cpu_seconds(process), 0
    for _ in range(times):
        at = time.perf_counter()
        status, body = _scraped(port, headers)
        waits.append(time.perf_counter() - at)
        if status != 200:
            raise SystemExit(f"a scrape was answered with {status}")
        size = len(body)
    return {
        "median_seconds": round(statistics.median(waits), 4),
        "max_seconds": round(max(waits), 4),
        "cpu_seconds": round((cpu_seconds(process) - used) / times, 4),
        "megabytes": round(size / 1e6, 2),
    }


def timed(work: Callable[[], object], times: int) -> dict[str, float]:
    """Median wall time, and mean CPU of this process."""
    walls, used = [], time.process_time()
    for _ in range(times):
        at = time.perf_counter()
        work()
        walls.append(time.perf_counter() - at)
    return {
        "median_seconds": round(statistics.median(walls), 4),
        "cpu_seconds": round((time.process_time() - used) / times, 4),
    }


class _Parsed(Collector):
    """The families of a text, as a collector of the client library hands them out."""

    def __init__(self, text: str) -> None:
        self.families = list(text_string_to_metric_families(text))

    def collect(self) -> Iterator:  # type: ignore[type-arg]  # the library's own type
        return iter(self.families)


def measure(size: Size, times: int) -> dict[str, object]:
    """All figures."""
    around, now = machine(), datetime.now(UTC)
    with tempfile.TemporaryDirectory(prefix="lagwise-metrics-") as made:
        lake = write_lake(Path(made), size, now)
        groups = lake.read(GROUP_STATUS).to_pylist()
        config = Config.model_validate({"server": {"metrics": {"stale_after_seconds": 3600}}})
        writer = MetricsWriter(lake, config)

        def round_() -> None:
            overwrite(lake, GROUP_STATUS, groups)
            append(lake, TICKS, [row(TICKS, started_at=now, finished_at=now)])
            writer.refresh(now)

        round_()
        written = timed(round_, times)
        assert writer.documents is not None
        document = writer.documents.by_key["", ""]
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Parsed(document.text.decode()))
        compressing = timed(lambda: Document(document.text).compressed(), times)
        library = timed(lambda: generate_latest(registry), min(times, 5))
        with served(Path(made)) as (port, process):
            plain = scrapes(port, process, {}, times)
            compressed = scrapes(port, process, {"Accept-Encoding": "gzip"}, times)
            memory = process.memory_info().rss / 2**20
    scrape = max(plain["median_seconds"], compressed["median_seconds"])
    return {
        "machine": around,
        "series": writer.documents.samples,
        "scrape": plain,
        "scrape_with_gzip": compressed,
        "reading_and_writing_a_round": written,
        "compressing_a_round": compressing,
        "client_library": library,
        "library_to_scrape": round(library["median_seconds"] / scrape, 1),
        "library_to_round": round(library["median_seconds"] / written["median_seconds"], 1),
        "memory_mib": round(memory),
        "must": {"scrape_seconds": MUST_SECONDS, "is_met": scrape < MUST_SECONDS},
    }


def main() -> int:
    options = options_parser(__doc__, "few groups, few scrapes: does it run at all?").parse_args()
    found = measure(*((_SMALL, 3) if options.small else (_LARGE, 21)))
    print(json.dumps(found, indent=2))
    return 0 if options.small or found["must"] == {"scrape_seconds": MUST_SECONDS, "is_met": True} else 1


if __name__ == "__main__":
    sys.exit(main())
