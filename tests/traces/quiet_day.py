"""A second day in which nobody is in trouble, made in another way than ``noise.py``: office hours and operations.

It begins at half past seven. What is written follows the day: several times as much at noon as at night, and several
times as much within minutes when the offices open. It strays from that with a memory (a first-order autoregression
over half a minute up to half an hour), and so do the speed of each group and the time that it has a record in work.
Groups are deployed in office hours, one member after the other, and some are scaled with their load.

All is well because a group can always read at least 1.3 times what is written, and nobody pauses for more than a
minute. ``python -m tests.traces.quiet_day FOLDER`` writes the groups of one seed down as traces like the others, one
each.
"""

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from lagwise.domain.vocabulary import GroupState, Status, UnknownReason
from lagwise.traces.trace import Trace, Truth
from tests.traces.made_day import DAY_S, Chance, MadeDay, no_rows

T = TypeVar("T")

NAME = "quiet-day"
STORY = (
    "A day of office hours, deployments and scaling, in which every group reads what is written within two minutes or "
    "so, and its lag comes and goes with the load."
)
SEEDS = (1, 2, 3)
GROUPS = 36
HOURS = 24.0
STEP_S = 5.0
HOUR_S = 3600.0
#: Time of the day at which it begins.
BEGINS_AT_S = 7.5 * HOUR_S

#: From here on every group has committed often enough to be judged.
SETTLED_S = 900.0
#: A group that has rebalanced counts as unsettled for so long, or for two samples.
UNSETTLED_S = 120.0
WELL = ((Status.OK, None), (Status.CATCHING_UP, None))
#: What may be said, too, while members come and go.
UNSETTLED = (Status.UNKNOWN, UnknownReason.REBALANCING)

#: What is written strays by at most so much, and so does the speed of reading.
WRITES_UP_TO, READS_DOWN_TO = 1.35, 0.85
#: A group can read at least so much more than is written.
LEAST_HEADROOM = 1.3


class Wandering:
    """A factor around 1 with a memory: the exponential of a first-order autoregression, within bounds."""

    def __init__(self, chance: Chance, lasts_s: float, spread: float, low: float, high: float) -> None:
        self._chance, self._low, self._high = chance, low, high
        self._kept = math.exp(-STEP_S / lasts_s)
        self._new = spread * math.sqrt(1 - self._kept**2)
        self._at = spread * chance.normal()

    def step(self) -> float:
        self._at = self._kept * self._at + self._new * self._chance.normal()
        return min(self._high, max(self._low, math.exp(self._at)))


class Day:
    """How much of the highest load there is at each second of the day."""

    def __init__(self, chance: Chance) -> None:
        self.night = chance.between(0.1, 0.25)
        self.opens_s = BEGINS_AT_S + chance.between(1200, 2000)
        self.opens_within_s = chance.between(180, 600)
        self.closes_s = chance.between(16.5, 18.5) * HOUR_S

    def load(self, now: float) -> float:
        at = (BEGINS_AT_S + now) % DAY_S
        opened = min(1.0, max(0.0, (at - self.opens_s) / self.opens_within_s))
        closed = min(1.0, max(0.0, (at - self.closes_s) / HOUR_S))
        sun = 0.5 + 0.5 * math.cos(2 * math.pi * (at / DAY_S - 13 / 24))
        return self.night + (1 - self.night) * (0.2 * sun + 0.8 * (opened - closed))


@dataclass(frozen=True, slots=True)
class Pause:
    """From when to when these partitions are not read."""

    from_s: float
    to_s: float
    partitions: tuple[int, ...]


