"""Burrow's rules (linkedin/Burrow, core/internal/evaluator/caching.go), as they are published, in our own words.

Burrow reads every commit from ``__consumer_offsets``; a sampled history has less, and this is what it can reproduce:

* A commit is a sample in which the offset moved, or in which a member owns the partition: clients commit at every
  interval whether or not they got on. Of a consumer that died without a word, the samples until the coordinator notices
  count as commits, which makes Burrow see it up to one session timeout later than it would.
* Commits closer than a sampling interval are one, as with Burrow's ``min-distance`` set to it. The window of 10 commits
  (the default) then spans 135 s where it is committed all the time.
* The broker's offsets are those of the samples, ten of them, instead of one every ten seconds.

``minimum-complete`` is 0 and ``allowed-lag`` 0, the defaults. A notifier sends from WARN on.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import pairwise

from benchmarks.verdicts.seen import ALARM, QUIET, UNKNOWN, Pair, Sample

INTERVALS = 10


class Code(IntEnum):
    """Burrow's status codes; of a group the largest of its partitions counts."""

    NOTFOUND = 0
    OK = 1
    WARN = 2
    ERR = 3
    STOP = 4
    STALL = 5
    REWIND = 6


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit as it is stored: when, which offset, and the lag at that moment (None where the end was not known)."""

    at: float
    offset: int
    lag: int | None


def status_of(commits: list[Commit], ends: list[int], now: float) -> Code:
    """The status of one partition from its window of commits and the broker's last offsets, both oldest first."""
    if not commits or not ends:
        return Code.OK
    first, last = commits[0], commits[-1]
    if max(0, ends[-1] - last.offset) == 0:
        return Code.OK
    if now - last.at > last.at - first.at and not any(end <= last.offset for end in ends):
        return Code.STOP
    offsets = [commit.offset for commit in commits]
    for i in range(1, len(offsets)):
        if offsets[i] < offsets[i - 1]:
            if not any(offset >= offsets[i - 1] for offset in offsets[i:]):
                return Code.REWIND
            break
    lags = [commit.lag for commit in commits if commit.lag is not None]
    if any(lag == 0 for lag in lags):
        return Code.OK
    if len(set(offsets)) == 1:
        return Code.STALL
    if all(later >= earlier for earlier, later in pairwise(lags)):
        return Code.WARN
    return Code.OK


@dataclass
class _Partition:
    commits: deque[Commit] = field(default_factory=lambda: deque(maxlen=INTERVALS))
    ends: deque[int] = field(default_factory=lambda: deque(maxlen=INTERVALS))


class Burrow:
    """Burrow over a sampled history."""

    name = "Burrow"

    def __init__(self) -> None:
        self._partitions: dict[Pair, _Partition] = {}
        self._now = 0.0

    def see(self, sample: Sample) -> None:
        self._now = sample.at
        for pair, reading in sample.readings.items():
            kept = self._partitions.setdefault(pair, _Partition())
            end = reading.high_watermark
            if end is not None:
                kept.ends.append(end)
            if reading.committed is None:
                continue
            moved = not kept.commits or kept.commits[-1].offset != reading.committed
            if moved or reading.is_owned:
                lag = None if end is None else max(0, end - reading.committed)
                kept.commits.append(Commit(sample.at, reading.committed, lag))

    def says(self, group: str) -> str:
        codes = [
            status_of(list(kept.commits), list(kept.ends), self._now)
            for pair, kept in self._partitions.items()
            if pair.group == group and kept.commits
        ]
        worst = max(codes, default=Code.NOTFOUND)
        return UNKNOWN if worst is Code.NOTFOUND else ALARM if worst >= Code.WARN else QUIET
