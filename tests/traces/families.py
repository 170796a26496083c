"""Families of histories: one kind of trouble, or of what only looks like it, in many sizes and rhythms.

Each function makes one history of its family from a seed, which draws all that may differ: how much is written, on how
many partitions, how often it is sampled and committed, and how large the trouble is. The truth is told from the state
of the simulation and from what statistics can know, never from what any rule says.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise

from tests.traces.certainty import sawtooth_hides_s, sure_after, usual_walk_s, usually_told_s
from tests.traces.history import REBALANCING, STRETCH_S, Habits, History
from tests.traces.in_memory import OBJECTIVE_S
from tests.traces.made_day import Chance
from tests.traces.turns import TakingTurns

#: Where lag swings up and down, well within the objective.
FINE = "ok|catching_up"
HORIZON_S = 6 * 3600.0
#: By then four commits have been seen of whoever commits each two minutes.
SETTLED_S = 600.0
MINUTES = 60.0
HOUR_S = 3600.0

FAMILIES: dict[str, Callable[[int], History]] = {}


def family(make: Callable[[int], History]) -> Callable[[int], History]:
    FAMILIES[make.__name__.replace("_", "-")] = make
    return make


def begun(name: str, seed: int) -> tuple[Chance, Habits]:
    """The draws of a history, and its habits, which are the first of them."""
    chance = Chance(f"{name} {seed}")
    return chance, Habits.drawn(chance)


def drained_after(history: History, from_s: float, partition: int) -> float:
    """When a partition has been read after a moment: no more is unread than between two commits. Never is the end."""
    slack = 2 * history.habits.beat_s * history.share
    times = history.times(from_s, history.seconds)
    return next((at for at in times if history.lag(partition, at) < slack), history.seconds)


def recovers(history: History, from_s: float, told_s: float, until_s: float = math.inf) -> None:
    """From a moment on all that is unread is read, faster than it is written: it catches up from ``told_s`` on, until
    it nearly has, and is well five minutes later."""
    beat_s = history.habits.beat_s
    drained = [drained_after(history, from_s, p) for p in history.every]
    for p, at in zip((None, *history.every), (max(drained), *drained), strict=True):
        nearly_s, well_s = at - 60 - 2 * beat_s, at + 5 * MINUTES + beat_s
        history.truth("catching_up", told_s, min(nearly_s, until_s), p)
        history.truth(FINE, max(told_s, nearly_s + 1), min(well_s, until_s), p)
        history.truth("ok", max(told_s, well_s + 1), until_s, p)


@family
def slow_leak(seed: int) -> History:
    """A few percent of what is written are not read, for hours. Growth is told when statistics can know of it: after
    twice the time that Student's test needs for the walk, and a line for the teeth of the commits. The leak ends at a
    level, within the objective or beyond it, which is held as by a throttle; or capacity doubles. That it has ended
    may be told as late as its beginning, or 20 minutes later."""
    habits = Habits.drawn(Chance(f"slow-leak {seed}"))
    percent = (1.5, 2.0, 3.0, 5.0, 10.0, 30.0)[seed % 6]
    leak = percent / 100
    ending = ("within", "beyond", "doubles")[(seed + seed // 6) % 3]
    level_s = 230 - habits.commit_every_s - habits.interval_s if ending == "within" else 450.0
    lasts_s = level_s / leak if ending == "within" else min(4 * HOUR_S, max(2 * HOUR_S, level_s / leak))
    lasts_s -= lasts_s % 60
    since_s = 20 * MINUTES
    ends_s = since_s + lasts_s
    settles_s = max(20 * MINUTES, usually_told_s(habits, leak))
    history = History("slow-leak", seed, habits, (ends_s + settles_s + 40 * MINUTES) / HOUR_S)

    def reads(now: float, unread_s: float) -> float:
        if now < since_s:
            return 1.6
        if now < ends_s:
            return 1 - leak
        if ending == "doubles":
            return 2 * (1 - leak)
        return 1 + (unread_s - leak * lasts_s) / 600

    history.reads = reads
    history.drawn = {"leak": f"{percent:g} %", "for": f"{lasts_s / 60:.0f} min", "ending": ending}
    history.run()
    history.truth_of_all(FINE, SETTLED_S, since_s - 1)
    told = [_told_of_leak(history, p, leak, since_s, ends_s) for p in history.every]
    for p, told_s in zip((None, *history.every), (min(told), *told), strict=True):
        old_s = next((at for at in history.times(since_s, told_s) if history.age_s(p, at) > OBJECTIVE_S), math.inf)
        history.truth("ok|falling_behind", since_s, min(told_s, old_s - 1), p)
        history.truth("ok|falling_behind|lagging", old_s, told_s, p)
        history.truth("falling_behind", told_s + 1, ends_s - 1, p)
    if ending == "doubles":
        recovers(history, ends_s, ends_s + max(5 * MINUTES, habits.told_s))
    else:
        _level(history, ends_s + settles_s)
    return history


def _told_of_leak(history: History, p: int, leak: float, since_s: float, ends_s: float) -> float:
    habits = history.habits
    times = [since_s + n * STRETCH_S for n in range(int((ends_s - since_s) / STRETCH_S))]
    unread = [history.unread(p, at) for at in times]
    sure = sure_after([b - a for a, b in pairwise(unread)])
    walked_s = max(usual_walk_s(habits, leak), STRETCH_S * (len(times) if sure is None else sure))
    told_s = since_s + max(180.0, 2 * (walked_s + sawtooth_hides_s(habits, leak)))
    # It matters if it is more than 1 % of what is written, or will miss the objective: near those bounds the growth so
    # far must say so, too, and for good.
    slow = [
        at
        for at, lag in zip(times[1:], unread[1:], strict=True)
        if (lag + HORIZON_S * (lag - unread[0]) / (at - since_s)) / history.share < OBJECTIVE_S
    ]
    return max([told_s, *(at + 600 for at in slow[-1:])])


def _level(history: History, from_s: float) -> None:
    """A backlog that is held, straying as it may: well within the objective, lagging beyond it."""
    for p in (None, *history.every):
        oldest = [history.age_s(p, at) for at in history.times(from_s, history.seconds)]
        words = FINE if max(oldest) < 0.95 * OBJECTIVE_S else f"{FINE}|lagging"
        if min(oldest) > OBJECTIVE_S + 2 * history.habits.beat_s:
            words = "lagging|catching_up"
        history.truth(words, from_s, history.seconds, p)


@family
def outage(seed: int) -> History:
    """A group that is down for minutes or hours comes back and reads faster than is written; some hang or leave again a
    few minutes later. That they were down makes it no slower to tell, and nothing is well while records are old."""
    chance, habits = begun("outage", seed)
    minutes, way = chance.one_of((10, 20, 40, 60, 120, 180)), ("leaves", "hangs", "is killed")[seed % 3]
    speed = chance.between(1.3, 4)
    since_s = chance.one_of((20, 90)) * MINUTES
    back_s = since_s + minutes * MINUTES
    relapse_s = back_s + (60 * round(chance.between(3, 8)) if seed % 2 else math.inf)
    again_s = relapse_s + 20 * MINUTES
    drains_s = minutes * MINUTES / (speed - 1)
    seconds = again_s + 20 * MINUTES if seed % 2 else back_s + min(2 * HOUR_S, drains_s) + 20 * MINUTES
    history = History("outage", seed, habits, seconds / HOUR_S)

    def is_down(now: float) -> bool:
        return since_s <= now < back_s or relapse_s <= now < again_s

    def member(now: float) -> str | None:
        is_there = not is_down(now) or way == "hangs"
        ends_s = since_s if now < back_s else relapse_s
        return "reader-1" if is_there or (way == "is killed" and now < ends_s + 45) else None

    history.reads = lambda now, unread_s: None if is_down(now) else 1.6 if now < since_s else speed
    history.member = member
    history.drawn = {"it": way, "for": f"{minutes:g} min", "speed": speed, "relapse after": relapse_s - back_s}
    history.run()
    history.truth_of_all("ok", SETTLED_S, since_s - 1)
    down = [(since_s, back_s, relapse_s), (relapse_s, again_s, math.inf)]
    for begins_s, ends_s, next_s in down[: 1 + seed % 2]:
        killed_s = 45 if way == "is killed" else 0
        history.truth_of_all("stopped|stalled", begins_s + killed_s + habits.told_s, ends_s - 1)
        for p in (None, *history.every):
            _not_well_while_old(history, ends_s, min(ends_s + habits.told_s, next_s) - 1, p)
        recovers(history, ends_s, ends_s + habits.told_s, next_s - 1)
    return history


def _not_well_while_old(history: History, from_s: float, to_s: float, p: int | None) -> None:
    """Just after it came back, anything may be said but that it is well while records are old, or gets worse."""
    old = "stopped|stalled|lagging|catching_up|unknown:rebalancing|unknown:too_few_samples"
    history.truth_by(lambda at: old if history.age_s(p, at) > OBJECTIVE_S else f"{old}|ok", from_s, to_s, p)


@family
def crash_loop(seed: int) -> History:
    """Killed and restarted again and again, at no fixed interval. It reads a fifth less than is written, or it keeps
    up, or it commits nothing at all because a bad record kills it."""
    chance, habits = begun("crash-loop", seed)
    habits = replace(habits, commit_every_s=5.0 if habits.commit_every_s < 15 else 10.0)
    outcome = ("too little", "keeps up", "nothing")[seed % 3]
    period_s, since_s, leaves = chance.between(45, 180), 30 * MINUTES, chance.draw() < 0.5
    runs = chance.between(0.4, 0.6)
    if outcome == "keeps up":
        runs = max(runs, 1 - 45 / period_s)
    history = History("crash-loop", seed, habits, 2)
    starts, at = [], since_s
    while at < history.seconds:
        starts.append(at)
        at += period_s * chance.between(0.8, 1.2)
    speed = {"too little": 0.8, "keeps up": 1.4, "nothing": 1.0}[outcome] / runs

    def phase(now: float) -> tuple[int, float]:
        """Which run it is, and how much of its period has gone."""
        n = bisect_right(starts, now) - 1
        ends_s = starts[n + 1] if n + 1 < len(starts) else starts[n] + period_s
        return n, (now - starts[n]) / (ends_s - starts[n])

    def reads(now: float, unread_s: float) -> float | None:
        if now < since_s:
            return 1.6
        return speed if phase(now)[1] < runs and outcome != "nothing" else None

    def member(now: float) -> str | None:
        if now < since_s:
            return "reader-0"
        n, share = phase(now)
        if leaves and share >= runs:
            return None
        return REBALANCING if share >= 1 - 8 / period_s else f"reader-{n + 1}"

    history.reads, history.member = reads, member
    history.drawn = {"each": f"{period_s:.0f} s", "it reads": outcome, "runs": runs, "leaves": leaves}
    history.run()
    history.truth_of_all(FINE, SETTLED_S, since_s - 1)
    if outcome == "too little":
        told_s = since_s + max(10 * period_s, 15 * habits.interval_s)
        for p in (None, *history.every):
            history.truth_by(partial(_grows_or_stands, history, p), told_s, history.seconds, p)
    elif outcome == "keeps up":
        history.truth_of_all(f"{FINE}|unknown:rebalancing", since_s, history.seconds)
    else:
        history.truth_of_all("stopped|stalled", since_s + 5 * MINUTES + 2 * habits.interval_s, history.seconds)
    return history


def _grows_or_stands(history: History, p: int | None, at: float) -> str:
    """It falls behind; in between it is also true that nobody reads, or that its owner does not."""
    stands_s = min(history.stands_s(q, at) for q in (history.every if p is None else (p,)))
    if stands_s >= 60:
        return "falling_behind|stopped|stalled"
    return "falling_behind|stopped" if history.member(at) is None and stands_s >= 30 else "falling_behind"


@family
def periodic_job(seed: int) -> History:
    """A job that reads all there is every few minutes or hours. From its fourth pause on pauses are what is usual; when
    two runs are missing it is time for an alarm, and one run later it goes on, or never again."""
    chance, habits = begun("periodic-job", seed)
    period_s = (10, 20, 30, 60, 120)[seed % 5] * MINUTES
    interval_s = max(habits.interval_s, 30.0 if period_s > HOUR_S / 2 else 10.0)
    habits = replace(habits, interval_s=interval_s, commit_every_s=min(habits.commit_every_s, 15.0))
    runs_s, dies, count = 5 * round(chance.between(12, 60)), (seed // 5) % 2 == 0, 8
    first_s = 5 * round(chance.between(0.1, 0.9) * period_s / 5)
    history = History("periodic-job", seed, habits, (first_s + (count + 5) * period_s) / HOUR_S)
    starts = [first_s + n * period_s + 5 * round(chance.between(0, 2)) for n in range(count + 5)]
    starts = [at for n, at in enumerate(starts) if n < count or (not dies and n >= count + 2)]

    def run_at(now: float) -> int:
        """Which run it is; -1 between two of them."""
        n = bisect_right(starts, now) - 1
        return n if n >= 0 and now < starts[n] + runs_s else -1

    history.reads = lambda now, unread_s: 3 * period_s / runs_s + 2 if run_at(now) >= 0 else None
    history.member = lambda now: f"job-{run_at(now)}" if run_at(now) >= 0 else None
    history.drawn = {"each": f"{period_s / 60:g} min", "runs": f"{runs_s} s", "then": "dies" if dies else "misses two"}
    history.run()
    last_s, pause_s = starts[count - 1] + runs_s, period_s - runs_s
    history.truth_of_all(FINE, starts[3] + runs_s + habits.beat_s, last_s + pause_s)
    until_s = history.seconds if dies else starts[count] - 1
    history.truth_of_all("stopped|lagging|falling_behind", last_s + 3 * pause_s + 60 + 2 * interval_s, until_s)
    if not dies:
        history.truth_of_all(FINE, starts[count] + runs_s + habits.told_s, history.seconds)
    return history


@family
def healthy_but_rough(seed: int) -> History:
    """Nothing is wrong: garbage collection, lag that wanders about a level, a rate that grows fivefold in ten minutes,
    a commit a minute, or bursts that are read within minutes. Growth is told at most while a burst lasts, and for as
    long again."""
    chance, habits = begun("healthy-but-rough", seed)
    kind = ("pauses", "wanders", "ramps", "commits each minute", "bursts")[seed % 5]
    commit_every_s = 60.0 if kind == "commits each minute" else min(habits.commit_every_s, 15.0)
    habits = replace(habits, commit_every_s=commit_every_s)
    history = History("healthy-but-rough", seed, habits, 4)
    spells = []
    at = 15 * MINUTES
    while at < history.seconds:
        spells.append((at, at + (120 if kind == "bursts" else 5 * round(chance.between(4, 8)))))
        at += chance.between(20, 40) * MINUTES if kind == "bursts" else chance.between(200, 400)

    def is_in_spell(now: float) -> bool:
        n = bisect_right(spells, (now, math.inf)) - 1
        return n >= 0 and now < spells[n][1]

    if kind == "pauses":
        history.reads = lambda now, unread_s: None if is_in_spell(now) else 2.5
    elif kind == "wanders":
        history.begins_s = -HOUR_S
        history.reads = lambda now, unread_s: 1 + (unread_s - 40) / 750
    elif kind == "ramps":
        history.writes = _ramps
        history.reads = lambda now, unread_s: 7.0
    elif kind == "bursts":
        speed = chance.between(2, 3)
        history.writes = lambda now: 5.0 if is_in_spell(now) else 1.0
        history.reads = lambda now, unread_s: speed
    history.drawn = {"it": kind}
    history.run()
    if kind != "bursts":
        history.truth_of_all(FINE, SETTLED_S, history.seconds)
        return history
    since_s = SETTLED_S
    for begins_s, ends_s in spells:
        told_s = ends_s + 120 + habits.beat_s
        history.truth_of_all(FINE, since_s, begins_s - 1)
        history.truth_of_all(f"{FINE}|falling_behind", begins_s, told_s)
        since_s = told_s + 1
    history.truth_of_all(FINE, since_s, history.seconds)
    return history


def _ramps(now: float) -> float:
    """Up fivefold within ten minutes, down again an hour later, and so on."""
    into = (now - 30 * MINUTES) % (2 * HOUR_S) if now >= 30 * MINUTES else 2 * HOUR_S
    up, down = into / (10 * MINUTES), 1 - (into - 70 * MINUTES) / (10 * MINUTES)
    return 1 + 4 * min(1.0, max(0.0, min(up, down)))


@family
def edge_of_retention(seed: int) -> History:
    """As fast as what is written, hours late, a tenth to a half of the retention away from deletion: how old its
    records are strays, but it goes nowhere."""
    chance, habits = begun("edge-of-retention", seed)
    habits = replace(habits, noise=chance.between(0.05, 0.1))
    retention_s, share = chance.one_of((1, 2, 6)) * HOUR_S, chance.between(0.1, 0.5)
    late_s = (1 - share) * retention_s
    history = History("edge-of-retention", seed, habits, 4)
    history.retention_s, history.begins_s = retention_s, -(1.2 * retention_s - 1.2 * retention_s % 60)
    history.reads = lambda now, unread_s: None if now < 0 else 1 + (unread_s - late_s) / 600

    def begin() -> None:
        for p in history.every:
            history.seek(p, history.end[p] - late_s * history.share)

    history.at(0, begin)
    history.drawn = {"kept": f"{retention_s / HOUR_S:g} h", "away from deletion": f"{share:.0%}"}
    history.run()
    history.truth_of_all("at_risk|lagging|catching_up|falling_behind", SETTLED_S, history.seconds)
    history.rare = frozenset({"catching_up", "falling_behind"})
    return history


@family
def reset(seed: int) -> History:
    """An operator sets a group that falls behind to the end, to the beginning or to an hour ago, or deletes the oldest
    records (DeleteRecords), so that it goes on at the oldest that is left."""
    chance, habits = begun("reset", seed)
    to = ("latest", "earliest", "an hour ago", "what is left")[seed % 4]
    share, speed = chance.between(0.5, 0.85), chance.between(2, 4)
    since_s, reset_s = 20 * MINUTES, 100 * MINUTES
    off_s = 0 if to == "what is left" else 5 * round(chance.between(6, 12))
    goes_on = to == "what is left" or (to == "latest" and (seed // 4) % 2 == 1)
    history = History("reset", seed, habits, 4)
    history.begins_s = -HOUR_S
    left_s = chance.between(60, 200)

    def reads(now: float, unread_s: float) -> float | None:
        if reset_s <= now < reset_s + off_s:
            return None
        return share if now >= since_s and (now < reset_s or goes_on) else speed

    old: dict[int, int] = {}

    def happen() -> None:
        for p in history.every:
            old[p] = history.committed[p]
            if to == "what is left":
                history.start[p] = max(history.start[p], int(history.end[p] - left_s * history.share))
            else:
                new = {"latest": history.end[p], "earliest": 0.0}.get(to)
                history.seek(p, history.offset_of(p, reset_s - HOUR_S) if new is None else new)

    history.at(reset_s + off_s // 10 * 5, happen)
    history.reads = reads
    history.member = lambda now: None if reset_s <= now < reset_s + off_s else "reader-1"
    history.drawn = {"to": to, "reads before": share, "after": share if goes_on else speed}
    history.run()
    # What is expected of growth by so large a share: five minutes.
    grows_s = max(5 * MINUTES, habits.told_s, usually_told_s(habits, 1 - share))
    history.truth_of_all(FINE, SETTLED_S, since_s - 1)
    history.truth_of_all("falling_behind", since_s + grows_s, reset_s - 1)
    ends_s = reset_s + off_s
    if goes_on:
        also = "|losing_data" if to == "what is left" else ""
        history.truth_of_all(f"falling_behind{also}", ends_s + grows_s, history.seconds)
    elif to == "latest":
        history.truth_of_all("ok", ends_s + habits.told_s, history.seconds)
    else:
        _rewound(history, ends_s, old)
    return history


def _rewound(history: History, from_s: float, old: Mapping[int, int]) -> None:
    """Rewound until the offset is past where it was, or has been so for an hour; then it goes on catching up."""
    told_s = history.habits.told_s
    past = [
        next((at for at in history.times(from_s, history.seconds) if history.committed_at_s(p, at) >= old[p]), math.inf)
        for p in history.every
    ]
    for p, past_s in zip((None, *history.every), (max(past), *past), strict=True):
        sure_s = min(min(past) if p is None else past_s, from_s + HOUR_S - 5 * MINUTES)
        history.truth("rewound", from_s + told_s, sure_s - 1, p)
        history.truth("rewound|catching_up", max(sure_s, from_s + told_s), past_s + history.habits.interval_s, p)
    recovers(history, from_s, max(past) + told_s)


@family
def deploys(seed: int) -> History:
    """Restarted each hour, down for one to four minutes, and it reads what has waited within minutes. It may be called
    bad for as long as that takes, until its first commit is seen."""
    chance, habits = begun("deploys", seed)
    way, speed = ("empty", REBALANCING)[seed % 2], chance.between(2, 4)
    history = History("deploys", seed, habits, 6)
    spells, at = [], chance.between(15, 60) * MINUTES
    while at < history.seconds:
        spells.append((at, at + 5 * round(chance.between(12, 48))))
        at += HOUR_S + chance.between(-5, 5) * MINUTES

    def deploy(now: float) -> int:
        n = bisect_right(spells, (now, math.inf)) - 1
        return n if n >= 0 and now < spells[n][1] else -1

    def member(now: float) -> str | None:
        if deploy(now) >= 0:
            return None if way == "empty" else REBALANCING
        return f"reader-{bisect_right(spells, (now, math.inf))}"

    history.reads = lambda now, unread_s: None if deploy(now) >= 0 else speed
    history.member = member
    history.drawn = {"while": way, "speed": speed}
    history.run()
    since_s = SETTLED_S
    for begins_s, ends_s in spells:
        seen_s = ends_s + habits.commit_every_s * 1.1 + 2 * habits.interval_s
        history.truth_of_all(FINE, since_s, begins_s - 1)
        for p in (None, *history.every):
            history.truth_by(partial(_is_deployed, history, p), begins_s, seen_s, p)
        since_s = max(seen_s, ends_s + 3 * MINUTES) + 1
        history.truth_of_all(f"{FINE}|unknown:rebalancing", seen_s + 1, since_s - 1)
    history.truth_of_all(FINE, since_s, history.seconds)
    return history


def _is_deployed(history: History, p: int | None, at: float) -> str:
    late = "|lagging" if history.age_s(p, at) > 0.9 * OBJECTIVE_S else ""
    return f"{FINE}|stopped|stalled|falling_behind|unknown:rebalancing{late}"


@family
def takes_turns(seed: int) -> History:
    """Members that work through what they fetched of one partition before they turn to the next, and leave the others
    untouched for up to an hour: after an outage, with an old backlog, or because each batch takes its time. That is no
    standstill. In every other history one partition is not fetched any more while its owner reads the others: that is
    told once it has missed three turns."""
    chance, habits = begun("takes-turns", seed)
    kind = ("outage", "old backlog", "batches")[seed % 3]
    habits = replace(
        habits,
        rate=habits.rate + 100,
        partitions=int(chance.one_of((8, 12, 16, 24, 48))),
        interval_s=min(habits.interval_s, 30.0),
        commit_every_s=min(habits.commit_every_s, 15.0),
    )
    history = TakingTurns("takes-turns", seed, habits, 3)
    history.members = int(chance.one_of((1, 1, 2, 3)))
    since_s, back_s = 20 * MINUTES, (20 + chance.one_of((20, 40))) * MINUTES
    hangs_s, goes_on_s = 100 * MINUTES, 150 * MINUTES
    history.fetch_s, history.capacity = chance.between(10, 60), 1.0
    if kind == "outage":
        history.capacity = chance.between(1.3, 2.5)
        history.reads = lambda now, unread_s: None if since_s <= now < back_s else 1.0
        history.member = lambda now: None if since_s <= now < back_s else "reader"
    elif kind == "old backlog":
        history.begins_s = -HOUR_S / 2
        history.reads = lambda now, unread_s: None if now < 0 else 1.0
    else:
        history.capacity, history.fetch_s = chance.between(3, 5), math.inf
        history.break_s = chance.between(0.2, 0.4) * OBJECTIVE_S * history.members / habits.partitions
    hanging = int(chance.between(0, habits.partitions)) if seed % 2 else None
    if hanging is not None:
        history.hangs[hanging] = (hangs_s, goes_on_s)
    history.drawn = {"it": kind, "members": history.members, "hangs": hanging}
    history.run()
    # Old records are late, and no trend is known of what has just been read after a long time.
    words = f"{FINE}|lagging|unknown:too_few_samples"
    if kind == "outage":
        history.truth_of_all(FINE, SETTLED_S, since_s - 1)
    for p in (None, *history.every):
        until_s = history.seconds if hanging is None or p not in (None, hanging) else hangs_s
        history.truth(words, back_s + habits.told_s if kind == "outage" else SETTLED_S, until_s - 1, p)
    if hanging is not None:
        overdue_s = history.left_at_s(hanging, hangs_s) + 4 * history.longest_absence_s(hanging, hangs_s)
        for p in (None, hanging):
            history.truth("stalled", max(overdue_s, hangs_s) + 5 * MINUTES, goes_on_s - 1, p)
    return history