class Operations:
    """Who reads what when: the plan of a group's deployments and of its scaling.

    ``eager`` groups stop all reading while anybody comes or goes. In ``incremental`` ones, only the partitions that
    move pause, until their new owner is ready. The members of ``static`` ones come back under their names, and nothing
    rebalances when they are deployed.
    """

    def __init__(self, chance: Chance, day: Day, partitions: int, weights: list[float]) -> None:
        self.partitions = partitions
        self.protocol = ("eager", "eager", "incremental", "static")[int(4 * chance.draw())]
        most = 1 + int(partitions * chance.draw())
        is_scaled = most > 1 and chance.draw() < 0.6
        #: The largest share of what is written that one of so many members reads.
        shares = [max(sum(weights[m::n]) for m in range(n)) for n in range(1, most + 1)]
        headroom = LEAST_HEADROOM * WRITES_UP_TO / READS_DOWN_TO * (1.0 if is_scaled else chance.between(1.0, 2.0))
        #: What one member can read, as a share of the highest load.
        self.speed = headroom * shares[-1]
        self.pauses: list[Pause] = []
        self.states: list[tuple[float, GroupState]] = []
        self.owners: list[tuple[float, list[str]]] = []
        self.members: list[tuple[float, int]] = []
        #: From when to when the group is not settled.
        self.unrest: list[tuple[float, float]] = []
        self._chance = chance
        self._names: list[str] = []
        self._made = 0
        minutes = range(int(DAY_S / 60) + 1)
        loads = [day.load(60.0 * minute) for minute in minutes]
        needed = [
            next(n for n in range(1, most + 1) if self.speed >= headroom * load * shares[n - 1]) for load in loads
        ]
        # Members come a quarter of an hour before they are needed, and stay for half an hour afterwards.
        planned = [max(needed[max(0, m - 30) : m + 15]) if is_scaled else most for m in minutes]
        self._start(planned[0])
        deployed_at = [chance.between(2400, 3300), *chance.times(4 * HOUR_S, 12 * HOUR_S)]
        last = 0.0
        for minute in minutes:
            now = 60.0 * minute
            if now < last:
                continue
            if any(at < now + 60 for at in deployed_at):
                # What would be scaled meanwhile is scaled first.
                longest = 4 + (most * 210) // 60
                self._scale(now, max(planned[minute : minute + longest]))
                last = self._deploy(now + chance.between(70, 130))
                deployed_at = [at for at in deployed_at if at > last + 600]
            else:
                self._scale(now + chance.between(0, 40), planned[minute])

    def _start(self, members: int) -> None:
        self._names = [self._new_name() for _ in range(members)]
        self.members.append((0.0, members))
        self.states.append((0.0, GroupState.STABLE))
        self._own(0.0)

    def _new_name(self) -> str:
        self._made += 1
        return f"member-{self._made}"

    def _own(self, at: float) -> None:
        self.owners.append((at, [self._names[p % len(self._names)] for p in range(self.partitions)]))

    def _rebalance(self, from_s: float, to_s: float) -> None:
        state = GroupState.RECONCILING if self.protocol == "incremental" else GroupState.PREPARING_REBALANCE
        self.states += [(from_s, state), (to_s, GroupState.STABLE)]

    def _scale(self, now: float, members: int) -> None:
        before = len(self._names)
        if members == before:
            return
        until = now + self._chance.between(5, 20)
        moving = tuple(p for p in range(self.partitions) if p % before != p % members)
        is_eager = self.protocol != "incremental"
        self._names = self._names[:members] + [self._new_name() for _ in range(members - before)]
        self.pauses.append(Pause(now, until, tuple(range(self.partitions)) if is_eager else moving))
        self.members.append((until, members))
        self._rebalance(now, until)
        self._own(until)
        self.unrest.append((now, until))

    def _deploy(self, now: float) -> float:
        """Restart the members one by one, and say when the last is back."""
        began, back = now, now
        for member in range(len(self._names)):
            back = now + self._chance.between(20, 60)
            its = tuple(range(member, self.partitions, len(self._names)))
            if self.protocol == "static":
                self.pauses.append(Pause(now, back, its))
            else:
                is_eager = self.protocol == "eager"
                self._names[member] = self._new_name()
                self.pauses.append(Pause(now, back, tuple(range(self.partitions)) if is_eager else its))
                settled = back if is_eager else now + 8
                self._rebalance(now, settled)
                self._own(settled)
            now = back + self._chance.between(60, 150)
        if self.protocol != "static":
            self.unrest.append((began, back))
        return back


