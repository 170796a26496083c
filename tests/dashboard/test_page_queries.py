"""The SQL of the pages on topics, retention and rebalances, and of the history of partitions: what it answers."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from lagwise.links.parameters import PartitionMeasure
from lagwise.tables.analysis import GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.capacity import TOPIC_HOURS
from lagwise.tables.membership import REBALANCE_STATS
from lagwise.tables.minutes import FIVE_MINUTES, HOURS, MINUTES, WATERMARK_MINUTES
from lagwise.tables.raw import EVENTS, GROUPS, MEMBERS, WATERMARKS
from lagwise.tables.store import Lake
from lagwise_dashboard.pages.topic import topic_partitions
from lagwise_dashboard.queries import base, group, overview, partition_history, rebalances, retention, topic
from lagwise_dashboard.queries.listing import ListQuery
from tests.dashboard import lakes
from tests.dashboard.lakes import Scene
from tests.dashboard.stories import GROUPS_OF_THE_DEMO, HOSTILE_NAMES

pytestmark = pytest.mark.thorough

NOW = datetime(2026, 11, 21, 12, 0, 5, tzinfo=UTC)
HOUR = timedelta(hours=1)
Row = dict[str, Any]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return lakes.write_to(tmp_path_factory.mktemp("page_queries"), Scene(NOW))


@pytest.fixture
def bare(tmp_path: Path) -> Lake:
    """A lake whose tables are empty."""
    return lakes.write_to(tmp_path, Scene(NOW, stories=()))


def _as_of() -> datetime:
    return Scene(NOW).as_of


# Topics


def test_who_comes_nearest_to_losing_records_is_the_first_reader(bare: Lake) -> None:
    def partition(name: str, number: int, **what: Any) -> Row:
        shared = {"cluster": "prod", "topic": "t", "as_of": NOW, "since": NOW, "status": "ok", "reasons": ["ok"]}
        return {**shared, "group": name, "partition": number, "records_lost": 0, **what}

    lakes.overwrite(
        bare,
        PARTITION_STATUS,
        [
            partition("calm", 0, lag=5, lag_seconds=1.0, owner="a"),
            partition("calm", 1, lag=7, lag_seconds=3.0, owner="b"),
            partition("late", 0, status="at_risk", lag=9, lag_seconds=2.0, seconds_to_loss=50.0, loss_cause="deletion"),
            partition("late", 1, lag=None, lag_seconds=None, status="unknown", reason="no_commit"),
            partition("ghostly", 0, status="ghost", lag=99, lag_seconds=9.0, seconds_to_loss=1.0),
        ],
    )
    late, calm, ghost = topic.readers(bare, "prod", "t")
    assert (late["group"], late["status"], late["seconds_to_loss"], late["loss_cause"]) == (
        "late",
        "at_risk",
        50.0,
        "deletion",
    )
    assert late["lag"] == 9, "a partition of unknown lag adds nothing, and takes nothing away"
    assert (calm["lag"], calm["lag_seconds"], calm["slowest_partition"], calm["members"]) == (12, 3.0, 1, 2)
    assert ghost["group"] == "ghostly", "ghosts come last, however near a loss"


def test_a_partition_has_its_rate_its_leader_and_its_replicas(stored: Lake) -> None:
    clicks = next(s for s in GROUPS_OF_THE_DEMO if s.topic == "clicks")
    found = {r["partition"]: r for r in topic.partitions(stored, "prod", "clicks", _as_of(), 2)}
    assert len(found) == clicks.partitions
    for number, row in found.items():
        assert row["rate_per_second"] == pytest.approx(clicks.rate * clicks.share_of(number), rel=0.01)
    assert list(found) == sorted(found, key=lambda p: (-found[p]["rate_per_second"], p)), "the hottest first"
    assert found[19]["leader"] is None, "the newest sample counts, though it knows no leader"
    assert found[1]["isr"] == found[1]["replicas"][:2]
    assert found[7]["slowest_group"] == "clickstream-archive"


def test_no_rate_is_made_up_for_one_sample_nor_for_a_log_that_went_back(bare: Lake) -> None:
    def sample(partition: int, seconds: int, high: int | None, topic_id: str = "a") -> Row:
        at = NOW - timedelta(seconds=seconds)
        who = {"sample_id": f"{seconds}", "cluster": "prod", "sampled_at": at, "topic": "t", "partition": partition}
        return {**who, "high_watermark": high, "topic_id": topic_id}

    lakes.append(
        bare,
        WATERMARKS,
        [
            sample(0, 15, 500),
            *(sample(1, s, 1000 - s) for s in (15, 30)),
            *(sample(2, s, 100 + s) for s in (15, 30)),
            *(sample(3, s, 1000 - s, topic_id=f"of {s}") for s in (15, 30)),
            sample(4, 15, None),
            sample(4, 30, 900),
        ],
    )
    found = {r["partition"]: r["rate_per_second"] for r in topic.partitions(bare, "prod", "t", NOW, None)}
    assert found == {0: None, 1: 1.0, 2: None, 3: None, 4: None}


def test_how_replicas_are_is_a_sign_and_words(bare: Lake) -> None:
    three = {"leader": 1, "isr": [1, 2, 3], "replicas": [1, 2, 3]}
    rows: list[Row] = [
        three | {"error": "unreadable"},
        three | {"leader": None},
        three | {"isr": [1]},
        three | {"isr": [1, 2]},
        three,
        three | {"isr": None, "replicas": None},
        three | {"isr": None},
    ]
    who = {"sample_id": "15", "cluster": "prod", "sampled_at": NOW - timedelta(seconds=15), "topic": "t"}
    lakes.append(bare, WATERMARKS, [who | row | {"partition": i} for i, row in enumerate(rows)])

    def said(min_isr: int | None, order: str) -> list[str]:
        found = topic.partitions(bare, "prod", "t", NOW, min_isr, ListQuery(order=order))
        return [topic_partitions.replica_state_words(row) for row in found]

    assert said(2, "number") == [
        "✕ unreadable: unreadable",
        "✕ no leader",
        "✕ too few in sync",
        "▲ not all in sync",
        "✓ in sync",
        "✓ readable",
        "▲ not all in sync",
    ]
    assert said(None, "number")[2] == "▲ not all in sync", "too few is not known"
    assert said(2, "replicas")[-1] == said(2, "-replicas")[0] == "✓ in sync", "sorted by how bad it is"
    together = topic.totals(bare, "prod", "t", NOW, 2)
    assert (together.partitions, together.out_of_sync, together.replicated) == (7, 5, True)
    assert [(r["leader"], r["partitions"]) for r in together.leaders] == [(1, 6)]


def test_a_queue_is_called_as_rocketmq_calls_it(bare: Lake) -> None:
    def sample(topic: str, partition: int, seconds: int, label: str | None) -> Row:
        who = {"sample_id": f"{seconds}", "cluster": "prod", "sampled_at": NOW - timedelta(seconds=seconds)}
        return {**who, "topic": topic, "partition": partition, "label": label, "high_watermark": 500, "leader": 1}

    marks = [sample("t", 10_003, 15, "broker-b q3"), sample("t", 0, 15, None), sample("other", 0, 15, "broker-a q0")]
    lakes.append(bare, WATERMARKS, marks)
    assert topic.partition_labels(bare, "prod", ("t", "none"), NOW) == {("t", 10_003): "broker-b q3"}
    assert topic.partition_labels(bare, "' or 1=1 --", ("t",), NOW) == {}
    rows = topic.partitions(bare, "prod", "t", NOW, None)
    assert {r["partition"]: r["label"] for r in rows} == {0: None, 10_003: "broker-b q3"}


def test_how_a_group_consumes_comes_from_its_newest_sample(bare: Lake) -> None:
    def sample(seconds: int, **values: object) -> Row:
        at = NOW - timedelta(seconds=seconds)
        return {"sample_id": f"{seconds}", "cluster": "prod", "sampled_at": at, "group": "g", **values}

    wanted = [{"topic": "orders", "filter": "paid", "members": 2, "of": 2}]
    newest = sample(15, type="pop", unacknowledged=40, subscriptions=wanted)
    lakes.append(bare, GROUPS, [sample(30, type="concurrent"), newest])
    assert group.description(bare, "prod", "g", NOW) == {
        "type": "pop",
        "source": None,
        "unacknowledged": 40,
        "subscriptions": wanted,
    }
    assert group.description(bare, "prod", "nobody", NOW) == {}


@pytest.mark.parametrize(("since", "points"), [(HOUR, 60), (timedelta(minutes=15), 15)])
def test_what_was_written_is_the_sum_of_all_partitions(stored: Lake, since: timedelta, points: int) -> None:
    clicks = next(s for s in GROUPS_OF_THE_DEMO if s.topic == "clicks")
    found = topic.written(stored, "prod", "clicks", NOW - since, NOW).to_pylist()
    assert points - 2 <= len(found) <= points
    total = clicks.rate * sum(clicks.share_of(p) for p in range(clicks.partitions))
    assert all(row["rate_per_second"] == pytest.approx(total, rel=0.02) for row in found)
    assert all(row["at"] <= NOW for row in found)


def test_a_week_is_shown_by_the_hour(bare: Lake) -> None:
    hours = [NOW.replace(minute=0, second=0) - i * HOUR for i in range(1, 30)]
    rows = [
        {
            "cluster": "prod", "topic": "t", "hour": hour, "partitions": 1, "minutes": 60, "records": 7200,
            "seconds": 3600.0, "max_rate_per_second": 3.0, "max_at": hour,
            "minute_rates_per_second": [None] * 60, "partition_records": [],
        }
        for hour in hours
    ]  # fmt: skip
    lakes.append(bare, TOPIC_HOURS, rows)
    found = topic.written(bare, "prod", "t", NOW - timedelta(days=7), NOW).to_pylist()
    assert len(found) == len(hours)
    assert {row["rate_per_second"] for row in found} == {2.0}


# Retention


def test_what_is_lost_first_comes_first_and_the_horizon_is_kept(stored: Lake) -> None:
    rows = retention.losses(stored, None, "", None)
    assert [r["group"] for r in rows] == ["payments-settlement", "clickstream-archive", "invoice-mailer"]
    assert [r["seconds_to_loss"] for r in rows] == [0.0, 3120.0, 600_000.0]
    assert [r["retention_ms"] for r in rows] == [604_800_000, 7_200_000, 604_800_000]
    assert rows[0]["partitions"] == 2, "only those that lose something"
    within = retention.losses(stored, None, "", 3600.0)
    assert [r["group"] for r in within] == ["payments-settlement", "clickstream-archive"]
    counts = retention.counts(stored, None, "", 3600.0)
    assert (counts.now, counts.soon, counts.later) == (1, 1, 1)
    assert not retention.losses(stored, "staging", "", None)
    assert [r["group"] for r in retention.losses(stored, None, "CLICKS", None)] == ["clickstream-archive"]


def test_the_soonest_partition_speaks_for_its_topic(bare: Lake) -> None:
    def partition(number: int, seconds: float, **what: Any) -> Row:
        shared = {"cluster": "prod", "group": "g", "topic": "t", "as_of": NOW, "since": NOW, "status": "at_risk"}
        return {
            **shared, "partition": number, "reasons": [], "records_lost": 0, "lag": 10, "seconds_to_loss": seconds,
            "loss_cause": "deletion", **what,
        }  # fmt: skip

    lakes.overwrite(
        bare,
        PARTITION_STATUS,
        [
            partition(0, 900.0, seconds_to_loss_at_latest=5000.0, seconds_to_loss_is_upper_bound=True),
            partition(1, 600.0),
            partition(2, 700.0, loss_cause="expiry"),
            partition(3, 1.0, status="ghost"),
        ],
    )
    deletion, expiry = retention.losses(bare, None, "", None)
    assert (deletion["partition"], deletion["seconds_to_loss"], deletion["partitions"]) == (1, 600.0, 2)
    assert deletion["seconds_to_loss_at_latest"] is None, "of that partition it is not known"
    assert not deletion["seconds_to_loss_is_upper_bound"]
    assert (expiry["loss_cause"], expiry["partitions"]) == ("expiry", 1)


# Rebalances


def _sampled(lake: Lake, owned: dict[int, dict[str, list[int]]]) -> None:
    """Samples of one group: by seconds before NOW, what each member owned."""
    for seconds, members in owned.items():
        sample = {"sample_id": f"s{seconds}", "cluster": "prod", "sampled_at": NOW - timedelta(seconds=seconds)}
        lakes.append(lake, GROUPS, [{**sample, "group": "g", "state": "Stable", "member_count": len(members)}])
        rows = [
            {
                **sample, "group": "g", "member_id": name, "client_id": name, "host": "/h",
                "assignment": [{"topic": "t", "partitions": numbers}] if numbers else [],
                "assigned_partitions": len(numbers),
            }
            for name, numbers in members.items()
        ]  # fmt: skip
        lakes.append(lake, MEMBERS, rows)


def _seconds(rows: list[Row], member: str) -> list[tuple[int, int, int]]:
    """Beginning and end of a member's periods, in seconds before NOW, and how many partitions it owned."""

    def ago(at: datetime) -> int:
        return int((NOW - at).total_seconds())

    its = [r for r in rows if r["member_id"] == member]
    return sorted(((ago(r["from_at"]), ago(r["to_at"]), r["assigned_partitions"]) for r in its), reverse=True)


