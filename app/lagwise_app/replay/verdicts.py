"""``lagwise replay``: recorded histories, analysed again, and compared with their truth where there is one."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lagwise.domain.humanise import duration, plural
from lagwise.platform.logs import clean
from lagwise.traces.trace import Trace, Truth, read_trace
from lagwise_app.replay.shown import Shown, shown_of

NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Miss:
    """Successive evaluations that all contradict a row of the truth in the same way."""

    truth: Truth
    from_s: float
    to_s: float
    #: The status, of an unknown one with its reason. NOTHING where the group or partition has none, or where no
    #: evaluation falls within the time of the row.
    shown: str


@dataclass(frozen=True, slots=True)
class RowScore:
    """In how many of the evaluations that a row of the truth speaks of it was met. A row that none falls into counts as
    one that was not."""

    truth: Truth
    met: int
    judged: int


@dataclass(frozen=True, slots=True)
class Score:
    """How much of a trace's truth was met.

    Every evaluation counts for the time until the next one, and every row of the truth counts by itself. ``share`` is
    None where there is no truth.
    """

    rows: tuple[RowScore, ...]
    misses: tuple[Miss, ...]

    @property
    def met(self) -> int:
        return sum(row.met for row in self.rows)

    @property
    def judged(self) -> int:
        return sum(row.judged for row in self.rows)

    @property
    def share(self) -> float | None:
        return self.met / self.judged if self.judged else None


def run(dirs: Sequence[Path], as_json: bool) -> int:
    """Replay the traces in these folders and print the result. Returns 1 where a truth was missed, otherwise 0.

    With ``as_json``, stdout holds one JSON object per evaluation and nothing else. Raises TraceError for a folder that
    is not a trace, before anything is printed.
    """
    traces = [read_trace(folder) for folder in dirs]
    missed = 0
    for trace in traces:
        shown = shown_of(trace)
        score = score_of(trace, shown)
        missed += len(score.misses)
        lines = (one.as_json() for one in shown) if as_json else report(trace, shown, score)
        for line in lines:
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
    return 1 if missed else 0


def score_of(trace: Trace, shown: Sequence[Shown]) -> Score:
    """Compare the shown statuses with the truth."""
    by_key = {(s.time_s, s.group, s.topic, s.partition): s for s in shown}
    rows: list[RowScore] = []
    misses: list[Miss] = []
    for truth in trace.truth:
        topic = None if truth.partition is None else truth.topic
        times = [at for at in trace.evaluation_times if truth.from_s - 1e-6 <= at <= truth.to_s + 1e-6]
        met = 0
        if not times:
            misses.append(Miss(truth, truth.from_s, truth.to_s, NOTHING))
        open_miss: Miss | None = None
        for at in times:
            one = by_key.get((at, truth.group, topic, truth.partition))
            if one is not None and truth.is_met_by(one.status, one.reason):
                met += 1
                open_miss = None
                continue
            word = NOTHING if one is None else _word(one)
            if open_miss is not None and open_miss.shown == word:
                open_miss = misses[-1] = replace(open_miss, to_s=at)
            else:
                open_miss = Miss(truth, at, at, word)
                misses.append(open_miss)
        rows.append(RowScore(truth, met, max(1, len(times))))
    return Score(tuple(rows), tuple(misses))


def report(trace: Trace, shown: Sequence[Shown], score: Score) -> Iterator[str]:
    """The result of a trace as text: how much of its truth was met, row by row, and every miss; without a truth its
    statuses."""
    span = duration(trace.evaluation_times[-1] - trace.evaluation_times[0])
    judged = f"{plural(len(trace.evaluation_times), 'evaluation')} over {span}"
    if score.share is None:
        yield f"{clean(trace.name)}: no truth to compare with; {judged}"
        yield from _timeline(shown)
        return
    share = f"{score.share:.1%}" if score.misses else "100 %"
    rows = plural(len(trace.truth), "row")
    yield f"{clean(trace.name)}: {share} of the truth met ({rows}; {judged}, each counts until the next)"
    for row in score.rows:
        span = f"from {_clock(row.truth.from_s)} to {_clock(row.truth.to_s)}"
        yield f"  {_where(row.truth)} {span}: {row.truth.words} in {row.met} of {plural(row.judged, 'evaluation')}"
    for miss in score.misses:
        yield (
            f"  missed {_where(miss.truth)} from {_clock(miss.from_s)} to {_clock(miss.to_s)}: expected "
            f"{miss.truth.words}, shown {miss.shown}"
        )


def _where(truth: Truth) -> str:
    """The group, or the partition, that a row of the truth speaks of."""
    partition = "" if truth.partition is None else f" {clean(str(truth.topic))}-{truth.partition}"
    return f"{clean(truth.group)}{partition}"


def _timeline(shown: Sequence[Shown]) -> Iterator[str]:
    """Each group's statuses in order of time, with the first sentence of each."""
    groups: dict[str, list[Shown]] = {}
    for one in shown:
        if one.partition is None:
            groups.setdefault(one.group, []).append(one)
    for group, its in sorted(groups.items()):
        yield f"  {clean(group)}"
        start = 0
        for end in range(1, len(its) + 1):
            if end == len(its) or _word(its[end]) != _word(its[start]):
                first, last = its[start], its[end - 1]
                span = f"{_clock(first.time_s)} to {_clock(last.time_s)}"
                yield f"    {span}  {_word(first)}: {clean(first.sentence or '')}"
                start = end


def _word(shown: Shown) -> str:
    return f"{shown.status}:{shown.reason}" if shown.reason else shown.status


def _clock(time_s: float) -> str:
    return f"{time_s:g} s"
