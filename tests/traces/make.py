"""Make the traces beside this file anew: ``python -m tests.traces.make [NAME…]``.

Each function below is one story: what happens in the world, and then what is true of it. The truth is written from
the story alone, by these rules and never from what Lagwise says:

* Verdicts may be late by three samples (``GRACE``) on top of the time that the rules themselves take: 60 s until an
  owned partition is stalled, 30 s until an unowned one is stopped.
* Where the lag is going can only be told after minutes. For ``TREND`` after it has turned, the old and the new
  direction are both right, and so is ``lagging`` in between; what is never right in between is left out.
* For the first three samples nothing can be known.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.traces.world import Group, Rate, World

HERE = Path(__file__).parent

GRACE = 45.0
TREND = 240.0
START = "ok|unknown:too_few_samples"

STORIES: dict[str, Callable[[], World]] = {}


def story(make: Callable[[], World]) -> Callable[[], World]:
    STORIES[make.__name__.replace("_", "-")] = make
    return make


def pairs(topic: str, count: int, first: int = 0) -> list[tuple[str, int]]:
    return [(topic, partition) for partition in range(first, first + count)]


def steps(*levels: tuple[float, float]) -> Rate:
    """A rate that changes at moments: (from second, rate)."""
    return lambda now: [rate for since, rate in levels if since <= now][-1]


def leave(group: Group) -> Callable[[], None]:
    """All members leave, and say so."""

    def happen() -> None:
        group.members, group.state = {}, "Empty"

    return happen


@story
def idle_topic() -> World:
    w = World(
        "idle-topic",
        """An audit log gets a record every minute or two, and its consumer reads each within seconds. Most samples
        show the same commit as the one before: that is what an idle topic looks like, not a stalled consumer.""",
        minutes=45,
    )
    w.topic("audit-log", partitions=2, rate=lambda _: 1.0 if w.random.random() < 1 / 90 else 0.0)
    w.group("audit-writer", {"audit-writer-1": pairs("audit-log", 2)}, commit_every_s=7)
    w.run()
    w.truth(START, 0, GRACE, "audit-writer")
    w.truth("ok", GRACE, w.seconds, "audit-writer")
    for partition in (0, 1):
        w.truth("ok", GRACE, w.seconds, "audit-writer", "audit-log", partition)
    return w


@story
def one_dip() -> World:
    w = World(
        "one-dip",
        """From minute 5 on, the consumer takes 70 of the 100 records that are written per second. Once it catches a
        breath: partition 0 shrinks by 600 records within one sampling interval, partition 1 by 4,000 within a minute.
        Neither changes anything: the backlog has grown all along and goes on growing. Partition 0's breath is shorter
        than any window, so the verdict must not waver. On partition 1 the lag did shrink for a minute, so for a while
        it may be said not to grow; it is never ok.""",
        minutes=50,
    )
    w.topic("clicks", partitions=2, rate=100)
    group = w.group("sessioniser", {"sessioniser-1": pairs("clicks", 2)}, commit_every_s=3)
    group.speed["clicks", 0] = steps((0, 400), (300, 70), (1800, 140), (1815, 70))
    group.speed["clicks", 1] = steps((0, 400), (300, 70), (1800, 70 + 30 + 4000 / 60), (1860, 70))
    w.run()
    w.truth("ok", GRACE, 300, "sessioniser")
    w.truth("ok|falling_behind", 300, 300 + TREND, "sessioniser")
    w.truth("falling_behind", 300 + TREND, w.seconds, "sessioniser", "clicks", 0)
    w.truth("falling_behind", 300 + TREND, w.seconds, "sessioniser")
    w.truth("falling_behind", 300 + TREND, 1800, "sessioniser", "clicks", 1)
    w.truth("falling_behind|lagging|catching_up", 1800, 1860 + TREND, "sessioniser", "clicks", 1)
    w.truth("falling_behind", 1860 + TREND, w.seconds, "sessioniser", "clicks", 1)
    return w


@story
def slow_committer() -> World:
    w = World(
        "slow-committer",
        """A Flink job commits with its checkpoint, every 60 s on one topic and every 100 s on another, and is no
        member of its group: the coordinator calls it Empty. It keeps pace. Between two checkpoints the lag grows like
        any other, and at times stands still on a partition: neither is a trend, and nothing is stopped.""",
        minutes=50,
    )
    w.topic("payments", partitions=3, rate=50)
    w.topic("refunds", partitions=1, rate=8)
    w.group("flink-fraud", type="simple", engine=pairs("payments", 3), commit_every_s=60)
    w.group("flink-refunds", type="simple", engine=pairs("refunds", 1), commit_every_s=100)
    w.run()
    # The first checkpoints must pass before anybody can know that there are checkpoints.
    w.truth("ok|unknown:too_few_samples", 0, 4 * 60 + GRACE, "flink-fraud")
    w.truth("ok", 4 * 60 + GRACE, w.seconds, "flink-fraud")
    w.truth("ok|unknown:too_few_samples", 0, 4 * 100 + GRACE, "flink-refunds")
    w.truth("ok", 4 * 100 + GRACE, w.seconds, "flink-refunds")
    return w


@story
def periodic_jobs() -> World:
    hour = 3600.0
    w = World(
        "periodic-jobs",
        """Records come all the time, and cron starts a job every 10, 20 and 60 minutes that reads what there is within
        one to three minutes, commits every five seconds and leaves. Between two runs lag grows and nobody is a member:
        that is how it is meant. The job of 20 minutes is not started any more after five hours, and is seen to be
        stopped once three of its pauses have passed. Another consumer, which commits every five seconds all day, is
        killed after six hours and is seen to be stopped as soon as ever.""",
        minutes=6.5 * 60,
        interval_s=30,
        evaluate_every_s=120,
        only_changes=True,
        step_s=5,
    )
    ends_s = 5 * hour
    for period_s, run_s in ((600, 60), (1200, 90), (3600, 180)):
        name = f"every-{period_s // 60}-minutes"
        topic = f"orders-{period_s // 60}"
        w.topic(topic, rate=20)
        group = w.group(name, {f"{name}-1": pairs(topic, 1)}, speed=2000)
        until_s = ends_s if period_s == 1200 else w.seconds + 1

        def tick(
            now: float,
            group: Group = group,
            period_s: int = period_s,
            run_s: int = run_s,
            until_s: float = until_s,
            topic: str = topic,
        ) -> None:
            runs = now % period_s < run_s and now < until_s
            group.members = {f"{group.name}-1": pairs(topic, 1)} if runs else {}
            group.state = "Stable" if runs else "Empty"

        w.every_second(tick)
        # What is usual is known after the second whole hour in which a pause ended.
        known_s = (2 if period_s < 3600 else 3) * hour + 600
        w.truth("ok|catching_up", known_s, min(until_s, w.seconds), name)
    # Its last run ended 90 s after 4 h 40 min, and the pause before that one is 18 min 30 s long.
    w.truth("stopped", ends_s - 1200 + 90 + 3 * 1140 + 2 * w.interval_s, w.seconds, "every-20-minutes")
    w.topic("payments", rate=20)
    steady = w.group("steady", {"steady-1": pairs("payments", 1)})
    w.at(6 * hour, leave(steady))
    w.truth("ok", 3 * w.interval_s, 6 * hour, "steady")
    w.truth("stopped", 6 * hour + 90, w.seconds, "steady")
    w.run()
    return w


@story
def rare_commits() -> World:
    hour = 3600.0
    w = World(
        "rare-commits",
        """Two connectors write files and commit when a file is full: every 50 minutes the one, every 60 the other. Both
        keep pace and are members all the time. After eight hours the first hangs: what it had read it still commits
        when that is due, and then nothing any more, which is seen when it has lasted for three times as long as usual.
        """,
        minutes=11.5 * 60,
        interval_s=60,
        evaluate_every_s=300,
        only_changes=True,
        step_s=10,
    )
    hangs_s = 8 * hour
    for minutes in (50, 60):
        w.topic(f"events-{minutes}", rate=50)
        name = f"connect-{minutes}"
        group = w.group(name, {f"{name}-1": pairs(f"events-{minutes}", 1)}, commit_every_s=60 * minutes)
        if minutes == 50:
            group.speed["events-50", 0] = steps((0, 1000), (hangs_s, 0))
    w.run()
    w.truth("ok", 4 * hour + 600, hangs_s + 2 * 3000 - w.interval_s, "connect-50")
    # Its last commit is that of 8 h 20 min.
    w.truth("stalled", 8 * hour + 1200 + 3 * 3000 + 2 * w.interval_s, w.seconds, "connect-50")
    w.truth("ok", 4 * hour + 600, w.seconds, "connect-60")
    return w


@story
def stopped_with_a_zero() -> World:
    w = World(
        "stopped-with-a-zero",
        """The consumer keeps up so well that many samples show no lag at all, then its machine loses power. The
        coordinator waits 45 s for its heartbeat, so for that long it still seems to own its partitions. The zeros of
        the minutes before must not hide that it has stopped. After 20 minutes it is started again and catches up.""",
        minutes=40,
    )
    w.topic("mails", partitions=2, rate=0.4)
    group = w.group("mailer", {"mailer-1": pairs("mails", 2)}, speed=20, commit_every_s=2)

    def restart() -> None:
        group.members, group.state = {"mailer-2": pairs("mails", 2)}, "Stable"

    for pair in pairs("mails", 2):
        group.speed[pair] = steps((0, 20), (600, 0), (1805, 20))
    w.at(645, leave(group))
    w.at(1805, restart)
    w.run()
    w.truth("ok", GRACE, 600, "mailer")
    w.truth("ok|stalled|stopped|falling_behind|unknown:too_few_samples", 600, 645 + GRACE, "mailer")
    w.truth("stopped", 645 + GRACE, 1800, "mailer")
    # A thousand records are read within half a minute: before the next direction can be told they are gone.
    w.truth("stopped|falling_behind|lagging|catching_up|ok", 1805, 1805 + GRACE, "mailer")
    w.truth("ok", 1805 + 2 * GRACE, w.seconds, "mailer")
    return w


@story
def recreated_smaller() -> World:
    w = World(
        "recreated-smaller",
        """A topic is deleted and created again: its offsets begin at 0, while the group's commits are those of the old
        topic, far beyond the new end. Nobody can say what is unread until the group has committed on the new topic,
        which it does after it was restarted five minutes later. It has not rewound then, it has begun anew.""",
        minutes=40,
    )
    topic = w.topic("sensors", partitions=2, rate=20, records=50_000)
    group = w.group("sensor-store", {"sensor-store-1": pairs("sensors", 2)}, speed=500)

    def recreate() -> None:
        topic.recreate("sensors-2")
        group.commits = False
        leave(group)()

    def restart() -> None:
        group.commits, group.members, group.state = True, {"sensor-store-2": pairs("sensors", 2)}, "Stable"
        for pair in pairs("sensors", 2):
            group.position[pair] = 0

    w.at(905, recreate)
    w.at(1205, restart)
    w.run()
    w.truth("ok", GRACE, 900, "sensor-store")
    w.truth("unknown:recreated", 905 + GRACE, 1205, "sensor-store")
    w.truth("unknown:recreated|unknown:too_few_samples|catching_up|ok", 1205, 1205 + 2 * GRACE, "sensor-store")
    w.truth("ok", 1205 + 120, w.seconds, "sensor-store")
    w.truth("ok", 1205 + 120, w.seconds, "sensor-store", "sensors", 0)
    return w


@story
def recreated_larger() -> World:
    w = World(
        "recreated-larger",
        """A nightly job is done and has left its commit on a topic. The topic is deleted, created again and filled at
        once with more records than it ever had. The difference to the old commit looks like a backlog of 40,000 records
        nobody reads, but the commit and the records have nothing to do with each other. Nobody commits again.""",
        minutes=30,
    )
    topic = w.topic("exports", rate=steps((0, 5), (600, 0)), records=10_000)
    group = w.group("export-job", {"export-job-1": pairs("exports", 1)})

    def recreate() -> None:
        topic.recreate("exports-2")
        topic.high = [53_000.0]

    w.at(630, leave(group))
    w.at(901, recreate)
    w.run()
    w.truth("ok", GRACE, 900, "export-job")
    w.truth("unknown:recreated", 901 + GRACE, w.seconds, "export-job")
    return w


@story
def never_committed() -> World:
    w = World(
        "never-committed",
        """A live view reads what happens now and commits nothing; an export was started by hand, read for a while and
        never committed either. Neither lag nor well-being can be told, and no number may stand in for them.""",
        minutes=15,
    )
    w.topic("clickstream", partitions=2, rate=60)
    w.group("live-view", {"live-view-1": pairs("clickstream", 2)}, commits=False)
    w.run()
    w.truth("unknown:no_commit", 0, w.seconds, "live-view")
    w.truth("unknown:no_commit", 0, w.seconds, "live-view", "clickstream", 0)
    w.truth("unknown:no_commit", 0, w.seconds, "live-view", "clickstream", 1)
    return w


@story
def open_transaction() -> World:
    w = World(
        "open-transaction",
        """A producer holds a transaction open for five minutes. Readers of committed records can read nothing beyond
        it, so they have no lag although the high watermark runs ahead. When the transaction ends, five minutes of old
        records can suddenly be read, and are within a few seconds: nothing was ever stalled.""",
        minutes=30,
    )
    topic = w.topic("ledger", partitions=2, rate=30, stable=[0, 0])
    w.group("bookkeeper", {"bookkeeper-1": pairs("ledger", 2)}, speed=1000, commit_every_s=5)

    def begin() -> None:
        topic.open_transaction = True

    def end() -> None:
        topic.open_transaction = False

    w.at(603, begin)
    w.at(903, end)
    w.run()
    w.truth("ok", GRACE, 903, "bookkeeper")
    # For a moment there is a backlog, five minutes old, which is what `lagging` says; it is gone with the next commit.
    w.truth("ok|lagging|catching_up", 903, 903 + GRACE, "bookkeeper")
    w.truth("ok", 903 + GRACE, w.seconds, "bookkeeper")
    return w


@story
def hanging_transaction() -> World:
    w = World(
        "hanging-transaction",
        """A producer dies in the middle of a transaction that its broker never ends (a fault of old clients). Whoever
        reads committed records only cannot get beyond it: the service that lives, and the report that is shut down
        meanwhile. By the last stable offset, up to which both have read all, nobody would see it. For sixteen minutes
        it is like any transaction; then it is told, and after forty somebody aborts it.""",
        minutes=60,
    )
    topic = w.topic("payments", rate=30, stable=[0])
    w.group("clearing", {"clearing-1": pairs("payments", 1)}, speed=1000, commit_every_s=5)
    report = w.group("report", {"report-1": pairs("payments", 1)}, speed=1000, commit_every_s=5)

    def begin() -> None:
        topic.open_transaction = True

    def end() -> None:
        topic.open_transaction = False

    def back() -> None:
        report.members, report.state = {"report-2": pairs("payments", 1)}, "Stable"

    w.at(603, begin)
    w.at(903, leave(report))
    w.at(3003, end)
    w.at(3003, back)
    w.run()
    for group, word in (("clearing", "stalled"), ("report", "stopped")):
        w.truth("ok", GRACE, 603 + 960, group)
        w.truth(f"ok|{word}", 603 + 960, 603 + 960 + GRACE, group)
        w.truth(word, 603 + 960 + GRACE, 3000, group)
        w.truth(f"{word}|lagging|catching_up|ok", 3000, 3003 + 2 * GRACE, group)
        w.truth("ok", 3003 + 2 * GRACE, w.seconds, group)
    return w


@story
def empty_partition() -> World:
    w = World(
        "empty-partition",
        """A service reads a busy topic and one that nobody writes to yet. Its client (librdkafka) commits only what it
        has read, so on the empty partition nothing is committed: there is nothing to read. After a quarter of an hour
        the first records come.""",
        minutes=30,
    )
    w.topic("orders", partitions=2, rate=30)
    w.topic("refunds", rate=steps((0, 0), (900, 5)))
    group = w.group("shop", {"shop-1": [*pairs("orders", 2), *pairs("refunds", 1)]}, speed=300, commit_every_s=5)
    refunds = ("refunds", 0)
    group.committed[refunds] = None
    del group.position[refunds]

    def begin() -> None:
        w.follow(group, refunds, speed=300, at=0)

    w.at(904, begin)
    w.run()
    w.truth("ok", GRACE, w.seconds, "shop", "orders", 0)
    w.truth("ok", 0, 899, "shop", *refunds)
    w.truth("ok|unknown:no_commit|unknown:too_few_samples", 900, 900 + 2 * GRACE, "shop", *refunds)
    w.truth("ok", 900 + 2 * GRACE, w.seconds, "shop", *refunds)
    w.truth("ok", GRACE, 899, "shop")
    w.truth("ok", 900 + 2 * GRACE, w.seconds, "shop")
    return w


@story
def old_backlog() -> World:
    w = World(
        "old-backlog",
        """Lagwise is set up where a consumer has hung for almost a week, on a topic that keeps a week. When its records
        were written nobody has seen, so by their age they might have a week to live; they have a quarter of an hour:
        the log start is that near, and moves on.""",
        minutes=40,
    )
    topic = w.topic("meter-readings", rate=10, records=6_100_000, retention_ms=604_800_000)
    topic.start = [60_000]
    group = w.group("invoicing", {"invoicing-1": pairs("meter-readings", 1)}, speed=0)
    pair = ("meter-readings", 0)
    group.committed[pair], group.position[pair] = 70_000, 70_000

    def delete(now: float) -> None:
        # What was written a week ago, at ten records a second: a segment of five minutes at a time.
        topic.start[0] = 60_000 + 3000 * int(now // 300)

    w.every_second(delete)
    w.run()
    # It takes 90 s to tell that it stands still, and that is all that was ever seen of it. Whoever says so sooner has
    # guessed, but is right.
    w.truth("unknown:too_few_samples|at_risk", 0, 90 + GRACE, "invoicing")
    w.truth("at_risk", 90 + GRACE, 1185, "invoicing")
    w.truth("losing_data", 1200 + GRACE, w.seconds, "invoicing")
    return w


@story
def commit_markers() -> World:
    w = World(
        "commit-markers",
        """Every minute a transaction writes some records, and a marker that takes an offset and is delivered to
        nobody. Both readers commit the offset after the last record, one short of the end, for ever. The collector
        looks the next record up where they stand still, and finds none: they are ok. At minute 34 one of them hangs
        before five records of a transaction that the other one reads: it is stalled.""",
        minutes=50,
        looks_up=True,
    )
    topic = w.topic("transfers", rate=0, stable=[0])
    booker = w.group("booker", {"booker-1": pairs("transfers", 1)}, commits=False)
    auditor = w.group("auditor", {"auditor-1": pairs("transfers", 1)}, commits=False)
    pair = ("transfers", 0)
    booker.committed[pair] = auditor.committed[pair] = 0

    def transaction() -> None:
        topic.high[0] += 6

    def read(group: Group) -> None:
        group.committed[pair] = topic.end(0) - 1
        group.next_record.pop(pair, None)

    def look_up() -> None:
        for group in (booker, auditor):
            committed = group.committed[pair]
            assert committed is not None
            group.next_record[pair] = topic.end(0) if committed == topic.end(0) - 1 else committed + 1

    hangs = 2_043
    for begins in range(123, w.seconds, 60):
        w.at(begins, transaction)
        for group in (booker, auditor) if begins < hangs else (booker,):
            w.at(begins + 4, partial(read, group))
        w.at(begins + 24, look_up)
    w.run()
    w.truth("ok", GRACE, w.seconds, "booker")
    w.truth("ok", GRACE, hangs, "auditor")
    w.truth("ok|stalled", hangs, hangs + 60 + GRACE, "auditor")
    w.truth("stalled", hangs + 60 + GRACE, w.seconds, "auditor")
    return w


@story
def retention_overrun() -> World:
    w = World(
        "retention-overrun",
        """A topic keeps records for ten minutes. One of its two consumers becomes too slow: it is late by ever more,
        and after a while records are deleted before it reads them. The other one is shut down for half an hour and
        loses what was written meanwhile. Both are warned about before it happens and counted when it has.""",
        minutes=50,
    )
    w.topic("web-sessions", rate=50, kept_s=600, retention_ms=600_000)
    slow = w.group("recommender", {"recommender-1": pairs("web-sessions", 1)}, commit_every_s=3)
    slow.speed["web-sessions", 0] = steps((0, 400), (300, 20))
    off = w.group("reporter", {"reporter-1": pairs("web-sessions", 1)}, commit_every_s=3)
    w.at(600, leave(off))
    w.run()
    # At 20 of 50 records per second it gets 0.6 s older per second: ten minutes old after 1,000 s.
    w.truth("ok", GRACE, 300, "recommender")
    w.truth("ok|falling_behind|at_risk", 300, 300 + TREND, "recommender")
    w.truth("at_risk", 300 + TREND, 1250, "recommender")
    # A consumer that finds its records deleted goes on with the oldest there are, at whose edge it stays: it loses
    # three of five records from then on, at whatever moment one looks.
    w.truth("at_risk|losing_data", 1250, 1400, "recommender")
    w.truth("losing_data", 1400, w.seconds, "recommender")
    w.truth("ok", GRACE, 600, "reporter")
    w.truth("ok|stopped|falling_behind|at_risk", 600, 630 + GRACE, "reporter")
    w.truth("at_risk", 630 + GRACE, 600 + 540, "reporter")
    w.truth("at_risk|losing_data", 600 + 540, 1260 + GRACE, "reporter")
    w.truth("losing_data", 1260 + GRACE, w.seconds, "reporter")
    return w


@story
def continuing_loss() -> World:
    w = World(
        "continuing-loss",
        """A topic keeps records for ten minutes, and every 20 s deletes what is older. Its consumer takes 20 of 50
        records per second from minute 5 on. Once it is ten minutes late, it loses three of five records, on and on:
        most samples do not show it, because it has gone on with the oldest record there is before the next one.""",
        minutes=75,
    )
    w.topic("web-sessions", rate=50, kept_s=600, retention_ms=600_000, segment_s=20)
    group = w.group("recommender", {"recommender-1": pairs("web-sessions", 1)}, commit_every_s=1)
    group.speed["web-sessions", 0] = steps((0, 400), (300, 20))
    w.run()
    w.truth("ok", GRACE, 300, "recommender")
    w.truth("ok|falling_behind|at_risk", 300, 300 + TREND, "recommender")
    w.truth("at_risk", 300 + TREND, 1250, "recommender")
    w.truth("at_risk|losing_data", 1250, 1400, "recommender")
    w.truth("losing_data", 1400, w.seconds, "recommender")
    return w


@story
def burst_outruns_retention() -> World:
    w = World(
        "burst-outruns-retention",
        """Within a minute 300,000 records come to a topic that keeps them for half an hour, and then as few as before.
        One consumer reads 100 a second: from then on less is unread all the time, but it takes 50 minutes for what is
        kept for 30. The other one reads 400 a second and gets through the same burst in time.""",
        minutes=60,
    )
    w.topic(
        "imports",
        rate=steps((0, 10), (600, 5000), (660, 10)),
        kept_s=1800,
        retention_ms=1_800_000,
    )
    w.group("thumbnailer", {"thumbnailer-1": pairs("imports", 1)}, speed=100)
    w.group("indexer", {"indexer-1": pairs("imports", 1)}, speed=400)
    w.run()
    loses = 600 + 1800
    w.truth("ok", GRACE, 600, "thumbnailer")
    w.truth("at_risk", 660 + TREND, loses - 1, "thumbnailer")
    # Two fifths of the burst are unread when it is deleted, within a minute; what came after it is soon read.
    w.truth("losing_data", loses + 60, loses + 60, "thumbnailer")
    w.truth("ok", loses + 60 + 600, w.seconds, "thumbnailer")
    w.truth("ok", GRACE, 600, "indexer")
    w.truth("catching_up", 660 + TREND, 600 + 720, "indexer")
    w.truth("ok", 600 + 900, w.seconds, "indexer")
    return w


@story
def streams_purge() -> World:
    w = World(
        "streams-purge",
        """Kafka Streams deletes what it has read: every 30 s it commits on its repartition topic, which keeps records
        for ever, and has the records before the commit deleted. A job does the same on a topic that keeps a week. Both
        do so between the collector's two looks, at the commits and at the logs, so that the log seems to begin behind
        what was committed. Nothing is lost by it. On a third topic that keeps records for ever somebody deletes by hand
        what a consumer that hangs has not read: that is a loss.""",
        minutes=45,
    )
    topics = {
        "app": w.topic("app-repartition", partitions=2, rate=50),
        "importer": w.topic("import-queue", rate=20, retention_ms=604_800_000),
    }
    purging = []
    for name, topic in topics.items():
        owned = pairs(topic.name, len(topic.high))
        group = w.group(name, {f"{name}-1": owned}, speed=400, commits=False)
        group.committed |= dict.fromkeys(owned, 0)
        purging.append((topic, group))
    audit = w.topic("audit", rate=10)
    hangs = w.group("auditor", {"auditor-1": pairs("audit", 1)})
    hangs.speed["audit", 0] = steps((0, 400), (900, 0))

    def purge(second: float) -> None:
        if second % 30:
            return
        for topic, group in purging:
            for pair, position in group.position.items():
                group.committed[pair] = topic.start[pair[1]] = int(position)

    def delete_by_hand() -> None:
        audit.start[0] = 15_000

    w.between_reads(purge)
    w.at(1801, delete_by_hand)
    w.run()
    for name in topics:
        w.truth(START, 0, GRACE, name)
        w.truth("ok", GRACE, w.seconds, name)
    w.truth("ok", GRACE, 900, "auditor")
    w.truth("stalled", 960 + GRACE, 1800, "auditor")
    # What a client had deleted is believed to be lost once the group was behind it for longer than a minute.
    w.truth("stalled|losing_data", 1801, 1801 + 90, "auditor")
    w.truth("losing_data", 1801 + 90, w.seconds, "auditor")
    return w


@story
def retention_by_size() -> World:
    w = World(
        "retention-by-size",
        """A topic keeps the newest 40,000 records, however old. Its consumer hangs, its log start comes nearer by as
        much as is written, and overtakes the commit after a quarter of an hour.""",
        minutes=45,
    )
    w.topic("telemetry", rate=40, records=60_000, kept_records=40_000, retention_bytes=40_000_000)
    group = w.group("aggregator", {"aggregator-1": pairs("telemetry", 1)})
    group.speed["telemetry", 0] = steps((0, 400), (900, 0))
    w.run()
    w.truth("ok", GRACE, 900, "aggregator")
    w.truth("ok|stalled|falling_behind|at_risk", 900, 960 + GRACE, "aggregator")
    w.truth("at_risk", 960 + GRACE, 1850, "aggregator")
    w.truth("at_risk|losing_data", 1850, 2000, "aggregator")
    w.truth("losing_data", 2000, w.seconds, "aggregator")
    return w


@story
def retention_large_segments() -> World:
    w = World(
        "retention-large-segments",
        """A topic keeps the newest 180,000 records in segments of 90,000, one of which is written in 75 minutes: four
        times in as many hours and a half the log start jumps, and between two jumps it stands still for longer than
        an hour. After an hour one consumer reads only a fifth of what is written. It loses records by the fourth jump,
        by none of the others, and is warned an hour before that. Another one hangs, is set back by hand, and loses by
        the next jump already.""",
        minutes=275,
        interval_s=60,
        risk_horizon_s=3600,
    )
    # The segments are full after 1,750 s, and after 4,500 s more each; the broker looks every five minutes.
    w.topic(
        "clicks",
        rate=20,
        records=235_000,
        kept_records=180_000,
        segment_records=90_000,
        segment_s=300,
        retention_bytes=180_000_000,
    )
    # The log starts at 90,000, 180,000, 270,000 and 360,000 in turn; it is at 307,000 when it becomes slow.
    slow = w.group("archiver", {"archiver-1": pairs("clicks", 1)})
    slow.speed["clicks", 0] = steps((0, 200), (3600, 4))
    hangs = w.group("backfill", {"backfill-1": pairs("clicks", 1)})
    hangs.speed["clicks", 0] = steps((0, 200), (3600, 0))

    def set_back() -> None:
        hangs.position["clicks", 0] = hangs.committed["clicks", 0] = 100_000

    w.at(4500, set_back)
    w.run()
    loses = 15_300
    w.truth("ok", 180, 3600, "archiver")
    # The rates of five minutes are known to a few percent, and so is an hour.
    w.truth("falling_behind", 3600 + 900, loses - 3600 - 300, "archiver")
    w.truth("at_risk", loses - 3600 + 300, loses - 1, "archiver")
    # It goes on with the oldest there is, and nothing more is lost until the next jump.
    w.truth("losing_data", loses, loses, "archiver")
    w.truth("lagging|falling_behind|at_risk", loses + 60 + 300, w.seconds, "archiver")
    loses = 6300
    w.truth("ok", 180, 3600, "backfill")
    w.truth("stalled", 3600 + 60 + 3 * 60, 4499, "backfill")
    w.truth("at_risk", 4500 + TREND, loses - 1, "backfill")
    w.truth("losing_data", loses + 60, w.seconds, "backfill")
    return w


@story
def rebalancing_storm() -> World:
    w = World(
        "rebalancing-storm",
        """An autoscaler adds and removes an instance all the time for a quarter of an hour. The group reads what there
        is between two rebalances, so there is no backlog, but who owns what is never settled for long. Then the
        autoscaler is fixed and the group is as it was.""",
        minutes=45,
    )
    w.topic("stock", partitions=4, rate=10)
    steady = pairs("stock", 4)
    group = w.group("stock-cache", {"stock-cache-1": steady}, speed=500, commit_every_s=1)
    states = ["PreparingRebalance", "CompletingRebalance", "Stable"]

    def storm(second: float) -> None:
        if not 900 <= second < 1800:
            return
        phase = int(second - 900) % 13
        group.state = states[0] if phase < 6 else states[1] if phase < 8 else states[2]
        visitor = f"stock-cache-{2 + int(second - 900) // 13}"
        if group.state == "Stable":
            group.members = {"stock-cache-1": steady[:2], visitor: steady[2:]}
        else:
            group.members = {"stock-cache-1": [], visitor: []}

    def settle() -> None:
        group.state, group.members = "Stable", {"stock-cache-1": steady}

    w.every_second(storm)
    w.at(1800, settle)
    w.run()
    w.truth("ok", GRACE, 900, "stock-cache")
    w.truth("ok|unknown:rebalancing", 900, 1080, "stock-cache")
    w.truth("unknown:rebalancing", 1080, 1800, "stock-cache")
    # Rebalances are counted over five minutes.
    w.truth("ok|unknown:rebalancing", 1800, 2100, "stock-cache")
    w.truth("ok", 2100, w.seconds, "stock-cache")
    return w


def loop_of_crashes(
    w: World, group: Group, owned: list[tuple[str, int]], *, period_s: int, up_s: int, from_s: float, to_s: float
) -> None:
    """From one second to another a group's only member is killed each ``period_s``, ``up_s`` after it has begun to
    read. Its place is not free before its session ends, so that the group rebalances for the last seconds before it is
    back. What it had read and not committed it reads again."""

    def happen(now: float) -> None:
        if not from_s <= now <= to_s:
            return
        if now == to_s:
            group.members, group.state, group.commits = {f"{group.name}-fixed": owned}, "Stable", True
            return
        restarts, phase = divmod(int(now - from_s), period_s)
        is_up = phase < up_s
        member = f"{group.name}-{1 + restarts}"
        group.state = "PreparingRebalance" if phase >= period_s - 8 else "Stable"
        group.members = {member: [] if group.state == "PreparingRebalance" else owned}
        group.commits = is_up
        if not is_up:
            group.position.update({pair: float(group.committed[pair] or 0) for pair in owned})

    w.every_second(happen)


@story
def crash_loop() -> World:
    breaks, mended = 900.0, 5400.0
    w = World(
        "crash-loop",
        """Three services are killed again and again from minute 15 on, and mended at minute 90. Invoices is killed each
        minute, 20 s after it has begun to read, and in that time reads a fifth less than is written in the minute:
        though it commits all the time, and nobody stands still, its oldest unread record gets older and older. Exports
        is killed every two minutes and reads an eighth too little. Previews is killed as often as Invoices and reads
        what there is each time: it is restless, and never late. Reports is never killed: it reads half of what is
        written for twenty minutes, and then keeps pace, with its backlog of ten minutes, until minute 90.""",
        minutes=130,
        evaluate_every_s=60,
        lag_objective_s=300,
    )
    w.topic("invoices", partitions=2, rate=60)
    w.topic("exports", rate=40)
    w.topic("previews", rate=20)
    w.topic("reports", rate=30)
    reports = w.group("reports", {"reports-1": pairs("reports", 1)}, commit_every_s=5)
    reports.speed["reports", 0] = steps((0, 240), (breaks, 15), (breaks + 1200, 30), (mended, 240))
    for name, partitions, share, period_s, up_s in (
        ("invoices", 2, 0.8, 60, 20),
        ("exports", 1, 0.875, 120, 45),
        ("previews", 1, 3.0, 60, 20),
    ):
        owned = pairs(name, partitions)
        group = w.group(name, {f"{name}-0": owned}, commit_every_s=5)
        rate = w.topics[name].rate(0.0)
        slow = rate * share * period_s / up_s
        for pair in owned:
            group.speed[pair] = steps((0, 8 * rate), (breaks, slow), (mended, 8 * rate))
        loop_of_crashes(w, group, owned, period_s=period_s, up_s=up_s, from_s=breaks, to_s=mended)
    w.run()
    for name in ("invoices", "exports", "previews", "reports"):
        w.truth("ok", GRACE, breaks, name)
    # What is unread gets older by the share that is not read: from when it is older than the objective no word may hide
    # it. Rebalances are counted over five minutes.
    behind = "falling_behind|lagging|unknown:rebalancing"
    w.truth(behind, breaks + 300 / (1 - 0.8) + 120, mended, "invoices")
    w.truth(behind, breaks + 300 / (1 - 0.875) + 240, mended, "exports")
    w.truth("ok|unknown:rebalancing", breaks, mended + 300, "previews")
    w.truth("falling_behind", breaks + TREND, breaks + 1200, "reports")
    # The window that must agree is a quarter of an hour long.
    w.truth("lagging", breaks + 1200 + 900, mended, "reports")
    for name in ("invoices", "exports", "reports"):
        w.truth("ok", mended + TREND + 300, w.seconds, name)
    w.truth("ok", mended + 300, w.seconds, "previews")
    return w


@story
def one_rebalance() -> World:
    w = World(
        "one-rebalance",
        """A deployment replaces the two instances of a group one after the other. Each time the group rebalances for a
        few seconds and goes on: it is never in trouble, and a single rebalance is no storm.""",
        minutes=30,
    )
    w.topic("orders", partitions=4, rate=25)
    group = w.group(
        "billing", {"billing-1": pairs("orders", 2), "billing-2": pairs("orders", 2, 2)}, speed=500, commit_every_s=5
    )

    def replace(old: str, new: str) -> Callable[[], None]:
        def happen() -> None:
            group.members[new] = group.members.pop(old)
            group.state = "Stable"

        return happen

    def unsettle() -> None:
        group.state = "PreparingRebalance"

    w.at(598, unsettle)
    w.at(606, replace("billing-1", "billing-3"))
    w.at(658, unsettle)
    w.at(666, replace("billing-2", "billing-4"))
    w.run()
    w.truth("ok", GRACE, w.seconds, "billing")
    return w


@story
def replay_from_start() -> World:
    w = World(
        "replay-from-start",
        """Somebody stops the group, resets its offsets to the beginning and starts it again. It reads 20 minutes of
        history once more, far faster than new records come, and passes the point where it was after about ten
        minutes. Until then what it does is a repetition; from then on it is back to normal.""",
        minutes=45,
    )
    w.topic("events", partitions=2, rate=25, records=30_000)
    group = w.group("projection", {"projection-1": pairs("events", 2)}, speed=75)

    def reset() -> None:
        for pair in pairs("events", 2):
            group.committed[pair] = 0
            group.position[pair] = 0

    def restart() -> None:
        group.members, group.state = {"projection-1": pairs("events", 2)}, "Stable"

    w.at(593, leave(group))
    w.at(603, reset)
    w.at(608, restart)
    w.run()
    # About 45,000 records at 75 per second: the old place is passed after 600 s, the end reached at 1,510 s.
    w.truth("ok", GRACE, 600, "projection")
    w.truth("rewound", 603 + GRACE, 1150, "projection")
    w.truth("rewound|catching_up", 1150, 1300, "projection")
    w.truth("catching_up", 1300, 1420, "projection")
    w.truth("catching_up|ok", 1420, 1600, "projection")
    w.truth("ok", 1600, w.seconds, "projection")
    return w


@story
def falls_behind_and_recovers() -> World:
    w = World(
        "falls-behind-and-recovers",
        """From minute 10 to minute 25 a slow database halves the consumer's speed; then the database recovers, and the
        backlog is worked off within ten minutes.""",
        minutes=55,
    )
    w.topic("orders", partitions=2, rate=60)
    group = w.group("invoicing", {"invoicing-1": pairs("orders", 2)}, commit_every_s=5)
    for pair in pairs("orders", 2):
        group.speed[pair] = steps((0, 110), (600, 30), (1500, 105))
    w.run()
    # 27,000 records, worked off at 45 per second: gone at second 2,100.
    w.truth("ok", GRACE, 600, "invoicing")
    w.truth("ok|falling_behind", 600, 600 + TREND, "invoicing")
    w.truth("falling_behind", 600 + TREND, 1500, "invoicing")
    w.truth("falling_behind|lagging|catching_up", 1500, 1500 + TREND, "invoicing")
    w.truth("catching_up", 1500 + TREND, 2030, "invoicing")
    w.truth("catching_up|ok", 2030, 2200, "invoicing")
    w.truth("ok", 2200, w.seconds, "invoicing")
    return w


@story
def poison_pill() -> World:
    w = World(
        "poison-pill",
        """One record of partition 1 cannot be processed: its consumer is alive and tries again and again. The other
        partitions of the same instance and the other instance go on as ever, so the group as a whole hardly slows
        down. After 20 minutes the record is skipped.""",
        minutes=45,
    )
    w.topic("uploads", partitions=4, rate=15)
    group = w.group(
        "thumbnailer",
        {"thumbnailer-1": pairs("uploads", 2), "thumbnailer-2": pairs("uploads", 2, 2)},
        speed=60,
        hosts={"thumbnailer-1": "10.0.0.7", "thumbnailer-2": "10.0.0.8"},
    )
    group.speed["uploads", 1] = steps((0, 60), (600, 0), (1805, 90))
    w.run()
    w.truth("ok", GRACE, 600, "thumbnailer")
    w.truth("ok|falling_behind|stalled|unknown:too_few_samples", 600, 660 + GRACE, "thumbnailer", "uploads", 1)
    w.truth("stalled", 660 + GRACE, 1800, "thumbnailer", "uploads", 1)
    w.truth("stalled", 660 + GRACE, 1800, "thumbnailer")
    for partition in (0, 2, 3):
        w.truth("ok", GRACE, w.seconds, "thumbnailer", "uploads", partition)
    # 18,000 records, worked off at 75 per second.
    w.truth("stalled|falling_behind|lagging|catching_up|ok", 1805, 1805 + TREND + GRACE, "thumbnailer", "uploads", 1)
    w.truth("ok", 1800 + TREND + 2 * GRACE, w.seconds, "thumbnailer")
    return w


@story
def ghost_topic() -> World:
    w = World(
        "ghost-topic",
        """The group moves from one topic to another with a deployment at minute 10. Producers still write to the old
        topic, and the commits of the group on it stay: a backlog on paper that nobody is ever going to read. It is
        a ghost and must neither stop nor spoil the group. Beside it stands a group that really died: its lag counts.
        """,
        minutes=35,
    )
    w.topic("orders-v1", partitions=2, rate=10)
    w.topic("orders-v2", partitions=2, rate=20)
    group = w.group("loyalty", {"loyalty-1": pairs("orders-v1", 2)}, commit_every_s=5)
    dead = w.group("old-report", {"old-report-1": pairs("orders-v1", 2)}, commit_every_s=5)

    def move() -> None:
        group.members, group.state = {"loyalty-2": pairs("orders-v2", 2)}, "Stable"
        for pair in pairs("orders-v2", 2):
            w.follow(group, pair, speed=500)

    w.at(600, leave(dead))
    w.at(601, move)
    w.run()
    w.truth("ok", GRACE, 600, "loyalty")
    for partition in (0, 1):
        w.truth("ok|falling_behind|unknown:too_few_samples|ghost", 601, 661 + GRACE, "loyalty", "orders-v1", partition)
        w.truth("ghost", 661 + GRACE, w.seconds, "loyalty", "orders-v1", partition)
        w.truth("ok", 601 + 2 * GRACE, w.seconds, "loyalty", "orders-v2", partition)
    w.truth("ok", 661 + GRACE, w.seconds, "loyalty")
    w.truth("stopped", 630 + GRACE, w.seconds, "old-report")
    return w


@story
def offsets_expired() -> World:
    w = World(
        "offsets-expired",
        """The broker keeps the commits of a group without members for 20 minutes. A weekly job has ended; nothing is
        written to its topic either, so it has no lag, and still it would have to begin anew next week: that is a loss
        too, announced as soon as the group is empty. Then the commits are gone.""",
        minutes=40,
        offsets_retention_s=1200,
    )
    w.topic("statements", partitions=2, rate=steps((0, 10), (590, 0)))
    group = w.group("weekly-job", {"weekly-job-1": pairs("statements", 2)})

    def expire() -> None:
        group.committed = {}

    w.at(605, leave(group))
    w.at(1810, expire)
    w.run()
    w.truth("ok", GRACE, 600, "weekly-job")
    w.truth("ok|at_risk", 605, 605 + GRACE, "weekly-job")
    w.truth("at_risk", 605 + GRACE, 1800, "weekly-job")
    w.truth("at_risk|unknown:expired", 1800, 1810 + GRACE, "weekly-job")
    w.truth("unknown:expired", 1810 + GRACE, w.seconds, "weekly-job")
    return w


@story
def partition_added() -> World:
    w = World(
        "partition-added",
        """A topic of two partitions gets two more. The group rebalances, takes them over, and commits on them half a
        minute later. Until then nothing can be said of the new ones; the old ones are as they were.""",
        minutes=30,
        only_changes=True,
    )
    topic = w.topic("orders", partitions=2, rate=30)
    group = w.group("billing", {"billing-1": pairs("orders", 2)}, commit_every_s=5)

    def grow() -> None:
        topic.high += [0.0, 0.0]
        topic.start += [0, 0]
        topic.watermarks += [[], []]
        group.members = {"billing-1": pairs("orders", 4)}

    def begin() -> None:
        for pair in pairs("orders", 2, 2):
            w.follow(group, pair, speed=300, at=0)

    w.at(604, grow)
    w.at(634, begin)
    w.run()
    w.truth("ok", GRACE, 600, "billing")
    for partition in (0, 1):
        w.truth("ok", GRACE, w.seconds, "billing", "orders", partition)
    for partition in (2, 3):
        w.truth("unknown:no_commit", 615, 630, "billing", "orders", partition)
        w.truth(
            "unknown:no_commit|unknown:too_few_samples|catching_up|ok",
            630,
            634 + 2 * GRACE,
            "billing",
            "orders",
            partition,
        )
        w.truth("ok", 634 + 2 * GRACE, w.seconds, "billing", "orders", partition)
    w.truth("ok", 634 + 2 * GRACE, w.seconds, "billing")
    return w


@story
def collector_gap() -> World:
    w = World(
        "collector-gap",
        """The collector is down for ten minutes. One group goes on as if nothing had happened; one dies unseen and is
        found dead; one is reset to the beginning unseen and found reading again. A gap in the samples is not a stall,
        and what happened in it is told as soon as it can be.""",
        minutes=45,
    )
    w.silent = [(900, 1500)]
    w.topic("orders", partitions=2, rate=30, records=10_000)
    w.group("billing", {"billing-1": pairs("orders", 2)}, commit_every_s=5)
    dies = w.group("mailer", {"mailer-1": pairs("orders", 2)}, commit_every_s=5)
    w.at(1100, leave(dies))
    w.run()
    for group in ("billing", "mailer"):
        w.truth("ok", GRACE, 900, group)
    w.truth("ok|unknown:too_few_samples", 1500, 1500 + GRACE, "billing")
    w.truth("ok", 1500 + GRACE, w.seconds, "billing")
    w.truth("stopped", 1500 + 30 + 2 * GRACE, w.seconds, "mailer")
    return w


@story
def unreadable_partition() -> World:
    w = World(
        "unreadable-partition",
        """The broker that leads one topic is gone for five minutes: its high watermark cannot be read. What the group
        does on the other topic is known all along and stays known; what cannot be read is unknown, never 0.""",
        minutes=25,
    )
    topic = w.topic("prices", partitions=1, rate=20)
    w.topic("orders", partitions=2, rate=20)
    w.group("shop", {"shop-1": pairs("prices", 1) + pairs("orders", 2)})

    def fail() -> None:
        topic.readable = False

    def recover() -> None:
        topic.readable = True

    w.at(601, fail)
    w.at(901, recover)
    w.run()
    w.truth("ok", GRACE, 600, "shop")
    w.truth("unknown:unreadable", 615, 900, "shop", "prices", 0)
    w.truth("unknown:unreadable", 615, 900, "shop")
    for partition in (0, 1):
        w.truth("ok", GRACE, w.seconds, "shop", "orders", partition)
    w.truth("ok|catching_up|unknown:too_few_samples", 915, 915 + 2 * GRACE, "shop")
    w.truth("ok", 915 + 2 * GRACE, w.seconds, "shop")
    return w


@story
def steady_backlog() -> World:
    w = World(
        "steady-backlog",
        """A consumer is as fast as its producers, no faster, and starts nine minutes behind. Nothing grows and nothing
        shrinks, but every record waits for nine minutes, which is longer than the five that were agreed on. A
        second group is three minutes behind in the same way, which is within what was agreed.""",
        minutes=40,
    )
    w.topic("trades", partitions=1, rate=50, records=40_000)
    for name, behind in (("settlement", 540), ("quotes", 180)):
        group = w.group(name, {f"{name}-1": pairs("trades", 1)})
        w.follow(group, ("trades", 0), speed=lambda _: 100 * w.random.random(), at=40_000 - 50 * behind)
    w.run()
    # How old the backlog is can only be told once the records that were written before the first sample are read.
    w.truth("lagging|unknown:too_few_samples", GRACE, 540 + GRACE, "settlement")
    w.truth("lagging", 540 + GRACE, w.seconds, "settlement")
    w.truth("ok|unknown:too_few_samples", GRACE, 180 + 2 * GRACE, "quotes")
    w.truth("ok", 180 + 2 * GRACE, w.seconds, "quotes")
    return w


@story
def bursts() -> World:
    w = World(
        "bursts",
        """Every four minutes a batch of 6,000 records arrives within half a minute and is worked off in the next two.
        The backlog rises and falls like a saw, and the group is never behind.""",
        minutes=60,
    )
    w.topic("imports", partitions=2, rate=lambda now: 200.0 if now % 240 < 30 else 2.0)
    w.group("importer", {"importer-1": pairs("imports", 2)}, speed=55, commit_every_s=3)
    w.run()
    w.truth("ok|catching_up|unknown:too_few_samples", 0, 240, "importer")
    w.truth("ok|catching_up", 240, w.seconds, "importer")
    return w


@story
def foreign_commit() -> World:
    w = World(
        "foreign-commit",
        """A script commits an offset far beyond the end of the log, by mistake. The difference would be a negative lag;
        it is no lag at all, and it stays unknown until somebody commits what can be.""",
        minutes=20,
    )
    w.topic("orders", rate=10)
    group = w.group("audit", {"audit-1": pairs("orders", 1)})

    def spoil() -> None:
        group.commits = False
        group.committed["orders", 0] = 900_000_000

    def repair() -> None:
        group.commits = True

    w.at(403, spoil)
    w.at(703, repair)
    w.run()
    w.truth("ok", GRACE, 400, "audit")
    w.truth("unknown:out_of_range", 405, 700, "audit")
    w.truth("ok", 720 + GRACE, w.seconds, "audit")
    return w


@story
def compaction() -> World:
    w = World(
        "compaction",
        """A topic that is only compacted: of its first 200,000 offsets nearly all are gone, and its readers pass the
        holes in leaps. A cache reads it from the beginning: its lag counts offsets, most of which hold no record any
        more, and shrinks unevenly. Another one is at the end. A third is switched off at minute 15: its lag counts,
        but though a retention of ten minutes is configured, nothing will be deleted and nothing is at risk.""",
        minutes=40,
    )
    w.topic("prices", rate=20, records=200_000, retention_ms=600_000, cleanup_policy="compact")
    w.group("price-cache", {"price-cache-1": pairs("prices", 1)}, commit_every_s=5)
    off = w.group("price-audit", {"price-audit-1": pairs("prices", 1)}, commit_every_s=5)
    loader = w.group("price-loader", commit_every_s=5)

    def load() -> None:
        loader.members, loader.state = {"price-loader-1": pairs("prices", 1)}, "Stable"
        # Where it meets a hole it is at its end at once: 400 offsets per second on the average, in 250 when it meets
        # none and 3,250 when it meets one.
        w.follow(loader, ("prices", 0), speed=lambda _: 3250.0 if w.random.random() < 0.05 else 250.0, at=0)

    w.at(300, load)
    w.at(901, leave(off))
    w.run()
    w.truth("ok", GRACE, w.seconds, "price-cache")
    w.truth("ok", GRACE, 900, "price-audit")
    w.truth("stopped", 930 + GRACE, w.seconds, "price-audit")
    # 206,000 offsets, 380 per second nearer: gone after 540 s, at second 840.
    w.truth("catching_up|ok|unknown:too_few_samples", 300 + GRACE, 300 + TREND, "price-loader")
    w.truth("catching_up", 300 + TREND, 760, "price-loader")
    w.truth("catching_up|ok", 760, 960, "price-loader")
    w.truth("ok", 960, w.seconds, "price-loader")
    return w


@story
def weekly_batch() -> World:
    hour, week = 3600.0, 7 * 86_400.0
    first, second = 6 * hour, 6 * hour + week
    w = World(
        "weekly-batch",
        """A report is made every Sunday at two in the morning: an export writes 1.2 million records within five
        minutes, the scheduler starts the job while it still does, and the job reads for an hour and a half. In between
        the group has no members for a week and nothing to read. It was agreed that the report may take six hours, and
        offsets are kept for a fortnight: nothing is ever wrong. Sampled every ten minutes.""",
        minutes=7 * 24 * 60 + 12 * 60,
        interval_s=600,
        evaluate_every_s=1800,
        offsets_retention_s=2 * week,
        lag_objective_s=6 * hour,
        only_changes=True,
        step_s=60,
    )
    topic = w.topic(
        "week-closing",
        rate=lambda now: 4000.0 if any(start + 60 <= now < start + 360 for start in (first, second)) else 0.0,
        retention_ms=604_800_000,
        records=1_200_000,
    )
    group = w.group("weekly-report", commit_every_s=60)
    group.committed["week-closing", 0] = topic.end(0)
    group.speed["week-closing", 0] = lambda _: 220.0
    group.position["week-closing", 0] = topic.end(0)

    def start() -> None:
        group.members, group.state = {"weekly-report-1": pairs("week-closing", 1)}, "Stable"

    for at in (first, second):
        w.at(at + 300, start)
        w.at(at + 300 + 2 * hour, leave(group))
    w.run()
    w.truth(START, 0, 2 * w.interval_s, "weekly-report")
    truths = ((3 * w.interval_s, first), (first + 2 * hour, second), (second + 2 * hour, w.seconds))
    for since, until in truths:
        w.truth("ok", since, until, "weekly-report")
    for start_s in (first, second):
        # Ten minutes from sample to sample: where the lag goes can only be told when the job is nearly done.
        w.truth("ok|catching_up|unknown:too_few_samples", start_s + 1, start_s + 2 * hour - 1, "weekly-report")
    return w


@story
def skip_to_end() -> World:
    w = World(
        "skip-to-end",
        """A consumer of live scores is too slow from minute 5 on. At minute 20 somebody has it skip to the end: what
        is old is worth nothing here, and reading it again was never wanted. From then on it is fast enough. A second
        group was found hanging; its offsets are set to the end while it is off, and it is started again. Nothing is
        lost, stopped or rewound: offsets that leap forward are the end of the trouble.""",
        minutes=40,
    )
    w.topic("scores", partitions=2, rate=40)
    live = w.group("scoreboard", {"scoreboard-1": pairs("scores", 2)}, commit_every_s=5)
    hung = w.group("ticker", {"ticker-1": pairs("scores", 2)}, commit_every_s=5)
    for pair in pairs("scores", 2):
        live.speed[pair] = steps((0, 400), (300, 25), (1201, 400))
        hung.speed[pair] = steps((0, 400), (600, 0), (1201, 400))

    def skip(group: Group) -> Callable[[], None]:
        def happen() -> None:
            for pair in pairs("scores", 2):
                group.position[pair] = group.committed[pair] = w.topics["scores"].end(pair[1])

        return happen

    def restart() -> None:
        hung.members, hung.state = {"ticker-2": pairs("scores", 2)}, "Stable"

    w.at(1201, skip(live))
    w.at(1190, leave(hung))
    w.at(1201, skip(hung))
    w.at(1208, restart)
    w.run()
    w.truth("ok", GRACE, 300, "scoreboard")
    w.truth("ok|falling_behind", 300, 300 + TREND, "scoreboard")
    w.truth("falling_behind", 300 + TREND, 1200, "scoreboard")
    w.truth("ok", 1201 + GRACE, w.seconds, "scoreboard")
    w.truth("ok", GRACE, 600, "ticker")
    w.truth("ok|falling_behind|stalled", 600, 660 + GRACE, "ticker")
    w.truth("stalled", 660 + GRACE, 1189, "ticker")
    w.truth("stalled|stopped|ok", 1190, 1201 + GRACE, "ticker")
    w.truth("ok", 1201 + GRACE, w.seconds, "ticker")
    return w


@story
def leader_change() -> World:
    w = World(
        "leader-change",
        """A broker goes down. For 40 s nobody can write to or read from the topic it led, and the collector, which
        waits for it, misses three samples; in the next one the new leader does not know yet how far the log reaches.
        Who kept pace before does so after, who fell behind still does, and who had stopped is still gone: a gap is
        neither a stop nor a recovery.""",
        minutes=40,
    )
    w.silent = [(1200, 1260)]
    topic = w.topic("orders", partitions=2, rate=lambda now: 0.0 if 1203 <= now < 1243 else 30.0)
    w.group("billing", {"billing-1": pairs("orders", 2)}, speed=200, commit_every_s=5)
    slow = w.group("search-index", {"search-index-1": pairs("orders", 2)}, commit_every_s=5)
    dead = w.group("mailer", {"mailer-1": pairs("orders", 2)}, commit_every_s=5)
    for pair in pairs("orders", 2):
        slow.speed[pair] = steps((0, 200), (300, 20))

    def readable(value: bool) -> Callable[[], None]:
        def happen() -> None:
            topic.readable = value

        return happen

    w.at(601, leave(dead))
    w.at(1203, readable(False))
    w.at(1261, readable(True))
    w.run()
    w.truth("ok", GRACE, 1200, "billing")
    w.truth("unknown:unreadable", 1260, 1260, "billing")
    w.truth("ok", 1260 + GRACE, w.seconds, "billing")
    w.truth("falling_behind", 300 + TREND, 1200, "search-index")
    w.truth("unknown:unreadable", 1260, 1260, "search-index")
    w.truth("falling_behind", 1260 + GRACE, w.seconds, "search-index")
    w.truth("stopped", 631 + GRACE, 1200, "mailer")
    w.truth("unknown:unreadable", 1260, 1260, "mailer")
    w.truth("stopped", 1260 + GRACE, w.seconds, "mailer")
    return w


@story
def clock_jump() -> World:
    forward, back = 900.0, 2100.0

    def clock(now: float) -> float:
        return now if now < forward else now + 300 if now < back else now + 7.5

    w = World(
        "clock-jump",
        """The collector's clock is set: at minute 15 it leaps five minutes ahead, twenty minutes later it is put back.
        After the leap 15 s look like five minutes without a sample. After it is put back two series of samples lie
        between each other on five minutes of the same clock, and in the order of that clock every offset goes back and
        forth. In the world nothing happened at all: one group keeps pace, the other one died at minute 10.""",
        minutes=55,
        clock=clock,
    )
    w.topic("orders", partitions=2, rate=30)
    w.group("billing", {"billing-1": pairs("orders", 2)}, commit_every_s=5)
    dead = w.group("mailer", {"mailer-1": pairs("orders", 2)}, commit_every_s=5)
    w.at(601, leave(dead))
    w.run()
    w.truth("ok", GRACE, forward - 1, "billing")
    w.truth("ok|unknown:too_few_samples", forward, forward + 300 + GRACE, "billing")
    w.truth("ok", forward + 300 + GRACE, back, "billing")
    # While two times lie upon each other, nobody can say how old a record is.
    w.truth("ok|unknown:too_few_samples", back, back + 300 + GRACE, "billing")
    w.truth("ok", back + 300 + GRACE, w.seconds, "billing")
    w.truth("ok", GRACE, 600, "mailer")
    w.truth("stopped", 631 + GRACE, w.seconds, "mailer")
    return w


def main(names: list[str]) -> None:
    for name in names or list(STORIES):
        STORIES[name]().write(HERE)


if __name__ == "__main__":
    main(sys.argv[1:])
