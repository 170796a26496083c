"""How good a rule is on traces whose truth is known.

A rule says of every group at every evaluation: an alarm, none, or unknown. The truth of a moment is a set of these
words; moments at which an alarm and none are both right (something has just changed) are left out. Every trace counts
the same, however long it is.
"""

import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from benchmarks.verdicts.overdue import overdue
from benchmarks.verdicts.seen import ALARM, QUIET, UNKNOWN, word_of
from lagwise.traces.trace import Trace

#: What a rule says, by time and group.
Said = Mapping[tuple[float, str], str]

#: Samples farther apart than this many intervals have the collector's absence between them.
MISSED_SAMPLES = 5


class Stretch(NamedTuple):
    """From when to when which words are right of a group."""

    group: str
    from_s: float
    to_s: float
    right: frozenset[str]

    @property
    def is_trouble(self) -> bool:
        return self.right == {ALARM}

    @property
    def is_certain(self) -> bool:
        """Whether the truth is certain: there must be an alarm, or there must be none."""
        return self.is_trouble or ALARM not in self.right


class Onset(NamedTuple):
    """Trouble that begins: after ``from_s``, the last moment at which all was well; over at ``to_s``."""

    group: str
    from_s: float
    to_s: float


@dataclass(frozen=True, slots=True)
class Score:
    """One rule on one trace. ``right``, ``unknown`` and ``silent`` are shares, None where there was nothing to be right
    about: ``silent`` is that of the time in which records were older than the objective, and there was no alarm."""

    right: float
    unknown: float | None
    delays: tuple[float, ...]
    onsets: int
    false_alarms: int
    hours: float
    switches: int
    silent: float | None


@dataclass(frozen=True, slots=True)
class Figures:
    """One rule on all traces: shares and rates are means over the traces, delays in seconds are of all onsets, and
    switches those of all traces together."""

    right: float
    unknown: float
    found: int
    onsets: int
    median_delay: float
    worst_delay: float
    false_alarms_per_hour: float
    switches: int
    silent: float


def stretches_of(trace: Trace) -> list[Stretch]:
    """The truth about groups, as words."""
    return [
        Stretch(t.group, t.from_s, t.to_s, frozenset(word_of(status) for status, _ in t.allowed))
        for t in trace.truth
        if t.partition is None
    ]


def known_truth_shares(trace: Trace) -> dict[str, float]:
    """The share of time with a known truth, by group. The rest follows a change, or is open."""
    stretches = stretches_of(trace)
    return {
        group: statistics.mean(
            any(s.group == group and s.from_s <= at <= s.to_s for s in stretches) for at in trace.evaluation_times
        )
        for group in {stretch.group for stretch in stretches}
    }


def onsets_of(trace: Trace) -> list[Onset]:
    """The beginnings of trouble that was preceded by well-being; what is unclear in between belongs to it. What begins
    while the collector is down begins, for every rule, with the next sample."""
    onsets = []
    gaps = [(a, b) for a, b in pairwise(trace.sample_times) if b - a > MISSED_SAMPLES * trace.sample_interval_s]
    by_group: dict[str, list[Stretch]] = {}
    for stretch in sorted(stretches_of(trace), key=lambda s: (s.group, s.from_s, s.to_s)):
        if stretch.is_certain:
            by_group.setdefault(stretch.group, []).append(stretch)
    for group, its in by_group.items():
        for before, now in pairwise(its):
            if now.is_trouble and QUIET in before.right:
                later = [s for s in its if s.from_s >= now.from_s]
                end = next((s.from_s for s in later if not s.is_trouble), later[-1].to_s)
                began = next((b for a, b in gaps if a <= before.to_s < b), before.to_s)
                onsets.append(Onset(group, began, end))
    return onsets


def switches_of(trace: Trace, words: Said) -> int:
    """How often a rule changed its word between evaluations within one row of the truth that is certain."""
    times = trace.evaluation_times
    return sum(
        words[times[n], stretch.group] != words[times[n - 1], stretch.group]
        for stretch in stretches_of(trace)
        if stretch.is_certain
        for n in _within(times, stretch.from_s, stretch.to_s)[1:]
    )


def score_of(trace: Trace, said: Said, words: Said | None = None) -> Score:
    """Hold what a rule said against a trace's truth. ``words`` are its exact words, if it has more than said."""
    times = trace.evaluation_times
    stretches = [s for s in stretches_of(trace) if s.is_certain]
    right = judged = unknown = unknowable = 0
    false_alarms, quiet_evaluations = 0, 0
    for stretch in stretches:
        for n in _within(times, stretch.from_s, stretch.to_s):
            word = said[times[n], stretch.group]
            judged += 1
            right += (word == ALARM) == stretch.is_trouble
            if stretch.right == {UNKNOWN}:
                unknowable += 1
                unknown += word == UNKNOWN
            if not stretch.is_trouble:
                quiet_evaluations += 1
                # An alarm that goes on is not raised again; one that outlives its cause only costs its share of time.
                is_new = n == 0 or said[times[n - 1], stretch.group] != ALARM
                false_alarms += word == ALARM and is_new
    delays = []
    onsets = onsets_of(trace)
    for onset in onsets:
        after = (times[n] for n in _within(times, onset.from_s, onset.to_s))
        seen = next((at for at in after if said[at, onset.group] == ALARM), None)
        if seen is not None:
            delays.append(seen - onset.from_s)
    late = overdue(trace)
    return Score(
        right=right / judged,
        unknown=unknown / unknowable if unknowable else None,
        delays=tuple(delays),
        onsets=len(onsets),
        false_alarms=false_alarms,
        hours=quiet_evaluations * trace.evaluate_every_s / 3600,
        switches=switches_of(trace, said if words is None else words),
        silent=statistics.mean(said[one] != ALARM for one in late) if late else None,
    )


def figures_of(scores: Sequence[Score]) -> Figures:
    """All traces together."""
    delays = [delay for score in scores for delay in score.delays]
    return Figures(
        right=statistics.mean(score.right for score in scores),
        unknown=statistics.mean(score.unknown for score in scores if score.unknown is not None),
        found=len(delays),
        onsets=sum(score.onsets for score in scores),
        median_delay=statistics.median(delays),
        worst_delay=max(delays),
        false_alarms_per_hour=statistics.mean(score.false_alarms / score.hours for score in scores if score.hours),
        switches=sum(score.switches for score in scores),
        silent=statistics.mean(score.silent for score in scores if score.silent is not None),
    )


def _within(times: Sequence[float], from_s: float, to_s: float) -> range:
    return range(bisect_left(times, from_s - 1e-6), bisect_right(times, to_s + 1e-6))