def test_a_stretch_ends_where_a_member_is_gone_or_owns_something_else(bare: Lake) -> None:
    _sampled(
        bare,
        {
            75: {"a": [0], "b": [1]},
            60: {"a": [0], "b": [1]},
            45: {"a": [0, 1]},
            30: {"a": [0], "b": [1]},
            15: {"a": [0], "b": []},
        },
    )
    found = rebalances.periods(bare, "prod", "g", NOW - HOUR, NOW)
    assert _seconds(found, "a") == [(75, 45, 1), (45, 30, 2), (30, 15, 1)], "one bar goes on where the other ends"
    assert _seconds(found, "b") == [(75, 60, 1), (30, 15, 1), (15, 15, 0)], "nobody was there in between"


def test_no_stretch_bridges_a_gap_in_the_samples(bare: Lake) -> None:
    _sampled(bare, {s: {"a": [0]} for s in (600, 585, 570, 30, 15)})
    found = rebalances.periods(bare, "prod", "g", NOW - HOUR, NOW)
    assert _seconds(found, "a") == [(600, 570, 1), (30, 15, 1)]


def _rebalanced(lake: Lake, *seconds_ago: float, **what: Any) -> None:
    rows = [
        {
            "cluster": "prod",
            "group": "g",
            "kind": "rebalance",
            "at": NOW - timedelta(seconds=s),
            "generation": n,
            **what,
        }
        for n, s in enumerate(seconds_ago)
    ]
    lakes.append(lake, EVENTS, rows)


