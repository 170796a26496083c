"""How old the data is, on every page: old data never passes for the present.

Three things have an age: the collection of each cluster, the analysis, and what the verdicts rest on. The last can be
old while the first two work: a sample may wait for the lake, or for its turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import streamlit as st

from lagwise.config import Config
from lagwise.domain import humanise, staleness
from lagwise.links import pages
from lagwise.platform.logs import clean
from lagwise_dashboard import address, context, escaping, time_zone, visibility
from lagwise_dashboard.cache import ask
from lagwise_dashboard.queries import health
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.widgets.error_boundary import LAKE_ADVICE

_NAMED = 3
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
#: The container that the line is drawn in.
_PLACE = "freshness_place"
_START = timedelta(seconds=staleness.START_SECONDS)


class CollectionError(NamedTuple):
    """An error of a cluster's collection: its kind, and one of its messages, which may be empty."""

    kind: str
    example: str


@dataclass(frozen=True, slots=True)
class DataSource:
    """One thing that must be fresh: a cluster's collection or verdicts, or the analysis. ``at`` None: never happened.

    It is expected every ``interval_seconds``, and late when it is older than ``allowed_seconds``: stale, unless it
    ``has_just_started``. ``trouble`` is why the newest attempt read nothing.
    """

    name: str
    at: datetime | None
    interval_seconds: float
    allowed_seconds: float
    now: datetime
    trouble: CollectionError | None = None
    has_just_started: bool = False
    #: Whether the settings name the cluster.
    is_configured: bool = True

    @property
    def _age(self) -> staleness.DataAge:
        return staleness.DataAge(self.at, self.now, self.allowed_seconds)

    @property
    def age_seconds(self) -> float | None:
        return self._age.seconds

    @property
    def is_late(self) -> bool:
        return self._age.is_stale

    @property
    def starting(self) -> bool:
        """Whether the first data of a new start is awaited. An attempt that failed is no start any more."""
        return self.is_late and self.has_just_started and self.trouble is None

    @property
    def stale(self) -> bool:
        return self.is_late and not self.starting


@dataclass(frozen=True, slots=True)
class Freshness:
    """How old everything is at ``now``; ``verdicts`` are those on the clusters that have any. ``trouble`` is why the
    last two are not known: a line for each table that cannot be read."""

    collections: tuple[DataSource, ...]
    analysis: DataSource
    verdicts: tuple[DataSource, ...]
    now: datetime
    trouble: tuple[str, ...] = ()

    @property
    def as_of(self) -> datetime | None:
        """The moment that the verdicts speak of; where clusters differ, the oldest of those that count."""
        return min((v.at for v in _counted(self.verdicts) if v.at is not None), default=None)

    @property
    def oldest_collection(self) -> DataSource | None:
        """The cluster that was collected the longest ago, of those that count."""
        oldest_first = sorted(_counted(self.collections), key=lambda s: s.at or _LONG_AGO)
        return oldest_first[0] if oldest_first else None

    def of_cluster(self, name: str) -> "Freshness":
        """How old everything is that a page of one cluster shows. Without verdicts on such a cluster it is all."""
        collections = tuple(s for s in self.collections if s.name == name)
        verdicts = tuple(v for v in self.verdicts if v.name == name)
        return replace(self, collections=collections, verdicts=verdicts) if verdicts else self

    @property
    def nothing_collected(self) -> bool:
        return self.as_of is None and all(source.at is None for source in self.collections)

    @property
    def sources(self) -> tuple[DataSource, ...]:
        return (*self.collections, self.analysis, *self.verdicts)

    @property
    def stale(self) -> tuple[DataSource, ...]:
        return tuple(s for s in self.sources if s.stale)

    @property
    def starting(self) -> bool:
        """Whether a new start is awaited, and nothing is stale."""
        return not self.stale and any(s.starting for s in self.sources)

    @property
    def held_up(self) -> tuple[DataSource, ...]:
        """Stale verdicts that neither a stale collection nor a stale analysis explains."""
        if self.analysis.stale:
            return ()
        late = {source.name for source in self.collections if source.stale}
        return tuple(v for v in self.verdicts if v.stale and v.name not in late)


