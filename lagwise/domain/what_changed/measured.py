"""Changes in what was measured of a group's work on one topic: its time per message, how busy its threads are, and what
is written and read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lagwise.domain.capacity.block_statistics import rate_of
from lagwise.domain.capacity.saturation import Block
from lagwise.domain.humanise import clock, plural, precise_duration, significant_rate
from lagwise.domain.what_changed.change import Change, ChangeKind
from lagwise.domain.what_changed.levels import Level, WorkStep, level_since, per_message, with_enough_work

#: CPU time per message counts as the cause if it is at least this part of the rise: waiting for a core follows from it.
LEAST_CPU_PART = 0.1
#: Threads that spend less of their time on messages than this, while records are unread, wait for records.
WAITING_FOR_RECORDS = 0.6
#: A group reads less than is written to its topic if it reads no more than this part of it.
MOST_READ = 0.95
#: Consumers that measure themselves show within this time why they read less.
MEASURED_WITHIN = timedelta(seconds=90)
#: A partition is hot if it gets so many times the records of all others together that it got before, and so many times
#: an even share (of few partitions: half of what is above that).
HOT_ODDS_GREW, HOT_TIMES_EVEN = 2.0, 2.0


@dataclass(frozen=True, slots=True)
class RecordsStep:
    """Records from ``start`` to ``end``: of a topic, and of one partition of it."""

    start: datetime
    end: datetime
    records: int
    of_partition: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicWork:
    """A group's work on a topic lately, everything in order of time."""

    topic: str
    work: Sequence[WorkStep] = ()
    written: Sequence[RecordsStep] = ()
    read: Sequence[RecordsStep] = ()
    #: The partition to which most was written, whose records ``written`` tells apart, and what its system calls it.
    hottest: str = ""
    partitions: int = 1
    #: Cores of a node; None is not known.
    cores: float | None = None
    #: What a full downstream does, messages per second; None where it is not known to be full.
    downstream_rate_per_second: float | None = None


def changes_of(work: TopicWork, since: datetime, now: datetime) -> Iterator[Change]:
    """What changed at or after ``since`` and still holds, of all kinds that can be measured."""
    steps = with_enough_work(work.work)
    yield from _hot_partition(work, since, now)
    service = list(_time_per_message(work, steps, since, now))
    yield from service
    if not service:
        yield from _fetching(work, since, now)
    yield from _written(work, since, now)
    yield from _read(work, since, now)


def _time_per_message(work: TopicWork, steps: Sequence[WorkStep], since: datetime, now: datetime) -> Iterator[Change]:
    t1 = per_message(steps, [step.t1_seconds for step in steps])
    waiting = level_since(t1, since)
    if any(step.t2_seconds is None for step in steps):
        if waiting is not None:
            yield _work_rose(work, waiting, now)
        return
    t2 = per_message(steps, [step.t2_seconds or 0.0 for step in steps])
    cpu = level_since(t2, since)
    rise = sum(level.now - level.before for level in (waiting, cpu) if level is not None)
    if cpu is not None and cpu.now - cpu.before >= LEAST_CPU_PART * rise:
        yield _cpu_rose(work, cpu, waiting, now)
    elif waiting is not None:
        yield _waiting_rose(work, waiting, rate_of(t2), now)


def _waiting_rose(work: TopicWork, t1: Level, t2_seconds: float, now: datetime) -> Change:
    return Change(
        kind=ChangeKind.WAITING_ROSE,
        at=t1.at,
        sentence=(
            f"T1 on {work.topic} rose from {precise_duration(t1.before)} to {precise_duration(t1.now)} at "
            f"{clock(t1.at, now)} and T2 stayed at {precise_duration(t2_seconds)}: what its handlers wait for (a "
            "database, a service) got slower, or lets fewer calls through at once."
        ),
        remedy=_more_threads(work, t1.now, t2_seconds),
    )


def _more_threads(work: TopicWork, t1_seconds: float, t2_seconds: float) -> str:
    """Whether more threads would make up for longer waits: threads = C·(T1+T2)/T2 fill C cores."""
    if work.downstream_rate_per_second is not None:
        full = significant_rate(work.downstream_rate_per_second)
        return f"Look at what the handlers call. It is full at about {full}: more threads would not help."
    if work.cores is None or not t2_seconds:
        return "Look at what the handlers call. More threads help only if it can take more calls at once."
    useful = plural(round(work.cores * (t1_seconds + t2_seconds) / t2_seconds), "thread")
    return (
        f"Look at what the handlers call. If it can take more calls at once, more threads make up for it, up to "
        f"{useful} a node."
    )