def test_rebalances_are_counted_in_bins_that_stay_where_they_are(bare: Lake) -> None:
    _rebalanced(bare, 3_590, 130, 126, 125, joined=["a (h)"], left=["a (h)", "b (h)"], cause="member_left")
    _rebalanced(bare, 3, joined=None, left=None, cause=None)
    _rebalanced(bare, 3, joined=None, left=None, cause=None)  # reported twice
    for until in (NOW, NOW + timedelta(seconds=20)):
        found = rebalances.rates(bare, "prod", "g", until - HOUR, until)
        assert [(f"{r['at']:%H:%M:%S}", r["rebalances"], r["joined"], r["left"], r["cause"]) for r in found] == [
            ("11:00:00", 1, 1, 2, "member_left"),
            ("11:57:00", 2, 2, 4, "member_left"),
            ("11:58:00", 1, 1, 2, "member_left"),
            ("12:00:00", 1, 0, 0, None),
        ], "also where the span begins or ends within a bin"


def test_members_beyond_those_that_a_shortened_list_names_are_counted(bare: Lake) -> None:
    _rebalanced(bare, 60, joined=["a (h)", "b (h)", "… and 70 more"], left=["… and 5 more (h)"], cause="member_joined")
    (found,) = rebalances.rates(bare, "prod", "g", NOW - HOUR, NOW)
    assert (found["joined"], found["left"]) == (72, 1), "nobody is called as the shortening is: a host follows a name"


