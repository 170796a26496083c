"""What the lake says of groups in tables of their own, beside their status: storms of rebalances, and capacity."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lagwise.domain.capacity.verdict import CapacityVerdict
from lagwise.domain.rebalances.activity import STORM_WINDOW

Group = tuple[str, str]
#: A verdict on capacity with the topic it is about and its sentence.
CapacityRow = tuple[CapacityVerdict, str, str]

#: The latest storm of each group that had one.
STORMS_SQL = """
select cluster, "group", max(last_at) as last_at, arg_max(sentence, last_at) as sentence
from rebalance_stats where is_storm group by all
"""
CAPACITY_SQL = 'select cluster, "group", verdict, topic, sentence from capacity'

#: A storm is one until for so long no rebalance was seen.
STORM_LASTS = STORM_WINDOW
#: Sentences of more topics than this are left out.
_MOST_TOPICS = 3
_ORDER = {verdict: place for place, verdict in enumerate(CapacityVerdict)}
_WORDS = {verdict.value: verdict for verdict in CapacityVerdict}


def capacity_by_group(rows: Iterable[Mapping[str, Any]]) -> dict[Group, tuple[CapacityRow, ...]]:
    """The verdicts of each group, the worst first; a word that this version does not know is none it can act on."""
    found: dict[Group, list[CapacityRow]] = {}
    for row in rows:
        verdict = _WORDS.get(row["verdict"])
        if verdict is not None:
            found.setdefault((row["cluster"], row["group"]), []).append((verdict, row["topic"], row["sentence"]))
    return {key: tuple(sorted(its, key=lambda r: (_ORDER[r[0]], r[1]))) for key, its in found.items()}


def capacity_sentence(rows: Sequence[CapacityRow]) -> str:
    """``orders: short. What it says. logs: …``, all but those that are enough, as far as there is room."""
    shown = [row for row in rows if row[0] is not CapacityVerdict.ENOUGH] or list(rows)
    words = [f"{topic}: {verdict.value}. {sentence}" for verdict, topic, sentence in shown[:_MOST_TOPICS]]
    more = len(shown) - _MOST_TOPICS
    return " ".join(words) + (f" And {more} more." if more > 0 else "")
