"""A day of healthy, noisy traffic on a hundred groups: the trace in which nobody is ever in trouble.

It is too large to be kept (2.5 million rows), so it is made where it is needed, from one seed a group. ``python -m
tests.traces.noise FOLDER`` writes it down as a trace like the others (``--groups``, ``--hours`` and ``--first`` for a
part of it).

Nobody is in trouble because every group can read six times what is written on the average and nothing lasts: the rate
of a topic follows the day and strays by up to two thirds from minute to minute, records come by chance, and now and
then there is a burst of up to a minute, a hiccup of up to half a minute in which nothing is read, a rebalance, a
deployment that restarts the group within half a minute, and a sample that the collector missed. Group n's habits (how
much is written, how often it commits, whether it is an engine outside the group protocol) are drawn from its own seed
too.
"""

import argparse
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lagwise.domain.vocabulary import Status
from lagwise.traces.trace import Trace, Truth
from tests.traces.made_day import DAY_S, Chance, MadeDay, no_rows

NAME = "healthy-noise"
STORY = (
    "A day of healthy, noisy traffic: bursts, hiccups, rebalances, deployments, slow committers, nearly idle topics "
    "and missed samples, and every group reads what is written well within its objective."
)
GROUPS = 100
HOURS = 24.0
INTERVAL_S = 15.0
STEP_S = 5.0

#: From here on every group has committed often enough to be judged: four times, the slowest every three minutes.
SETTLED_S = 900.0
#: What is true of every group, all day.
WELL = (Status.OK, Status.CATCHING_UP)


@dataclass(frozen=True, slots=True)
class Spell:
    """A stretch of time in which something is otherwise."""

    from_s: float
    to_s: float
    times: float = 1.0

    def steps(self) -> Iterator[float]:
        """The steps' ends at which it holds."""
        steps = range(int(self.from_s / STEP_S), int(self.to_s / STEP_S) + 2)
        return (now for now in (n * STEP_S for n in steps) if self.from_s <= now < self.to_s)


class Group:
    """One group on a topic of its own, simulated in steps of five seconds."""

    def __init__(self, number: int, seconds: float) -> None:
        self.name, self.topic = f"group-{number:03d}", f"topic-{number:03d}"
        self.chance = chance = Chance(f"{NAME} {number}")
        self.partitions = int(chance.one_of((1, 1, 1, 2)))
        # From a record in ten minutes to a thousand per second.
        self.rate = 10 ** chance.between(-2.7, 3.0)
        self.phase = chance.draw()
        self.is_engine = chance.draw() < 0.15
        self.commit_every_s = chance.one_of(
            (60.0, 60.0, 180.0) if self.is_engine else (5.0, 5.0, 5.0, 15.0, 30.0, 60.0)
        )
        self.speed = 6 * self.rate + 5
        self.bursts = [
            Spell(at, at + chance.between(10, 60), chance.between(2, 4)) for at in chance.times(2700, seconds)
        ]
        hiccups = [Spell(at, at + chance.between(5, 30)) for at in chance.times(1800, seconds)]
        self.rebalances = [Spell(at, at + chance.between(3, 12)) for at in chance.times(6 * 3600, seconds)]
        self.deployments = [Spell(at, at + chance.between(5, 13)) for at in chance.times(8 * 3600, seconds)]
        starts = [Spell(spell.from_s, spell.to_s + chance.between(5, 17)) for spell in self.deployments]
        self.idle = {now for spell in (*hiccups, *self.rebalances, *starts) for now in spell.steps()}
        self.unrest = {now for spell in (*self.rebalances, *self.deployments) for now in spell.steps()}
        #: Where two bursts meet, the first counts.
        self.bursting = {now: spell.times for spell in reversed(self.bursts) for now in spell.steps()}
        self.ends = [chance.count(1000) * 100.0 for _ in range(self.partitions)]
        self.position = list(self.ends)
        self.committed = [int(end) for end in self.ends]
        self.commit_at = chance.draw() * self.commit_every_s
        self.mood = 0.0

    def step(self, now: float) -> None:
        """What happens in the five seconds that end now."""
        chance = self.chance
        if now % 60 < STEP_S:
            self.mood = min(0.5, max(-1.0, 0.9 * self.mood + 0.14 * chance.normal()))
        day = 1 + 0.6 * math.sin(2 * math.pi * (now / DAY_S + self.phase))
        mean = self.rate * day * math.exp(self.mood) * self.bursting.get(now, 1.0) * STEP_S
        reads = now not in self.idle
        for p in range(self.partitions):
            self.ends[p] += chance.count(mean)
            if reads:
                self.position[p] = min(self.ends[p], self.position[p] + self.speed * STEP_S)
        if reads and now >= self.commit_at:
            self.committed = [int(position) for position in self.position]
            self.commit_at = now + self.commit_every_s * chance.between(0.9, 1.1)

    def described(self, now: float) -> tuple[str, str | None]:
        """State of the group, and the member that owns everything."""
        if self.is_engine:
            return "Empty", None
        if now in self.unrest:
            return "PreparingRebalance", None
        return "Stable", f"{self.name}-{1 + sum(spell.to_s <= now for spell in self.deployments)}"