@pytest.mark.parametrize(
    ("span", "width"),
    [
        (timedelta(minutes=1), timedelta(seconds=1)),
        (timedelta(minutes=15), timedelta(seconds=10)),
        (HOUR, timedelta(minutes=1)),
        (6 * HOUR, timedelta(minutes=5)),
        (24 * HOUR, timedelta(minutes=15)),
        (timedelta(days=7), timedelta(hours=2)),
        (timedelta(days=90), timedelta(days=1)),
    ],
)
def test_the_bins_suit_the_span(span: timedelta, width: timedelta) -> None:
    assert rebalances.bin_width(NOW - span, NOW) == width
    assert 24 <= span / width <= 100


def test_the_last_rebalance_is_that_of_the_group_and_of_the_time(bare: Lake) -> None:
    def hour(name: str, ago: int) -> Row:
        at = NOW - ago * HOUR
        return {
            "cluster": "prod", "group": name, "hour": at.replace(minute=0, second=0), "rebalances": 1, "exact": True,
            "joined": 1, "left": 2, "churning": [], "is_storm": False, "cause": "deploy", "sentence": "A deploy.",
            "last_at": at, "events": 1,
        }  # fmt: skip

    lakes.append(bare, REBALANCE_STATS, [hour("g", 30), hour("g", 50), hour("other", 2)])
    assert rebalances.last_at(bare, "prod", "g", NOW - 168 * HOUR) == NOW - 30 * HOUR
    assert rebalances.last_at(bare, "prod", "g", NOW - 24 * HOUR) is None
    assert rebalances.last_at(bare, "staging", "g", NOW - 168 * HOUR) is None