def _cpu_rose(work: TopicWork, t2: Level, t1: Level | None, now: datetime) -> Change:
    with_t1 = f", and T1 from {precise_duration(t1.before)} to {precise_duration(t1.now)}" if t1 is not None else ""
    return Change(
        kind=ChangeKind.CPU_ROSE,
        at=t2.at,
        sentence=(
            f"T2 on {work.topic} rose from {precise_duration(t2.before)} to {precise_duration(t2.now)} at "
            f"{clock(t2.at, now)}{with_t1}: each message costs more CPU time, so the code or its input (such as bigger "
            "records) changed."
        ),
        remedy="Profile the handler, and compare the records with earlier ones. More threads help only on free cores.",
    )


def _work_rose(work: TopicWork, whole: Level, now: datetime) -> Change:
    return Change(
        kind=ChangeKind.WORK_ROSE,
        at=whole.at,
        sentence=(
            f"The time per message on {work.topic} rose from {precise_duration(whole.before)} to "
            f"{precise_duration(whole.now)} at {clock(whole.at, now)}; which part of it is not known."
        ),
        remedy="Look at what is called for each message, and at the CPU of the consumers.",
    )


def _fetching(work: TopicWork, since: datetime, now: datetime) -> Iterator[Change]:
    """Threads without work beside unread records. Where messages take longer, threads are busier, so this is what is
    left."""
    blocks = [
        Block(step.start.timestamp(), step.start.timestamp() + 1.0, step.busy_share)
        for step in work.work
        if step.busy_share is not None
    ]
    busy = level_since(blocks, since, falls=True)
    if busy is None or busy.now >= WAITING_FOR_RECORDS or not _reads_less(work, busy.at):
        return
    yield Change(
        kind=ChangeKind.FETCHING_SLOWED,
        at=busy.at,
        sentence=(
            f"Handlers on {work.topic} have been busy for {busy.now:.0%} of the time since {clock(busy.at, now)} "
            f"({busy.before:.0%} before), while T1 and T2 did not rise: records reach them slowly, from the broker or "
            "over the network, or the consumers are held up outside their handlers."
        ),
        remedy="Look at the broker's load and disks, its quotas, the network, and what the poll loop does besides.",
    )


def _hot_partition(work: TopicWork, since: datetime, now: datetime) -> Iterator[Change]:
    blocks = [
        Block(step.start.timestamp(), step.start.timestamp() + step.records, step.of_partition)
        for step in work.written
        if step.records
    ]
    share = level_since(blocks, since)
    even = 1.0 / work.partitions
    if share is None or work.partitions < 2:
        return
    grew = share.before * (1 - share.now) * HOT_ODDS_GREW <= share.now * (1 - share.before)
    if not grew or share.now < min(HOT_TIMES_EVEN * even, (1 + even) / 2):
        return
    yield Change(
        kind=ChangeKind.HOT_PARTITION,
        at=share.at,
        sentence=(
            f"{work.hottest} has received {share.now:.0%} of what is written to {work.topic} since "
            f"{clock(share.at, now)} ({share.before:.0%} before): a hot key, which one member has to read alone."
        ),
        remedy="Find the key, and spread it or have its records processed elsewhere. More members do not help.",
    )


def _written(work: TopicWork, since: datetime, now: datetime) -> Iterator[Change]:
    written = level_since(_rates(work.written), since)
    if written is None:
        return
    yield Change(
        kind=ChangeKind.PRODUCE_RATE_ROSE,
        at=written.at,
        sentence=(
            f"Since {clock(written.at, now)} {significant_rate(written.now)} have been written to {work.topic} "
            f"({significant_rate(written.before)} before)."
        ),
        remedy="The capacity page shows how much the group can read.",
    )


def _read(work: TopicWork, since: datetime, now: datetime) -> Iterator[Change]:
    read = level_since(_rates(work.read), since, falls=True)
    if read is None or not _reads_less(work, read.at):
        return
    if work.work and now - read.at < MEASURED_WITHIN:
        return
    yield Change(
        kind=ChangeKind.CONSUME_RATE_FELL,
        at=read.at,
        sentence=(
            f"Since {clock(read.at, now)} it has read {significant_rate(read.now)} of {work.topic} "
            f"({significant_rate(read.before)} before): each message takes longer, or records reach it slowly. "
            "Which of the two is not measured."
        ),
        remedy="Look at what the handlers call, at the CPU of the consumers and at the broker. A probe tells which.",
    )


def _reads_less(work: TopicWork, since: datetime) -> bool:
    """Whether less is read than written: without that, less is read because a backlog is gone, or less is written."""
    written, read = (sum(step.records for step in steps if step.start >= since) for steps in (work.written, work.read))
    return read <= MOST_READ * written


def _rates(steps: Sequence[RecordsStep]) -> list[Block]:
    return [Block(step.start.timestamp(), step.end.timestamp(), step.records) for step in steps]
