"""Minutes and hours are written once, and again where late samples have opened them."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from lagwise.tables.minutes import WATERMARK_MINUTES
from lagwise.tables.store import Lake
from lagwise_spark.jobs.write import replace_spans

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def minutes(cluster: str, start: datetime, until: datetime, high: int) -> pa.Table:
    count = (until - start) // timedelta(minutes=1)
    ats = [start + timedelta(minutes=number) for number in range(count)]
    return WATERMARK_MINUTES.from_rows(
        {
            "cluster": cluster, "topic": "orders", "partition": 0, "minute": at, "first_at": at, "last_at": at,
            "first_high_watermark": high, "last_high_watermark": high, "last_log_start": 0, "points": [],
        }
        for at in ats
    )  # fmt: skip


@pytest.mark.parametrize("name", ["east", "it's"])
def test_only_a_clusters_own_minutes_are_replaced(lake: Lake, name: str) -> None:
    def write(cluster: str, first: int, last: int, high: int) -> None:
        start, until = NOON + timedelta(minutes=first), NOON + timedelta(minutes=last)
        replace_spans(lake, WATERMARK_MINUTES, {cluster: (start, until)}, minutes(cluster, start, until, high))

    def seen() -> list[tuple[str, int, int]]:
        rows = lake.read(WATERMARK_MINUTES).to_pylist()
        return sorted((r["cluster"], r["minute"].minute, r["first_high_watermark"]) for r in rows)

    write(name, 0, 2, 1)
    [first] = lake.files(WATERMARK_MINUTES)
    write("west", 0, 2, 1)
    write(name, 2, 3, 1)
    assert first in lake.files(WATERMARK_MINUTES), "what another cluster has at the same time is not rewritten"
    assert seen() == sorted([(name, 0, 1), (name, 1, 1), (name, 2, 1), ("west", 0, 1), ("west", 1, 1)])
    write(name, 1, 3, 2)
    assert seen() == sorted([(name, 0, 1), (name, 1, 2), (name, 2, 2), ("west", 0, 1), ("west", 1, 1)])
