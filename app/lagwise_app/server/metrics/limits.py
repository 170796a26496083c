"""How old what is known of each cluster may be before it has no metrics."""

from collections.abc import Mapping

import pyarrow as pa

from lagwise.config import Config
from lagwise.domain.staleness import allowed_age_seconds

_DEFAULT_INTERVAL_SECONDS = 15.0
#: Facts that name clusters.
_NAMING = ("collections", "groups", "topic_partitions")


def stale_after_seconds(config: Config, facts: Mapping[str, pa.Table]) -> dict[str, float]:
    """The limit of every cluster in the settings or the lake: that of the settings, but never less than the intervals
    of collector and analysis explain."""
    intervals = {name: _DEFAULT_INTERVAL_SECONDS for fact in _NAMING for name in _clusters(facts, fact)}
    for progress in facts["rounds"]["progress"].to_pylist() if "rounds" in facts else ():
        intervals |= {one["cluster"]: _DEFAULT_INTERVAL_SECONDS for one in progress or () if one["cluster"]}
    intervals |= {cluster.name: cluster.interval_seconds for cluster in config.clusters}
    if "collections" in facts:
        sampled = facts["collections"].select(["cluster", "interval_seconds"]).to_pydict()
        intervals |= dict(zip(sampled["cluster"], sampled["interval_seconds"], strict=True))
    least = config.server.metrics.stale_after_seconds
    each = config.analysis.interval_seconds
    return {name: max(least, allowed_age_seconds(seconds, each)) for name, seconds in sorted(intervals.items())}


def watched_clusters(config: Config, facts: Mapping[str, pa.Table]) -> set[str]:
    """The clusters of the settings. A server whose settings name none watches those of which the lake has groups or
    collection runs."""
    named = {cluster.name for cluster in config.clusters}
    return named or _clusters(facts, "collections") | _clusters(facts, "groups")


def _clusters(facts: Mapping[str, pa.Table], fact: str) -> set[str]:
    return set(facts[fact]["cluster"].unique().to_pylist()) if fact in facts else set()
