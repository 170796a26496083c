"""What the simulator said against what was seen."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.what_if.scene import SAMPLE_SECONDS, Scene, Seen
from lagwise.domain.simulation.fluid import simulate

GOAL = 0.10
HEADER = (
    f"{'scene':>8} | {'peak lag':>8} {'said':>7} {'off':>6} | {'peak age s':>10} {'said':>7} {'off':>6} | "
    f"{'drain s':>8} {'said':>7} {'off':>6} | {'curve off':>9}"
)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure, as seen and as the simulator said."""

    seen: float
    said: float

    @property
    def error(self) -> float:
        """How far off the simulator is, as a share of what was seen."""
        return self.said / self.seen - 1 if self.seen else float(self.said != 0.0)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One scene. ``curve_error`` is the mean distance of the curves of lag, as a share of the peak seen."""

    peak_lag: Figure
    peak_lag_seconds: Figure
    drain_seconds: Figure
    curve_error: float

    @property
    def holds(self) -> bool:
        """Whether everything is within the goal."""
        errors = (self.peak_lag.error, self.peak_lag_seconds.error, self.drain_seconds.error, self.curve_error)
        return all(abs(error) <= GOAL for error in errors)


def compare(scene: Scene, seen: Sequence[Seen]) -> Comparison:
    """Hold what was seen against the simulator's answer to the same scene."""
    said = simulate(scene.scenario, SAMPLE_SECONDS)
    peak = max(seen, key=lambda s: s.lag)
    # Some records are always in hand or about to be committed: as many as while nothing was wrong.
    settled = sorted(s.lag for s in seen if s.at_seconds < scene.begins_seconds)
    usual = settled[len(settled) // 2]
    drained = next((s.at_seconds for s in seen if s.at_seconds > peak.at_seconds and s.lag <= usual), float("nan"))
    curve = {round(m.at_seconds / SAMPLE_SECONDS): m.lag for m in said.moments}
    # Seen between two moments of the simulation: on the line between them.
    distances = [abs(s.lag - usual - _at(curve, s.at_seconds / SAMPLE_SECONDS)) for s in seen]
    return Comparison(
        Figure(peak.lag - usual, said.peak_lag),
        Figure(max(s.lag_seconds for s in seen), said.peak_lag_seconds),
        Figure(drained - peak.at_seconds, said.drain_seconds if said.drain_seconds is not None else float("inf")),
        sum(distances) / len(distances) / max(1.0, peak.lag - usual),
    )


def line(name: str, found: Comparison) -> str:
    """One scene as a row of the table."""

    def figure(f: Figure, width: int) -> str:
        return f"{f.seen:{width}.1f} {f.said:7.1f} {f.error:+6.1%}"

    return (
        f"{name:>8} | {figure(found.peak_lag, 8)} | {figure(found.peak_lag_seconds, 10)} | "
        f"{figure(found.drain_seconds, 8)} | {found.curve_error:9.1%}"
    )


def _at(curve: dict[int, float], position: float) -> float:
    before = int(position)
    first = curve.get(before, 0.0)
    return first + (curve.get(before + 1, first) - first) * (position - before)
