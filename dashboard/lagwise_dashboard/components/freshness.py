"""How old the data is, on every page, for collection and analysis separately: old data never passes for the present."""

import math
from dataclasses import dataclass
from datetime import datetime

import streamlit as st

from lagwise.config import Config
from lagwise.domain import humanise
from lagwise_dashboard import literal, settings
from lagwise_dashboard.cache import ask
from lagwise_dashboard.queries import health
from lagwise_dashboard.queries.base import Row

#: Older than this many intervals (plus the time that one round takes) is stale.
STALE_INTERVALS = 3
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Source:
    """One thing that must be fresh: a cluster's collection, or the analysis. ``at`` None: never happened.

    ``trouble`` is why the newest attempt read nothing: the kind of its first error, and what was said.
    """

    name: str
    at: datetime | None
    interval_seconds: float
    round_seconds: float
    now: datetime
    trouble: tuple[str, str] | None = None

    @property
    def age_seconds(self) -> float | None:
        return None if self.at is None else max(0.0, (self.now - self.at).total_seconds())

    @property
    def allowed_seconds(self) -> float:
        return STALE_INTERVALS * self.interval_seconds + self.round_seconds

    @property
    def stale(self) -> bool:
        return self.age_seconds is None or self.age_seconds > self.allowed_seconds


@dataclass(frozen=True, slots=True)
class Freshness:
    """How old everything is at ``now``; ``as_of`` is the moment the verdicts speak of."""

    collections: tuple[Source, ...]
    analysis: Source
    as_of: datetime | None
    now: datetime

    @property
    def nothing_collected(self) -> bool:
        return all(source.at is None for source in self.collections)

    @property
    def stale(self) -> tuple[Source, ...]:
        return tuple(s for s in (*self.collections, self.analysis) if s.stale)


def read(now: datetime) -> Freshness:
    """How old everything is now. A cluster that is configured and was never collected counts, too."""
    newest = ask(health.newest, now.replace(hour=0, minute=0, second=0, microsecond=0))
    return judge(newest, settings.config(), now)


def judge(newest: health.Newest, config: Config, now: datetime) -> Freshness:
    """The ages of what is newest, against the intervals that were asked for."""
    sampled: dict[str, Row] = {row["cluster"]: row for row in newest.samples}
    intervals = {cluster.name: cluster.interval_seconds for cluster in config.clusters}
    names = [*intervals, *sorted(sampled.keys() - intervals.keys())]
    collections = tuple(
        Source(
            name,
            sampled[name]["read_at"] if name in sampled else None,
            sampled[name]["interval_seconds"] if name in sampled else intervals[name],
            sampled[name]["wall_seconds"] if name in sampled else 0.0,
            now,
            _trouble(sampled[name]) if name in sampled else None,
        )
        for name in names
    )
    tick = newest.tick
    analysis = Source(
        "analysis",
        tick["finished_at"] if tick else None,
        config.analysis.interval_seconds,
        tick["wall_seconds"] if tick else 0.0,
        now,
    )
    return Freshness(collections, analysis, newest.as_of, now)


def _age_or_never(source: Source) -> float:
    return math.inf if source.age_seconds is None else source.age_seconds


def _trouble(sample: Row) -> tuple[str, str] | None:
    if sample["finished_at"] == sample["read_at"] or not sample["errors"]:
        return None
    first = sample["errors"][0]
    return first["kind"], first["example"] or ""


def strip(freshness: Freshness) -> None:
    """One line: data as of when, and the ages; a warning below it where something is stale."""
    now = freshness.now
    oldest = max(freshness.collections, key=_age_or_never, default=None)
    parts = [f"**Data as of {humanise.clock(freshness.as_of, now)}**"]
    if oldest is not None:
        which = f" ({literal.markdown(oldest.name)})" if len(freshness.collections) > 1 else ""
        parts.append(_badge("collected", oldest, any(s.stale for s in freshness.collections), which))
    parts.append(_badge("analysed", freshness.analysis, freshness.analysis.stale, ""))
    st.markdown(" &nbsp; ".join(parts))
    if freshness.stale and not freshness.nothing_collected:
        st.error(f"**Stale: do not trust what you see below.** {_complaints(freshness)}", icon=":material/schedule:")
        st.page_link("views/health.py", label="What to do about it", icon=":material/build:")


def _badge(verb: str, source: Source, stale: bool, which: str) -> str:
    colour, sign = ("red", "✕") if stale else ("green", "✓")
    when = "never" if source.at is None else f"{humanise.since(source.at, source.now)} ago"
    return f":{colour}-badge[{sign} {verb} {when}{which}]"


def _complaints(fresh: Freshness) -> str:
    """What is stale, in sentences. Clusters beyond the first few are counted."""
    clusters = [s for s in fresh.collections if s.stale]
    said = [
        f"The cluster **{literal.markdown(s.name)}** has {_not_for(s, 'been collected')}{why(s)}."
        for s in clusters[:_NAMED]
    ]
    if len(clusters) > _NAMED:
        said.append(f"So have {humanise.plural(len(clusters) - _NAMED, 'other cluster')}.")
    if fresh.analysis.stale:
        said.append(f"The analysis has {_not_for(fresh.analysis, 'finished a round')}.")
    return " ".join(said)


def why(source: Source) -> str:
    """Why nothing could be read, to go on a sentence with; empty where that is not known."""
    if source.trouble is None:
        return ""
    kind, example = source.trouble
    return f": {literal.markdown(kind)}" + (f" ({literal.markdown(example)})" if example else "")


def _not_for(source: Source, done: str) -> str:
    expected = f"every {humanise.duration(source.interval_seconds)}"
    if source.age_seconds is None:
        return f"never {done} (expected {expected})"
    return f"not {done} for {humanise.duration(round(source.age_seconds))} (expected {expected})"