class Group:
    """One group on a topic of its own, simulated in steps of five seconds."""

    def __init__(self, seed: int, number: int) -> None:
        self.name, self.topic = f"group-{seed}-{number:02d}", f"topic-{seed}-{number:02d}"
        self.interval_s = (15.0, 30.0)[number % 2]
        self.chance = chance = Chance(f"{NAME} {seed} {number}")
        self.partitions = int(chance.one_of((1, 1, 2, 3, 4, 6, 12)))
        # From a record in twenty seconds to five thousand per second.
        self.rate = 10 ** chance.between(math.log10(0.05), math.log10(5000))
        shares = [chance.between(0.6, 1.4) for _ in range(self.partitions)]
        self.weights = [share / sum(shares) for share in shares]
        self.day = Day(chance)
        self.operations = Operations(chance, self.day, self.partitions, self.weights)
        self.commit_every_s = chance.one_of((1.0, 5.0, 15.0, 60.0)) * chance.between(1.0, 1.02)
        self.commits_when_it_stops = chance.draw() < 0.8
        lasts_s = (30.0, 120.0, 600.0, 1800.0)
        self.written = Wandering(chance, chance.one_of(lasts_s), 0.15, 1 / WRITES_UP_TO, WRITES_UP_TO)
        self.speed = Wandering(chance, chance.one_of(lasts_s), 0.08, READS_DOWN_TO, 1 / READS_DOWN_TO)
        #: For how long a record is in work.
        self.usual_work_s = chance.one_of((0.5, 2.0, 5.0))
        self.work = Wandering(chance, chance.one_of(lasts_s[:3]), 0.5, 0.2, 5.0)
        #: Steps at which each partition is not read.
        self.paused = [set(self._steps(p)) for p in range(self.partitions)]
        begins = [chance.count(1000) * 100 for _ in range(self.partitions)]
        #: The end of the log at the steps of the last half minute and now, newest last.
        self.ends = [[end] * 7 for end in begins]
        self.done, self.committed = [float(end) for end in begins], list(begins)
        self.commit_phases = [chance.draw() * self.commit_every_s for _ in begins]
        #: The least that it could read of what was written, so far.
        self.headroom = math.inf
        self._count = self.operations.members[0][1]
        self._scaled = list(self.operations.members[1:])

    def _steps(self, partition: int) -> Iterator[int]:
        for pause in self.operations.pauses:
            if partition in pause.partitions:
                yield from range(math.ceil(pause.from_s / STEP_S), math.ceil(pause.to_s / STEP_S))

    def step(self, number: int) -> None:
        """What happens in the five seconds that end with this step."""
        now = number * STEP_S
        while self._scaled and self._scaled[0][0] <= now:
            self._count = self._scaled.pop(0)[1]
        written = self.rate * self.day.load(now) * self.written.step() * STEP_S
        for weight, ends in zip(self.weights, self.ends, strict=True):
            ends.append(ends[-1] + self.chance.count(written * weight))
            del ends[0]
        # A few records take no time.
        can_read = self.operations.speed * self.rate * self.speed.step() * STEP_S
        back = min(5.99, self.usual_work_s * self.work.step() / STEP_S)
        for member in range(self._count):
            its = range(member, self.partitions, self._count)
            expected = written * sum(self.weights[p] for p in its)
            self.headroom = min(self.headroom, can_read / expected)
            self._read(now, [p for p in its if number not in self.paused[p]], can_read + 25, back)
        for p in range(self.partitions):
            if number in self.paused[p] and number - 1 not in self.paused[p]:
                self._stop(p)

    def _read(self, now: float, partitions: list[int], can_read: float, back: float) -> None:
        """Read these partitions up to what has come so many steps ago, and commit what is due."""
        whole, part = int(back), back % 1
        wanted = []
        for p in partitions:
            ends = self.ends[p]
            wanted.append(max(0.0, ends[-1 - whole] * (1 - part) + ends[-2 - whole] * part - self.done[p]))
        share = min(1.0, can_read / max(1.0, sum(wanted)))
        for p, records in zip(partitions, wanted, strict=True):
            since_commit = (now - self.commit_phases[p]) % self.commit_every_s
            if since_commit < STEP_S:
                self.committed[p] = int(self.done[p] + records * share * (1 - since_commit / STEP_S))
            self.done[p] += records * share

    def _stop(self, partition: int) -> None:
        """Whoever reads it stops: what is done is committed, or will be done again."""
        if self.commits_when_it_stops:
            self.committed[partition] = int(self.done[partition])
        else:
            self.done[partition] = float(self.committed[partition])


