"""Findings from the tables of the lake: the driver's part of a round, which needs no JVM."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lagwise.domain.findings import Finding
from lagwise.tables.analysis import PARTITION_STATUS
from lagwise.tables.minutes import WATERMARK_MINUTES
from lagwise.tables.raw import EVENTS, GROUPS, TOPICS, WATERMARKS
from lagwise.tables.store import Lake
from lagwise_spark.jobs.findings import findings_of
from lagwise_spark.jobs.rebalances import sum_up
from tests.spark.test_rebalance_stats import A, append, at, left, news

pytestmark = pytest.mark.thorough

NOW = 59.0


def watermark(topic: str, high: int, *, partition: int = 0, log_start: int = 0) -> dict[str, Any]:
    return {
        "sample_id": "s1",
        "cluster": "shop",
        "sampled_at": at(NOW),
        "topic": topic,
        "partition": partition,
        "log_start": log_start,
        "high_watermark": high,
    }


def minute(topic: str, number: float, high: int, *, partition: int = 0) -> dict[str, Any]:
    return {
        "cluster": "shop",
        "topic": topic,
        "partition": partition,
        "minute": at(number),
        "first_at": at(number),
        "last_at": at(number) + timedelta(seconds=45),
        "first_high_watermark": high,
        "last_high_watermark": high,
        "first_log_start": 0,
        "last_log_start": 0,
        "points": [],
    }


def side(topic: str, main: str | None = "orders", role: str | None = "dead_letter", **more: Any) -> dict[str, Any]:
    described = {"sample_id": "s0", "cluster": "shop", "sampled_at": at(0), "topic": topic}
    return {**described, "role": role, "main_topic": main, **more}


def reads(group: str, topic: str, *, status: str = "ok", lag: int | None = 0, partition: int = 0) -> dict[str, Any]:
    return {
        "cluster": "shop",
        "group": group,
        "topic": topic,
        "partition": partition,
        "as_of": at(NOW),
        "status": status,
        "since": at(0),
        "reasons": [status],
        "lag": lag,
        "records_lost": 0,
    }


def sentences(found: dict[tuple[str, str], list[Finding]]) -> dict[str, list[str]]:
    return {group: [finding.sentence for finding in findings] for (_, group), findings in found.items()}


@pytest.fixture(autouse=True)
def two_readers(lake: Lake) -> None:
    append(lake, PARTITION_STATUS, reads("billing", "orders"), reads("audit", "orders"), reads("mail", "letters"))


def test_a_growing_dead_letter_topic_is_reported_for_the_readers_of_its_main_topic(lake: Lake) -> None:
    append(lake, TOPICS, side("orders.DLT"), side("orders", None, None))
    append(lake, WATERMARKS, watermark("orders.DLT", 30, log_start=10), watermark("orders.DLT", 5, partition=1))
    append(
        lake,
        WATERMARK_MINUTES,
        *(minute("orders.DLT", number, 21 + number) for number in range(10)),
        minute("orders.DLT", 0, 5, partition=1),
    )
    said = ["9 records were given up within 59 min: they went to orders.DLT; it holds 25."]
    assert sentences(findings_of(lake, news(NOW))) == {"billing": said, "audit": said}


@pytest.mark.parametrize(
    ("why", "topics", "watermarks", "minutes"),
    [
        ("it is quiet", [side("orders.DLT")], [watermark("orders.DLT", 21)], [minute("orders.DLT", 0, 21)]),
        ("it has no history yet", [side("orders.DLT")], [watermark("orders.DLT", 21)], []),
        (
            "it was emptied or made anew",
            [side("orders.DLT")],
            [watermark("orders.DLT", 3)],
            [minute("orders.DLT", 0, 21)],
        ),
        ("it is gone", [side("orders.DLT")], [], [minute("orders.DLT", 0, 21)]),
        (
            "it is no side topic any more, by other patterns",
            [side("orders.DLT"), side("orders.DLT", None, None, sampled_at=at(5))],
            [watermark("orders.DLT", 30)],
            [minute("orders.DLT", 0, 21)],
        ),
        ("nobody reads its main topic", [side("x.DLT", "x")], [watermark("x.DLT", 30)], [minute("x.DLT", 0, 21)]),
    ],
)
def test_there_is_no_finding_where(
    lake: Lake, why: str, topics: list[Any], watermarks: list[Any], minutes: list[Any]
) -> None:
    append(lake, TOPICS, *topics)
    append(lake, WATERMARKS, *watermarks)
    append(lake, WATERMARK_MINUTES, *minutes)
    assert findings_of(lake, news(NOW)) == {}, why


def test_unread_records_in_a_retry_topic_are_reported_for_each_reader_of_the_main_topic(lake: Lake) -> None:
    append(lake, TOPICS, side("orders-retry", role="retry"))
    append(lake, WATERMARKS, watermark("orders-retry", 50))
    append(lake, WATERMARK_MINUTES, minute("orders-retry", 0, 10))
    unread = ["40 records were sent to be retried within 59 min, but no group reads orders-retry."]
    assert sentences(findings_of(lake, news(NOW))) == {"billing": unread, "audit": unread}
    append(lake, PARTITION_STATUS, reads("retrier", "orders-retry", lag=12))
    waits = ["12 records wait in orders-retry to be retried, and 40 arrived within 59 min."]
    assert sentences(findings_of(lake, news(NOW))) == {"billing": waits, "audit": waits}


def test_rocketmqs_dead_letters_are_reported_for_their_own_group_and_no_other(lake: Lake) -> None:
    """They belong to a group and not to a topic: their main topic is the retry topic, which only that group reads."""
    retry, dead = "%RETRY%mail", "%DLQ%mail"
    append(lake, TOPICS, side(dead, retry), side(retry, retry, "retry"))
    append(lake, WATERMARK_MINUTES, minute(dead, -30, 63), minute(retry, -30, 80))
    append(lake, WATERMARKS, watermark(dead, 165), watermark(retry, 90))
    readers = (reads("mail", "orders"), reads("billing", "orders"), reads("mail", retry, lag=7))
    append(lake, PARTITION_STATUS, *readers)
    reported = sentences(findings_of(lake, news(0)))
    assert reported.keys() == {"mail"}
    assert "102 records were given up" in reported["mail"][0]
    assert "7 records wait in %RETRY%mail" in reported["mail"][1]


def test_rebalances_that_need_attention_are_reported_for_an_hour(lake: Lake) -> None:
    append(lake, EVENTS, left(1, A), left(3, A), left(2, A, group="audit"))
    sum_up(lake, news(5))
    found = findings_of(lake, news(30))
    assert sentences(found) == {"billing": [f"The same clients leave by themselves and come back: {A} twice."]}
    assert found["shop", "billing"][0].remedy is not None
    assert findings_of(lake, news(64)) == {}


def skip(minute_: float, **more: Any) -> dict[str, Any]:
    event = {"cluster": "shop", "at": at(minute_), "kind": "commit_skipped", "group": "billing", "topic": "orders"}
    return {**event, "source": "samples", **more}


def test_skipped_records_are_reported_once_and_for_a_day(lake: Lake) -> None:
    one = skip(3, partition=1, before="1000", after="21000")
    append(lake, EVENTS, one, one, skip(2, cause="12 partitions, 480000 records in all"))
    (finding,) = findings_of(lake, news(NOW))["shop", "billing"]
    assert finding.sentence.startswith("Up to 20,000 records were skipped")
    assert "orders-1 jumped from 1,000 to 21,000" in finding.sentence
    assert findings_of(lake, news(NOW + 24 * 60)) == {}


def test_skips_on_many_partitions_are_one_finding(lake: Lake) -> None:
    append(lake, EVENTS, skip(2, cause="12 partitions, 480000 records in all"))
    (finding,) = findings_of(lake, news(NOW))["shop", "billing"]
    assert "Up to 480,000 records" in finding.sentence
    assert "12 partitions of orders" in finding.sentence


def test_skips_after_a_deletion_are_reported_as_such(lake: Lake) -> None:
    one = skip(3, partition=1, before="1000", after="21000", cause="from the log start")
    append(lake, EVENTS, one, skip(2, cause="12 partitions, 480000 records in all, from the log start"))
    (finding,) = findings_of(lake, news(NOW))["shop", "billing"]
    assert finding.sentence.startswith("Up to 500,000 records that were still kept were skipped since")


def ghost(partition: int, *, unread: int, rate: float, hours: float) -> dict[str, Any]:
    return reads("billing", "invoices", status="ghost", lag=None, partition=partition) | {
        "committed": 100,
        "log_start": 40,
        "high_watermark": 100 + unread,
        "produce_rate_per_second": rate,
        "committed_since": at(NOW) - timedelta(hours=hours),
    }


def test_a_topic_that_was_left_while_records_arrive_is_reported(lake: Lake) -> None:
    append(lake, PARTITION_STATUS, ghost(0, unread=900, rate=1.5, hours=1), ghost(1, unread=300, rate=0.5, hours=2))
    (finding,) = findings_of(lake, news(NOW))["shop", "billing"]
    assert finding.sentence == (
        "Topic invoices is no longer assigned to it: no commits on 2 partitions for 2 h, 1,200 records are unread, and "
        "2.00 arrive per second."
    )
    assert finding.remedy is not None


@pytest.mark.parametrize(("kept_hours", "expiry"), [(26, "in 1 d"), (1, "at any moment")], ids=["in a day", "overdue"])
def test_when_the_offsets_of_a_topic_that_was_left_expire(lake: Lake, kept_hours: int, expiry: str) -> None:
    append(lake, PARTITION_STATUS, ghost(0, unread=900, rate=1.5, hours=2))
    (finding,) = findings_of(lake, news(NOW, kept_hours * 3600.0))["shop", "billing"]
    assert finding.sentence.endswith(
        f" The offsets expire {expiry}: a consumer that starts later begins where auto.offset.reset says."
    )


@pytest.mark.parametrize(("unread", "rate"), [(0, 2.0), (1200, 0.0)], ids=["all was read", "nothing comes"])
def test_a_topic_that_was_left_for_good_is_not(lake: Lake, unread: int, rate: float) -> None:
    append(lake, PARTITION_STATUS, ghost(0, unread=unread, rate=rate, hours=1))
    assert findings_of(lake, news(NOW)) == {}


def test_rocketmq_members_with_different_subscriptions_are_reported_while_they_differ(lake: Lake) -> None:
    its = [replace(n, system="rocketmq") for n in news(NOW)]
    apart = [{"topic": "orders", "filter": f, "members": 1, "of": 2} for f in ("paid", "sent")]
    row = {"sample_id": "s1", "cluster": "shop", "sampled_at": at(NOW), "group": "billing"}
    row |= {"type": "concurrent", "subscriptions": apart}
    alike = {**row, "group": "mail", "subscriptions": [{"topic": "x", "filter": "*", "members": 2, "of": 2}]}
    append(lake, GROUPS, row, alike, {**row, "group": "silent", "subscriptions": None})
    append(lake, GROUPS, {**row, "group": "screens", "type": "broadcasting"})
    said = "Its members have different subscriptions: orders (paid) by 1 of 2, orders (sent) by 1 of 2."
    assert sentences(findings_of(lake, its)) == {"billing": [said]}
    assert sentences(findings_of(lake, [replace(n, latest_id="s2") for n in its])) == {}


def test_a_skip_on_a_queue_is_reported_in_rocketmqs_terms(lake: Lake) -> None:
    append(lake, EVENTS, skip(3, partition=10_003, before="100", after="900"))
    append(lake, WATERMARKS, watermark("orders", 10, partition=10_003) | {"label": "broker-b q3"})
    (finding,) = findings_of(lake, [replace(n, system="rocketmq") for n in news(NOW)])["shop", "billing"]
    assert "the committed offset of orders broker-b q3 jumped from 100 to 900" in finding.sentence
