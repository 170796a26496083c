"""One topic and the group that reads it, simulated in steps of five seconds. Their state is known at every moment, so
that the truth can be told from it; what is sampled is what a collector would see.

It knows nothing of Lagwise's rules, and everything random comes from one seed (see :class:`tests.traces.noise.Chance`).
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby

from lagwise.domain.vocabulary import Status, UnknownReason
from lagwise.traces.trace import Trace, Truth
from tests.traces.in_memory import no_files, trace_of_files
from tests.traces.made_day import Chance

STEP_S = 5.0
#: Rates stray from one stretch of this length to the next.
STRETCH_S = 15.0
REBALANCING = "PreparingRebalance"
TOPIC = "records"


@dataclass(frozen=True)
class Habits:
    """How a history goes on while nothing happens.

    Attributes:
        rate: records per second that are written on the average, all partitions together.
        partitions: their number.
        interval_s: from sample to sample.
        commit_every_s: from commit to commit, on the average.
        noise: standard deviation of both rates, as a share of them, from stretch to stretch and partition to partition.
    """

    rate: float
    partitions: int
    interval_s: float
    commit_every_s: float
    noise: float

    @classmethod
    def drawn(cls, chance: Chance) -> "Habits":
        return cls(
            rate=float(f"{10 ** chance.between(math.log10(5), math.log10(20_000)):.3g}"),
            partitions=int(chance.one_of((1, 1, 2, 3, 6, 12))),
            interval_s=chance.one_of((10, 15, 15, 30, 60)),
            commit_every_s=chance.one_of((1, 5, 5, 15, 30, 60, 120)),
            noise=chance.between(0.03, 0.05),
        )

    @property
    def beat_s(self) -> float:
        """What can be seen at all of how the group goes on: a commit, at a sample."""
        return max(self.commit_every_s, self.interval_s)

    @property
    def told_s(self) -> float:
        """Within which time a plain fact can be told: three minutes, or three times what can be seen of the group."""
        return max(180.0, 3 * self.beat_s + self.interval_s)


class History:
    """A history in the making: set what happens, ``run`` it, write what is true, and take its ``trace``.

    Attributes:
        writes: of a second, what is written as a multiple of the usual rate.
        reads: of a second and of how many seconds' worth of records are unread, what can be read as a multiple of the
            usual rate; None where the group neither reads nor commits, and loses what it had read and not committed.
        member: of a second, the member that owns all partitions; None where the group is empty, or REBALANCING.
    """

    def __init__(self, family: str, seed: int, habits: Habits, hours: float) -> None:
        self.family, self.seed, self.habits, self.seconds = family, seed, habits, hours * 3600
        self.chance = Chance(f"{family} {seed} history")
        self.writes: Callable[[float], float] = lambda now: 1.0
        self.reads: Callable[[float, float], float | None] = lambda now, unread_s: 1.6
        self.member: Callable[[float], str | None] = lambda now: "reader-1"
        self.retention_s: float = 7 * 86_400.0
        #: Since when records were written, at the usual rate, before anyone looked.
        self.begins_s = 0.0
        #: Words that no more than one in a hundred of all verdicts on partitions may be, where the truth allows them.
        self.rare: frozenset[str] = frozenset()
        #: Words of what was drawn, for whoever has to find a failure.
        self.drawn: dict[str, object] = {}
        self._plans: list[tuple[float, Callable[[], None]]] = []
        self._truth: list[Truth] = []
        count = habits.partitions
        self.share = habits.rate / count
        self.end, self.start = [0.0] * count, [0] * count
        self.position, self.committed = [0.0] * count, [0] * count
        #: Of each step: the end of each partition, its committed offset, and how far the group has read.
        self.ends: list[list[float]] = [[] for _ in range(count)]
        self.committed_at: list[list[int]] = [[] for _ in range(count)]
        self.position_at: list[list[float]] = [[] for _ in range(count)]

    @property
    def every(self) -> range:
        return range(self.habits.partitions)

    def at(self, time_s: float, what: Callable[[], None]) -> None:
        """Do something at a moment, before anybody reads or writes."""
        self._plans.append((time_s, what))

    def seek(self, partition: int, offset: float) -> None:
        """The group goes on from another offset, and has committed that."""
        self.position[partition] = self.committed[partition] = int(offset)

    def offset_of(self, partition: int, time_s: float) -> float:
        """The end of a partition at a moment that has been."""
        return self.ends[partition][int((time_s - self.begins_s) // STEP_S)]

    def run(self) -> "History":
        self.files, plans = no_files(), sorted(self._plans, key=lambda plan: plan[0])
        commit_at, known = 0.0, ("", "")
        in_noise, out_noise = ([1.0] * self.habits.partitions for _ in range(2))
        for n in range(round(self.begins_s / STEP_S), round(self.seconds / STEP_S) + 1):
            now = n * STEP_S
            while plans and plans[0][0] <= now:
                plans.pop(0)[1]()
            if now % STRETCH_S == 0:
                in_noise, out_noise = ([self._strays() for _ in self.every] for _ in range(2))
            self._read(now, out_noise)
            if now >= commit_at and self.reads(now, 0.0) is not None:
                self.committed = [math.floor(position) for position in self.position]
                commit_at = max(commit_at + self.habits.commit_every_s * self.chance.between(0.9, 1.1), now)
            is_sampled = now >= 0 and now % self.habits.interval_s == 0
            if is_sampled:
                known = self._sample_group(now, known)
            for p in self.every:
                self.end[p] += max(0.0, self.writes(now) * self.share * STEP_S * in_noise[p])
                self.ends[p].append(self.end[p])
                self.committed_at[p].append(self.committed[p])
                self.position_at[p].append(self.position[p])
                if now % 60 == 0 and now - self.retention_s >= self.begins_s:
                    self.start[p] = max(self.start[p], math.floor(self.offset_of(p, now - self.retention_s)))
                if is_sampled:
                    row = (now, TOPIC, p, self.start[p], math.floor(self.end[p]), None, f"{TOPIC}-1")
                    self.files["watermarks.csv"].append(row)
        self.files["topics.csv"].append((TOPIC, round(self.retention_s * 1000), None, "delete"))
        return self

    def _strays(self) -> float:
        return max(0.0, 1 + self.habits.noise * self.chance.normal())

    def _read(self, now: float, noise: list[float]) -> None:
        for p in self.every:
            capacity = self.reads(now, (self.end[p] - self.position[p]) / self.share)
            if capacity is None:
                self.position[p] = self.committed[p]
                continue
            start = max(self.position[p], self.start[p])
            self.position[p] = min(self.end[p], start + max(0.0, capacity) * self.share * STEP_S * noise[p])

    def _sample_group(self, now: float, known: tuple[str, str]) -> tuple[str, str]:
        for p in self.every:
            self.files["commits.csv"].append((now, self.family, TOPIC, p, self.committed[p]))
        member = self.member(now)
        state = "Empty" if member is None else REBALANCING if member == REBALANCING else "Stable"
        described = (state, member if state == "Stable" and member else "")
        if described != known:
            self.files["groups.csv"].append((now, self.family, state, "classic"))
            if described[1]:
                self.files["assignments.csv"] += [
                    (now, self.family, self.owner(described[1], p), "reader", "10.0.0.1", TOPIC, p) for p in self.every
                ]
        return described

    def owner(self, member: str, partition: int) -> str:
        """Whose a partition is."""
        return member

    # What is true of it.

    def _step(self, time_s: float) -> int:
        return int((time_s - self.begins_s) // STEP_S)

    def lag(self, partition: int, time_s: float) -> float:
        """Records written and not committed."""
        step = self._step(time_s)
        return self.ends[partition][step] - self.committed_at[partition][step]

    def committed_at_s(self, partition: int, time_s: float) -> int:
        """The offset that was committed at a moment."""
        return self.committed_at[partition][self._step(time_s)]

    def stands_s(self, partition: int, time_s: float) -> float:
        """For how long the committed offset has been where it is."""
        step = self._step(time_s)
        offsets = self.committed_at[partition]
        return (step - bisect_left(offsets, offsets[step], 0, step)) * STEP_S

    def unread(self, partition: int, time_s: float) -> float:
        """Records written and not read."""
        step = self._step(time_s)
        return self.ends[partition][step] - self.position_at[partition][step]

    def age_s(self, partition: int | None, time_s: float) -> float:
        """Age of the oldest record of a partition (or of all) that is not committed; 0 where there is none."""
        if partition is None:
            return max(self.age_s(p, time_s) for p in self.every)
        step = self._step(time_s)
        written = bisect_right(self.ends[partition], self.committed_at[partition][step], 0, step + 1)
        return (step - written) * STEP_S if written <= step else 0.0

    def times(self, from_s: float, to_s: float) -> Iterable[float]:
        """The samples within a time."""
        every = self.habits.interval_s
        return (n * every for n in range(math.ceil(from_s / every), int(min(to_s, self.seconds) // every) + 1))

    def truth(self, words: str, from_s: float, to_s: float, partition: int | None = None) -> None:
        """What may be said of the group (or of one of its partitions) at every sample of a time, if there is one."""
        to_s = min(to_s, self.seconds)
        if from_s <= to_s and any(True for _ in self.times(from_s, to_s)):
            allowed = tuple(_allowed(word) for word in words.split("|"))
            topic = None if partition is None else TOPIC
            self._truth.append(Truth(self.family, topic, partition, from_s, to_s, allowed))

    def truth_by(self, words: Callable[[float], str], from_s: float, to_s: float, partition: int | None = None) -> None:
        """What may be said of the group (or of one of its partitions) at each sample of a time, by the moment."""
        for allowed, times in groupby(self.times(from_s, to_s), words):
            its = list(times)
            self.truth(allowed, its[0], its[-1], partition)

    def truth_of_all(self, words: str, from_s: float, to_s: float) -> None:
        """What may be said of the group and of each of its partitions."""
        for partition in (None, *self.every):
            self.truth(words, from_s, to_s, partition)

    def trace(self) -> Trace:
        return trace_of_files(str(self), "", self.files, self.habits.interval_s, self._truth)

    def __str__(self) -> str:
        h = self.habits
        drawn = "".join(f", {name} {value:g}" if isinstance(value, float) else f", {name} {value}"
                        for name, value in self.drawn.items())  # fmt: skip
        return (
            f"{self.family} {self.seed} ({h.rate:g}/s on {h.partitions}, sampled each {h.interval_s:g} s, committed "
            f"each {h.commit_every_s:g} s, noise {h.noise:.1%}{drawn})"
        )


def _allowed(word: str) -> tuple[Status, UnknownReason | None]:
    name, _, reason = word.partition(":")
    return Status(name), UnknownReason(reason) if reason else None