def test_storms_come_first_and_a_continued_hour_does_not_hide_the_cause(bare: Lake) -> None:
    def hour(name: str, ago: int, **what: Any) -> Row:
        at = NOW.replace(minute=0, second=0) - ago * HOUR
        return {
            "cluster": "prod", "group": name, "hour": at, "rebalances": 1, "exact": True, "joined": 1, "left": 2,
            "downtime_seconds": 5.0, "churning": [], "is_storm": False, "cause": "deploy", "sentence": "A deploy.",
            "last_at": at + timedelta(minutes=30), "events": 1, **what,
        }  # fmt: skip

    lakes.append(
        bare,
        REBALANCE_STATS,
        [
            hour("long", 1, downtime_seconds=500.0),
            hour("stormy", 2, is_storm=True, sentence="They crash."),
            hour("stormy", 1, cause="continued", sentence="See the next hour."),
            hour("old", 9),
        ],
    )
    first, second = rebalances.groups(bare, None, NOW - 4 * HOUR, NOW)
    assert (first["group"], first["storm_hours"], first["rebalances"], first["stormy"]) == ("stormy", 1, 2, 1)
    assert first["sentence"] == "They crash."
    assert (second["group"], second["downtime_seconds"]) == ("long", 500.0)
    assert rebalances.groups(bare, None, NOW - 4 * HOUR, NOW, ListQuery("STORM"))[0]["group"] == "stormy"
    assert not rebalances.groups(bare, "no such cluster", NOW - 4 * HOUR, NOW)


# The history of partitions


