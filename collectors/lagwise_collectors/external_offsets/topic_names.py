"""Names of topics out of Flink's metrics, which spell them with an underscore for every dot."""

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from lagwise_collectors.external_offsets.model import GroupFound, Trouble

#: The names of all topics are listed again no sooner than this, however many are not found among them.
LIST_EVERY_SECONDS = 60.0


class TopicNames:
    """The cluster's topics by how Flink spells them. For one thread."""

    def __init__(self, names: Callable[[], Iterable[str]], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._names = names
        self._monotonic = monotonic
        self._listed_at: float | None = None
        self._by_spelling: dict[str, list[str]] = {}

    def right(self, group: GroupFound, committed: Collection[str]) -> None:
        """Give the group's topics their names; ``committed`` are those that it has committed to, which tell apart what
        is spelled alike. Raises Trouble where nothing does, and what listing the names raises."""
        spelled = {offset.topic for offset in group.offsets if "_" in offset.topic}
        if not spelled:
            return
        names = {one: self._name(one, committed) for one in spelled}
        group.offsets = [replace(offset, topic=names.get(offset.topic, offset.topic)) for offset in group.offsets]

    def _name(self, spelled: str, committed: Collection[str]) -> str:
        own = [name for name in committed if _spelled(name) == spelled]
        if len(own) == 1:
            return own[0]
        alike = self._alike(spelled)
        if len(alike) > 1:
            raise Trouble("malformed", f"Flink spells {len(alike)} topics alike: {', '.join(alike[:3])}")
        return alike[0] if alike else spelled

    def _alike(self, spelled: str) -> list[str]:
        now = self._monotonic()
        is_due = self._listed_at is None or now - self._listed_at >= LIST_EVERY_SECONDS
        if spelled not in self._by_spelling and is_due:
            self._listed_at = now
            self._by_spelling = {}
            for name in sorted(self._names()):
                self._by_spelling.setdefault(_spelled(name), []).append(name)
        return self._by_spelling.get(spelled, [])


def _spelled(name: str) -> str:
    return name.replace(".", "_")
