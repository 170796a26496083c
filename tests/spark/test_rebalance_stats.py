"""Hours of rebalances from the events of the lake: the driver's part of a round, which needs no JVM."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lagwise.tables.membership import REBALANCE_STATS
from lagwise.tables.minutes import MINUTES
from lagwise.tables.raw import EVENTS, GROUPS, MEMBERS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_spark.jobs.progress import News
from lagwise_spark.jobs.rebalances import _MOST_EXPOSURES, sum_up

pytestmark = pytest.mark.thorough

START = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
A, B = "billing-1 (10.0.0.1)", "billing-2 (10.0.0.2)"


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def news(minutes: float, offsets_retention_seconds: float | None = None) -> list[News]:
    return [
        News(
            cluster="shop",
            system="kafka",
            latest_id="s1",
            as_of=at(minutes),
            latest_from=at(minutes) - timedelta(minutes=10),
            interval_seconds=15.0,
            group_partitions=4,
            offsets_retention_seconds=offsets_retention_seconds,
            new_samples=1,
            read_until=at(minutes),
            open_from=at(minutes),
            hours_from=at(minutes),
            observed_from=at(minutes),
        )
    ]


def append(lake: Lake, table: Table, *rows: dict[str, Any]) -> None:
    lake.append(table, table.from_rows(rows))


def rebalance(minutes: float, group: str = "billing", **facts: Any) -> dict[str, Any]:
    return {
        "cluster": "shop",
        "at": at(minutes),
        "kind": "rebalance",
        "group": group,
        "source": "offsets_topic",
        **facts,
    }


def left(minutes: float, who: str, **facts: Any) -> dict[str, Any]:
    return rebalance(minutes, cause="member_left", left=[who], **facts)


def stats(lake: Lake) -> list[dict[str, Any]]:
    rows = lake.read(REBALANCE_STATS).to_pylist()
    return sorted(rows, key=lambda row: (row["hour"], row["group"]))


def version(lake: Lake) -> int:
    delta = lake.open(REBALANCE_STATS)
    assert delta is not None
    return int(delta.version())


def test_each_hour_of_each_group_is_one_row(lake: Lake) -> None:
    append(
        lake,
        EVENTS,
        left(1, A, duration_seconds=2.5, partitions_moved=3),
        left(59, B, duration_seconds=1.5, partitions_moved=1),
        left(61, A),
        rebalance(61, "other", cause="member_joined", joined=[A], members=1, source="samples"),
        {**rebalance(2), "kind": "commit_rewound"},
    )
    assert sum_up(lake, news(62)) == 3
    first, second, other = stats(lake)
    assert (first["group"], first["hour"], first["rebalances"], first["last_at"]) == ("billing", at(0), 2, at(59))
    assert (first["downtime_seconds"], first["partitions_moved"], first["left"], first["exact"]) == (4.0, 4, 2, True)
    assert (second["group"], second["hour"], second["rebalances"]) == ("billing", at(60), 1)
    assert (other["group"], other["exact"], other["cause"], other["downtime_seconds"]) == (
        "other",
        False,
        "start",
        None,
    )


def test_a_second_run_writes_nothing_and_late_events_are_added(lake: Lake) -> None:
    append(lake, EVENTS, left(1, A))
    assert sum_up(lake, news(5)) == 1
    before = version(lake)
    assert sum_up(lake, news(6)) == 0
    assert version(lake) == before
    # Late, and before the other: it was read from the offsets topic after a restart.
    append(lake, EVENTS, left(0.5, A))
    assert sum_up(lake, news(62)) == 1
    [row] = stats(lake)
    assert (row["rebalances"], row["churning"], row["cause"]) == (2, [A], "churn")


def test_hours_that_are_over_stay_as_they_were(lake: Lake) -> None:
    append(lake, EVENTS, left(1, A))
    sum_up(lake, news(5))
    append(lake, EVENTS, left(301, B))
    assert sum_up(lake, news(302)) == 1
    assert [row["hour"] for row in stats(lake)] == [at(0), at(300)]


def test_a_rebalance_over_the_hour_counts_in_the_next_and_the_hour_before_is_rewritten(lake: Lake) -> None:
    append(lake, EVENTS, left(20, B, duration_seconds=1.0), left(59.8, A, duration_seconds=2.0, members=2))
    sum_up(lake, news(60))
    assert [row["sentence"] for row in stats(lake)] == ["The group was scaled to 2: 2 members fewer than before."]
    append(lake, EVENTS, rebalance(60.2, cause="member_joined", joined=[A], members=3, duration_seconds=4.0))
    assert sum_up(lake, news(61)) == 2
    reported = [(row["rebalances"], row["downtime_seconds"], row["left"], row["joined"]) for row in stats(lake)]
    assert reported == [(2, 3.0, 2, 0), (1, 4.0, 0, 1)], "counted where they happened"
    assert [row["cause"] for row in stats(lake)] == ["scaling", "restart"]
    assert sum_up(lake, news(62)) == 0


def test_a_rebalance_over_midnight_counts_on_the_next_day(lake: Lake) -> None:
    midnight = 21 * 60.0
    append(lake, EVENTS, left(midnight - 0.2, A), rebalance(midnight + 0.2, cause="member_joined", joined=[A]))
    sum_up(lake, news(midnight + 1))
    assert [row["cause"] for row in stats(lake)] == ["continued", "restart"]
    append(lake, EVENTS, rebalance(midnight + 150, cause="rejoined"))
    sum_up(lake, news(midnight + 151))
    assert [row["cause"] for row in stats(lake)] == ["continued", "restart", "rejoins"]


def test_what_a_killed_collector_reported_twice_counts_once(lake: Lake) -> None:
    append(lake, EVENTS, left(1, A, generation=7))
    append(lake, EVENTS, left(1, A, generation=7))
    sum_up(lake, news(5))
    assert stats(lake)[0]["rebalances"] == 1


def test_the_remedy_suits_the_group(lake: Lake) -> None:
    sample = {"sample_id": "s1", "cluster": "shop", "sampled_at": at(5), "group": "billing"}
    append(lake, GROUPS, {**sample, "type": "classic", "assignor": "range"})
    member = {**sample, "member_id": "m", "assignment": [], "assigned_partitions": 0}
    append(lake, MEMBERS, {**member, "static_instance_id": "one"})
    joined = {"joined": [A], "cause": "member_joined"}
    append(lake, EVENTS, left(1, A), rebalance(2, **joined))
    sum_up(lake, news(5))
    assert stats(lake)[0]["remedy"] == (
        "To make it cheaper: cooperative-sticky instead of range, or the consumer protocol of KIP-848, lets the "
        "others keep reading."
    )


class TestExposure:
    """Read but not committed is part of what is unread, and no more than can be read in that time."""

    @staticmethod
    def minutes(lake: Lake, lag: int, committed_per_minute: int) -> None:
        rows = []
        for partition in (0, 1):
            for minute in range(10):
                begin = 1_000 + minute * committed_per_minute
                rows.append(
                    {
                        "cluster": "shop",
                        "group": "billing",
                        "topic": "orders",
                        "partition": partition,
                        "minute": at(minute),
                        "samples": 4,
                        "first_at": at(minute),
                        "last_at": at(minute) + timedelta(seconds=50),
                        "first_committed": begin,
                        "last_committed": begin + committed_per_minute,
                        "max_lag": lag,
                        "steps": 3,
                        "moves": 3,
                    }
                )
        append(lake, MINUTES, *rows)

    def test_of_more_than_are_looked_up_no_bound_is_claimed(self, lake: Lake) -> None:
        self.minutes(lake, lag=500, committed_per_minute=100)
        append(lake, EVENTS, *(left(2 + n / 60, A, generation=n) for n in range(_MOST_EXPOSURES)))
        sum_up(lake, news(8))
        assert stats(lake)[0]["reread_records_at_most"] == _MOST_EXPOSURES * 1_000
        append(lake, EVENTS, left(1, B))
        sum_up(lake, news(9))
        assert stats(lake)[0]["reread_records_at_most"] is None

    def test_it_stays_known_when_only_the_hour_after_it_changes(self, lake: Lake) -> None:
        self.minutes(lake, lag=500, committed_per_minute=100)
        append(lake, EVENTS, left(9, A))
        sum_up(lake, news(10))
        append(lake, EVENTS, *(left(61 + n / 60, B, generation=n) for n in range(_MOST_EXPOSURES + 1)))
        sum_up(lake, news(65))
        assert [row["reread_records_at_most"] for row in stats(lake)] == [1_000, None]

    @pytest.mark.parametrize(
        ("why", "event", "records"),
        [
            ("all that was unread, where nothing more is known", {}, 1_000),
            ("of the partitions that moved", {"moved": [{"topic": "orders", "partitions": [1]}]}, 500),
            ("as much as can be read in 5 s at 2 a second", {"uncommitted_seconds": 5.0}, 20),
            ("never more than was unread", {"uncommitted_seconds": 100_000.0}, 1_000),
            ("of a partition nothing is known of", {"moved": [{"topic": "orders", "partitions": [7]}]}, None),
        ],
    )
    def test_it_is_bounded(self, lake: Lake, why: str, event: dict[str, Any], records: int | None) -> None:
        self.minutes(lake, lag=500, committed_per_minute=100)
        append(lake, EVENTS, left(9.5, A, **event))
        sum_up(lake, news(11))
        assert stats(lake)[0]["reread_records_at_most"] == records, why