@pytest.mark.parametrize(
    ("table", "span", "step"),
    [(MINUTES, HOUR, 60), (FIVE_MINUTES, timedelta(hours=24), 300), (HOURS, timedelta(days=7), 3600)],
)
@pytest.mark.parametrize("partitions", [30, partition_history.MAX_ROWS, partition_history.MAX_ROWS + 1, 1000])
def test_a_heat_map_has_distinct_rows_and_leaves_no_partition_out(
    bare: Lake, table: Any, span: timedelta, step: int, partitions: int
) -> None:
    at = NOW.replace(minute=0, second=0)
    rows = [
        {
            "cluster": "prod", "group": "g", "topic": "t", "partition": p, "minute": at - timedelta(seconds=step * i),
            "samples": 4, "max_lag": p * 10 + (i == 3), "long_pauses": 0,
        }
        for p in range(partitions)
        for i in range(1, 5)
    ]  # fmt: skip
    lakes.append(bare, table, rows)
    found = partition_history.cells(bare, "prod", "g", NOW - span, NOW, PartitionMeasure.LAG)
    lines: dict[int, Row] = {}
    for row in found.to_pylist():
        line = lines.setdefault(row["line"], row)
        line["value"] = max(line["value"], row["value"])
    assert list(lines) == list(range(min(partitions, partition_history.MAX_ROWS)))
    assert sum(line["partitions"] for line in lines.values()) == partitions, "each is in one row"
    assert span.total_seconds() / found["width_seconds"][0].as_py() <= partition_history.MAX_COLUMNS
    if partitions <= partition_history.MAX_ROWS:
        assert [line["partition"] for line in lines.values()] == list(range(partitions))
        return
    its = list(lines.values())
    worst, ranges = its[: partition_history.WORST_ROWS], its[partition_history.WORST_ROWS :]
    assert [line["partition"] for line in worst] == [partitions - 1 - i for i in range(partition_history.WORST_ROWS)]
    assert all(line["partitions"] == 1 for line in worst)
    at_first = 0
    for line in ranges:
        assert line["partition"] == at_first
        at_first = line["last_partition"] + 1
        assert line["partitions"] == at_first - line["partition"]
        assert line["value"] == line["last_partition"] * 10 + 1, "the largest among them"
    assert at_first == partitions - partition_history.WORST_ROWS
    assert max(r["partitions"] for r in ranges) - min(r["partitions"] for r in ranges) <= 1


def test_a_heat_map_of_an_unknown_group_is_empty(bare: Lake) -> None:
    assert partition_history.cells(bare, "prod", "another", NOW - HOUR, NOW, PartitionMeasure.AGE).num_rows == 0
    assert partition_history.spread(bare, "prod", "another", NOW - HOUR, NOW, PartitionMeasure.AGE).num_rows == 0


def _of_minute(minute: datetime, partition: int, lag: int | None, end: int) -> tuple[Row, Row]:
    """The minute of a partition of the group ``g`` with a lag at its end, and that of its log, which ends there."""
    of = {"cluster": "prod", "topic": "t", "partition": partition, "minute": minute, "first_at": minute}
    of |= {"last_at": minute + timedelta(seconds=45)}
    committed = None if lag is None else end - lag
    its = {"group": "g", "samples": 4, "max_lag": lag, "last_lag": lag, "last_committed": committed}
    return of | its, of | {"last_high_watermark": end}


def _partitions_of_an_hour(bare: Lake, lags: Callable[[int], list[int | None]]) -> None:
    """Sixty minutes of partitions into which ten records a second are written; ``lags`` are theirs at each minute."""
    at = NOW.replace(minute=0, second=0)
    both = [
        _of_minute(at - timedelta(minutes=60 - i), p, lag, 1_000 + 600 * i)
        for i in range(60)
        for p, lag in enumerate(lags(i))
    ]
    lakes.append(bare, MINUTES, [minute for minute, _ in both])
    lakes.append(bare, WATERMARK_MINUTES, [log for _, log in both])


def test_the_age_of_a_partition_is_that_of_the_record_at_its_commit(bare: Lake) -> None:
    _partitions_of_an_hour(bare, lambda i: [0, 100, 6_000, 100_000, None])
    found = partition_history.cells(bare, "prod", "g", NOW - HOUR, NOW, PartitionMeasure.AGE).to_pylist()
    last = {row["line"]: row["value"] for row in found}
    assert last[0] == 0.0
    assert last[1] == pytest.approx(10.0), "within a minute, as ten records a second are written"
    assert last[2] == pytest.approx(600.0)
    assert last[3] == pytest.approx(59 * 60.0), "at least: it is older than what is kept"
    assert last[4] is None


