"""Facts on groups from tables of their own: storms of rebalances, and verdicts on capacity."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from lagwise.domain.capacity.verdict import CapacityVerdict
from lagwise.domain.rebalances.activity import STORM_WINDOW

#: Cluster and name.
Group = tuple[str, str]


class CapacityFinding(NamedTuple):
    """The verdict on the capacity of a group for one of its topics."""

    verdict: CapacityVerdict
    topic: str
    sentence: str


class Storm(NamedTuple):
    """The latest storm of rebalances of a group: when the group last rebalanced, and a sentence on it."""

    last_at: datetime
    sentence: str


#: The latest storm of each group that had one.
STORMS_SQL = """
select cluster, "group", max(last_at) as last_at, arg_max(sentence, last_at) as sentence
from rebalance_stats where is_storm group by all
"""
CAPACITY_SQL = 'select cluster, "group", verdict, topic, sentence from capacity'

#: A storm ends when the group has not rebalanced for this long.
STORM_LASTS = STORM_WINDOW
#: Sentences of more topics than this are left out.
_MOST_TOPICS = 3
_ORDER = {verdict: place for place, verdict in enumerate(CapacityVerdict)}
_WORDS = {verdict.value: verdict for verdict in CapacityVerdict}


def capacity_by_group(rows: Iterable[Mapping[str, Any]]) -> dict[Group, tuple[CapacityFinding, ...]]:
    """The verdicts of each group, the worst first. A verdict that only a newer version knows is left out."""
    found: dict[Group, list[CapacityFinding]] = {}
    for row in rows:
        verdict = _WORDS.get(row["verdict"])
        if verdict is not None:
            its = found.setdefault((row["cluster"], row["group"]), [])
            its.append(CapacityFinding(verdict, row["topic"], row["sentence"]))
    return {key: tuple(sorted(its, key=lambda one: (_ORDER[one.verdict], one.topic))) for key, its in found.items()}


def capacity_sentence(verdicts: Sequence[CapacityFinding]) -> str:
    """``orders: short. Its sentence. logs: …``, the first few of those that are not enough."""
    shown = [one for one in verdicts if one.verdict is not CapacityVerdict.ENOUGH] or list(verdicts)
    words = [f"{one.topic}: {one.verdict.value}. {one.sentence}" for one in shown[:_MOST_TOPICS]]
    more = len(shown) - _MOST_TOPICS
    return " ".join(words) + (f" And {more} more." if more > 0 else "")