def _counted(sources: Sequence[DataSource]) -> Sequence[DataSource]:
    """Those by whose age all data is dated: the clusters of the settings, and others once they are late. What a lake
    holds besides, such as the made-up cluster of the demo, is nobody's watch. Without any of the settings, all."""
    return [s for s in sources if s.is_configured or s.is_late] or sources


def read(now: datetime) -> Freshness:
    """How old everything is now that the page may show. A cluster that is configured and was never collected counts,
    too."""
    newest = ask(health.newest, now.replace(hour=0, minute=0, second=0, microsecond=0))
    config = context.config().model_copy(update={"clusters": visibility.clusters()})
    return judge(newest, config, now, context.started_at()).of_cluster(address.shown_cluster())


def _collection(
    name: str, interval_seconds: float, sample: Row | None, now: datetime, *, is_new: bool, is_configured: bool
) -> DataSource:
    return DataSource(
        name,
        sample["read_at"] if sample else None,
        interval_seconds,
        _allowed_seconds(interval_seconds, sample),
        now,
        _trouble(sample) if sample else None,
        has_just_started=is_new,
        is_configured=is_configured,
    )


def judge(newest: health.Newest, config: Config, now: datetime, started_at: datetime) -> Freshness:
    """The ages of what is newest, against the intervals that were asked for, of pages that were started at a time.

    The analysis may have been started later, with the first sample of all.
    """
    is_new = now - started_at < _START
    is_new_to_the_analysis = is_new or (newest.first_sample_at is not None and now - newest.first_sample_at < _START)
    sampled: dict[str, Row] = {row["cluster"]: row for row in newest.samples}
    intervals = {cluster.name: cluster.interval_seconds for cluster in config.clusters}
    configured = frozenset(intervals)
    intervals |= {name: sample["interval_seconds"] for name, sample in sampled.items()}
    collections = tuple(
        _collection(name, interval, sampled.get(name), now, is_new=is_new, is_configured=name in configured)
        for name, interval in intervals.items()
    )
    each, tick = config.analysis.interval_seconds, newest.tick
    analysis = DataSource(
        "analysis",
        tick["finished_at"] if tick else None,
        each,
        _allowed_seconds(each, tick),
        now,
        has_just_started=is_new_to_the_analysis,
    )
    verdicts = tuple(
        DataSource(
            name,
            as_of,
            each,
            staleness.allowed_age_seconds(intervals.get(name, each), each),
            now,
            has_just_started=is_new_to_the_analysis,
            is_configured=name in configured,
        )
        for name, as_of in newest.as_of.items()
    )
    return Freshness(collections, analysis, verdicts, now, newest.trouble)


def _allowed_seconds(interval_seconds: float, newest_round: Row | None) -> float:
    """Something may be late by some intervals and the time that a round takes."""
    return staleness.STALE_INTERVALS * interval_seconds + (newest_round["wall_seconds"] if newest_round else 0.0)


def _trouble(sample: Row) -> CollectionError | None:
    if sample["finished_at"] == sample["read_at"] or not sample["errors"]:
        return None
    first = sample["errors"][0]
    return CollectionError(first["kind"], first["example"] or "")


def place() -> None:
    """Keep a place for the line on the age of the data: beside the title of the page, where there is room."""
    st.session_state[_PLACE] = st.container(width="content")