def test_a_lag_is_told_against_the_median_of_its_minute(bare: Lake) -> None:
    _partitions_of_an_hour(bare, lambda i: [0, 0, 0, 7] if i < 30 else [10, 20, 40, 900])
    found = partition_history.cells(bare, "prod", "g", NOW - HOUR, NOW, PartitionMeasure.RELATIVE).to_pylist()
    worst = [row["value"] for row in found if row["line"] == 3]
    assert (worst[0], worst[-1]) == (8.0, 901 / 31), "one record is added to both"
    assert [row["value"] for row in found if row["line"] == 0][-1] == pytest.approx(11 / 31)


def test_partitions_spread_by_median_95_per_cent_and_worst(bare: Lake) -> None:
    _partitions_of_an_hour(bare, lambda i: [*range(100), 5_000, None])
    found = partition_history.spread(bare, "prod", "g", NOW - HOUR, NOW, PartitionMeasure.LAG)
    assert found.num_rows == 60
    for row in found.to_pylist():
        assert (row["median"], row["high"], row["worst"]) == (50.0, 95.0, 5_000.0), "the unknown one is left out"
        assert row["worst_partition"] == 100
    assert all(NOW - HOUR <= at <= NOW for at in found["at"].to_pylist())


def test_members_stand_as_their_partitions_do(stored: Lake) -> None:
    members = group.members(stored, "prod", "payments-settlement", _as_of())
    by_owner = {row["member_id"]: row for row in members if row["assigned_partitions"]}
    partitions = group.partitions(stored, "prod", "payments-settlement")
    assert set(by_owner) == {p["owner"] for p in partitions}
    for owner, row in by_owner.items():
        its = [p for p in partitions if p["owner"] == owner]
        assert row["lag"] == sum(p["lag"] for p in its)
        assert row["lag_seconds"] == max(p["lag_seconds"] for p in its)
    assert by_owner[partitions[0]["owner"]]["status"] == "losing_data"


@pytest.mark.parametrize("name", [*HOSTILE_NAMES, "' or 1=1 --", "%", "_", "\\"])
def test_names_are_never_sql(stored: Lake, name: str) -> None:
    since = NOW - HOUR
    assert not topic.readers(stored, name, name)
    assert topic.settings(stored, name, name) is None
    assert not topic.partitions(stored, name, name, NOW, None)
    assert topic.totals(stored, name, name, NOW, None).partitions == 0
    assert topic.written(stored, name, name, since, NOW).num_rows == 0
    assert not retention.losses(stored, name, name, None)
    assert not rebalances.groups(stored, name, since, NOW, ListQuery(name))
    assert rebalances.periods(stored, name, name, since, NOW) == []
    assert partition_history.cells(stored, name, name, since, NOW, PartitionMeasure.AGE).num_rows == 0


# Connections


def test_a_question_sees_only_the_tables_that_it_names(stored: Lake) -> None:
    assert base.rows(stored, {GROUP_STATUS: None}, "select count(*) as n from group_status")[0]["n"]
    with pytest.raises(duckdb.CatalogException):
        base.rows(stored, {PARTITION_STATUS: None}, "select * from group_status")


def test_questions_at_the_same_moment_do_not_see_each_other(stored: Lake) -> None:
    expected = overview.counts(stored, None, "")
    others = overview.counts(stored, "staging", "")
    wrong: list[object] = []

    def ask_often(cluster: str | None, right: object) -> None:
        wrong.extend(found for _ in range(8) if (found := overview.counts(stored, cluster, "")) != right)

    threads = [
        threading.Thread(target=ask_often, args=asked) for asked in ((None, expected), ("staging", others)) * 4
    ]  # more than connections are kept
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