def day_of(seed: int, number: int, hours: float = HOURS) -> MadeDay:
    """The day of one group, or its first hours."""
    group, seconds, files = Group(seed, number), hours * HOUR_S, no_rows()
    plan = group.operations
    kind = "consumer" if plan.protocol == "incremental" else "classic"
    known: tuple[str, list[str]] = "", []
    files["topics.csv"] = [(group.topic, 604_800_000, None, "delete")]
    for n in range(int(seconds / STEP_S) + 1):
        group.step(n)
        now = n * STEP_S
        if now % group.interval_s:
            continue
        if (state := _at(plan.states, now)) != known[0]:
            files["groups.csv"].append((now, group.name, state, kind))
        if (owners := _at(plan.owners, now)) != known[1]:
            its = (now, group.name)
            files["assignments.csv"] += [
                (*its, member, group.name, "10.0.0.1", group.topic, p) for p, member in enumerate(owners)
            ]
        known = state, owners
        for p in range(group.partitions):
            files["commits.csv"].append((now, group.name, group.topic, p, group.committed[p]))
            files["watermarks.csv"].append((now, group.topic, p, 0, group.ends[p][-1], None, group.topic))
    return MadeDay(f"{NAME}-{group.name}", STORY, group.interval_s, files, truth_of(group, seconds))


def _at(plan: list[tuple[float, T]], now: float) -> T:
    """What holds now, of what holds from when on."""
    return next(value for from_s, value in reversed(plan) if from_s <= now)


def truth_of(group: Group, seconds: float) -> list[Truth]:
    """A row for each stretch of time, settled or not."""
    unsettled_s = max(UNSETTLED_S, 2 * group.interval_s) + group.interval_s
    edges, at = [], SETTLED_S
    for began, settled in [(a, b + unsettled_s) for a, b in group.operations.unrest] + [(seconds, seconds)]:
        began, settled = min(began, seconds), min(settled, seconds)
        if at < began:
            edges.append((at, began, WELL))
        if max(at, began) < settled:
            edges.append((max(at, began), settled, (*WELL, UNSETTLED)))
        at = max(at, settled)
    return [Truth(group.name, None, None, a, b, allowed) for a, b, allowed in edges]


def trace_of(seed: int, number: int, hours: float = HOURS) -> Trace:
    """The trace of one group, as if it had been written and read."""
    return day_of(seed, number, hours).trace()


def main() -> None:
    """Write the traces of one seed, or some of them, to folders of their names."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.traces.quiet_day", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=SEEDS[0])
    parser.add_argument("--groups", type=int, default=GROUPS)
    parser.add_argument("--first", type=int, default=0, help="the first group's number (default 0)")
    parser.add_argument("--hours", type=float, default=HOURS)
    options = parser.parse_args()
    for number in range(options.first, options.first + options.groups):
        day = day_of(options.seed, number, options.hours)
        day.write(options.folder, day.interval_s)


if __name__ == "__main__":
    main()