def strip(freshness: Freshness) -> None:
    """One line beside the title: data as of when, and the ages. Where something is stale, a warning is drawn here."""
    now = freshness.now
    oldest = freshness.oldest_collection
    as_of = freshness.as_of
    parts = ["**No data yet**" if as_of is None else f"**Data as of {time_zone.clock_markdown(as_of, now)}**"]
    if any(verdict.is_late for verdict in freshness.verdicts):
        old = f"{humanise.since(as_of, now)} old"
        parts.append(f":blue-badge[… {old}]" if freshness.starting else f":red-badge[✕ {old}]")
    if oldest is not None:
        which = f" ({escaping.markdown(oldest.name)})" if len(freshness.collections) > 1 else ""
        parts.append(_badge("collected", oldest, freshness.collections, which))
    parts.append(_badge("analysed", freshness.analysis, (freshness.analysis,), ""))
    st.session_state[_PLACE].markdown(" &nbsp; ".join(parts))
    for line in freshness.trouble:
        st.error(f"{escaping.markdown(clean(line))}\n\n{LAKE_ADVICE}", icon=":material/error:")
    if freshness.starting:
        old = f" What you see below is {humanise.since(as_of, now)} old." if as_of else ""
        st.info(f"**Starting.** {_awaited(freshness)}{old}", icon=":material/hourglass_top:")
    if freshness.stale and not freshness.nothing_collected:
        st.error(f"**Stale: do not trust what you see below.** {_complaints(freshness)}", icon=":material/schedule:")
        address.page_link(pages.HEALTH, "What to do about it", icon=":material/build:")


def _badge(verb: str, oldest: DataSource, sources: tuple[DataSource, ...], which: str) -> str:
    """How old the oldest of these is, with a sign for the gravest."""
    stale, starting = any(s.stale for s in sources), any(s.starting for s in sources)
    colour, sign = ("red", "✕") if stale else ("blue", "…") if starting else ("green", "✓")
    when = f"{humanise.since(oldest.at, oldest.now)} ago" if oldest.at else "not yet" if oldest.starting else "never"
    return f":{colour}-badge[{sign} {verb} {when}{which}]"


def _awaited(fresh: Freshness) -> str:
    """What a new start waits for, and until when: a sentence. Clusters beyond the first few are counted."""
    clusters = [s for s in fresh.collections if s.starting]
    named = [f"the {_which(s)} sample of **{escaping.markdown(s.name)}**" for s in clusters[:_NAMED]]
    if len(clusters) > _NAMED:
        named.append(f"those of {humanise.plural(len(clusters) - _NAMED, 'other cluster')}")
    if fresh.analysis.starting or any(s.starting for s in fresh.verdicts):
        named.append(f"the {_which(fresh.analysis)} round of the analysis")
    awaited = " and ".join([", ".join(named[:-1]), named[-1]] if named[1:] else named)
    return f"Waiting for {awaited}, expected within {humanise.duration(staleness.START_SECONDS)} of the start."


def _which(source: DataSource) -> str:
    return "first" if source.at is None else "next"


def _complaints(fresh: Freshness) -> str:
    """What is stale, in sentences. Clusters beyond the first few are counted."""
    clusters = [s for s in fresh.collections if s.stale]
    said = [
        f"The cluster **{escaping.markdown(s.name)}** has {_not_for(s, 'been collected')}{why(s)}."
        for s in clusters[:_NAMED]
    ]
    if len(clusters) > _NAMED:
        said.append(f"So have {humanise.plural(len(clusters) - _NAMED, 'other cluster')}.")
    if fresh.analysis.stale:
        said.append(f"The analysis has {_not_for(fresh.analysis, 'finished a round')}.")
    said += [
        f"The newest judged sample of **{escaping.markdown(s.name)}** is {too_old(s)}." for s in fresh.held_up[:_NAMED]
    ]
    return " ".join(said)


def too_old(source: DataSource) -> str:
    """How old it is and how old it may be, as half a sentence in which the two never read alike."""
    age, allowed = humanise.duration(round(source.age_seconds or 0)), humanise.duration(source.allowed_seconds)
    return (
        f"just over {allowed} old, the most expected" if age == allowed else f"{age} old (expected at most {allowed})"
    )


def why(source: DataSource) -> str:
    """Why nothing could be read, to go on a sentence with; empty where that is not known."""
    if source.trouble is None:
        return ""
    example = f" ({escaping.markdown(source.trouble.example)})" if source.trouble.example else ""
    return f": {escaping.markdown(source.trouble.kind)}{example}"


def _not_for(source: DataSource, done: str) -> str:
    expected = f"every {humanise.duration(source.interval_seconds)}"
    if source.age_seconds is None:
        return f"never {done} (expected {expected})"
    return f"not {done} for {humanise.duration(round(source.age_seconds))} (expected {expected})"