def missed(seconds: float) -> set[float]:
    """Samples that the collector missed: one in 300, and three times a day up to four in a row."""
    chance = Chance(f"{NAME} collector")
    gone = {at - at % INTERVAL_S for at in chance.times(300 * INTERVAL_S, seconds)}
    for at in chance.times(8 * 3600, seconds):
        first = at - at % INTERVAL_S
        gone |= {first + n * INTERVAL_S for n in range(2 + int(3 * chance.draw()))}
    return gone - {0.0}


def day_of(numbers: Iterable[int], hours: float) -> MadeDay:
    """The day, or a part of it, of these groups."""
    seconds = hours * 3600
    gone = missed(HOURS * 3600)
    files = no_rows()
    truth = []
    allowed = tuple((status, None) for status in WELL)
    for number in numbers:
        # The whole day is drawn whatever part of it is wanted: an hour of it is always the same hour.
        group = Group(number, DAY_S)
        known: tuple[str, str | None] | None = None
        for n in range(int(seconds / STEP_S) + 1):
            now = n * STEP_S
            group.step(now)
            if now % INTERVAL_S or now in gone:
                continue
            described = group.described(now)
            if described != known:
                known, (state, member) = described, described
                files["groups.csv"].append((now, group.name, state, "simple" if group.is_engine else "classic"))
                for p in range(group.partitions if member else 0):
                    row = (now, group.name, member, group.name, "10.0.0.1", group.topic, p)
                    files["assignments.csv"].append(row)
            for p in range(group.partitions):
                files["commits.csv"].append((now, group.name, group.topic, p, group.committed[p]))
                files["watermarks.csv"].append((now, group.topic, p, 0, int(group.ends[p]), None, group.topic))
        files["topics.csv"].append((group.topic, 604_800_000, None, "delete"))
        truth.append(Truth(group.name, None, None, SETTLED_S, seconds, allowed))
    return MadeDay(NAME, STORY, INTERVAL_S, files, truth)


def trace_of(numbers: Iterable[int], hours: float) -> Trace:
    """The trace of these groups, as if it had been written and read."""
    return day_of(numbers, hours).trace()


def main() -> None:
    """Write the trace, or a part of it, to a folder of its name."""
    parser = argparse.ArgumentParser(prog="python -m tests.traces.noise", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--groups", type=int, default=GROUPS)
    parser.add_argument("--first", type=int, default=0, help="the first group's number (default 0)")
    parser.add_argument("--hours", type=float, default=HOURS)
    parser.add_argument("--evaluate-every", type=float, default=INTERVAL_S, help="seconds (default: every sample)")
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.groups)
    day_of(numbers, options.hours).write(options.folder, options.evaluate_every)


if __name__ == "__main__":
    main()
