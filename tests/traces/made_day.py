"""What the days that are made where they are needed share: draws of chance, and how their rows become a trace."""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from lagwise.traces.trace import Trace, Truth
from tests.traces.in_memory import OBJECTIVE_S, Files, no_files, trace_of_files
from tests.traces.judged import judged
from tests.traces.world import COLUMNS, write_csv

DAY_S = 86_400.0


def no_rows() -> Files:
    """Every file of a trace but that of truths, still empty."""
    return {name: rows for name, rows in no_files().items() if name != "truth.csv"}


class Chance:
    """Draws of the few shapes that are needed, from ``random.Random.random`` only: every Python version keeps its
    sequence."""

    def __init__(self, seed: str) -> None:
        self.draw = random.Random(seed).random

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self.draw()

    def one_of(self, choices: tuple[float, ...]) -> float:
        return choices[int(self.draw() * len(choices))]

    def normal(self) -> float:
        return math.sqrt(-2 * math.log(1 - self.draw())) * math.cos(2 * math.pi * self.draw())

    def count(self, mean: float) -> int:
        """Poisson: how many records come where so many are expected."""
        if mean > 30:
            return max(0, round(mean + math.sqrt(mean) * self.normal()))
        limit, product, n = math.exp(-mean), self.draw(), 0
        while product > limit:
            product *= self.draw()
            n += 1
        return n

    def times(self, every_s: float, until_s: float) -> Iterator[float]:
        """Moments that come by chance, so many seconds apart on the average."""
        at = 0.0
        while (at := at - every_s * math.log(1 - self.draw())) < until_s:
            yield at


@dataclass(frozen=True)
class MadeDay:
    """A day, or a part of it, as rows of a trace's files."""

    name: str
    story: str
    interval_s: float
    files: Files
    truth: Sequence[Truth]

    def trace(self) -> Trace:
        """As if it had been written and read."""
        return trace_of_files(self.name, self.story, dict(self._files()), self.interval_s, self.truth)

    def write(self, folder: Path, evaluate_every_s: float) -> None:
        """Write it to a folder of its name."""
        folder = folder / self.name
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in self._files():
            write_csv(folder / name, COLUMNS[name], rows)
        head = f'name = "{self.name}"\nstory = "{self.story}"\nsample_interval_s = {self.interval_s:g}\n'
        head += f"evaluate_every_s = {evaluate_every_s:g}\n"
        (folder / "trace.toml").write_text(head, encoding="utf-8")

    def _files(self) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
        yield from self.files.items()
        yield "truth.csv", [(t.group, t.topic, t.partition, t.from_s, t.to_s, t.words) for t in self.truth]


def untrue(trace: Trace, samples: Sequence[int]) -> list[str]:
    """Every verdict on a group at these samples (by their numbers) that its truth does not allow, in words."""
    found = []
    count = 0
    for at, evaluation in judged(trace, samples):
        for group, verdict in evaluation.groups.items():
            allowed = [truth for truth in trace.truth if truth.group == group and truth.from_s <= at <= truth.to_s]
            count += len(allowed) > 0
            if not all(truth.is_met_by(verdict.status, verdict.reason) for truth in allowed):
                found.append(f"{group} at {at:g} s: {verdict.status} {verdict.reason or ''} {verdict.sentence}")
    # Nothing is missing, and every sample has a truth.
    assert count == len(samples) * len({truth.group for truth in trace.truth}) > 0
    return found


def late(trace: Trace) -> list[tuple[int, datetime]]:
    """Partitions and times whose records were not committed when the objective was over, whatever is said of it."""
    ends = {(row["partition"], row["sampled_at"]): row["high_watermark"] for row in trace.rows["watermarks"]}
    commits = {(row["partition"], row["sampled_at"]): row["committed"] for row in trace.rows["commits"]}
    assert len(commits) == len(ends) > 0
    found = []
    for partition in {partition for partition, _ in ends}:
        times = sorted(at for p, at in ends if p == partition)
        later = 0
        for at in times:
            while later < len(times) and (times[later] - at).total_seconds() < OBJECTIVE_S:
                later += 1
            if later < len(times) and commits[partition, times[later]] < ends[partition, at]:
                found.append((partition, at))
    return found
