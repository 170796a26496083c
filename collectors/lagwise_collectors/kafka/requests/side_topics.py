"""Retry and dead-letter topics of the topics that are read: found by their names, because nothing else connects them.

Hardly any group commits on a dead-letter topic, so watching the topics with commits would never show it grow.
"""

import re
import time
from collections.abc import Callable, Collection, Iterable

from lagwise.config.kafka import SideTopicSettings
from lagwise.domain.vocabulary import TopicRole
from lagwise_collectors.sample_builder import SideTopicName

#: The names of all topics are listed once in this time: the answer grows with the cluster.
LIST_EVERY_SECONDS = 60.0


class SideTopics:
    """The side topics of the topics that are read. For one thread."""

    def __init__(
        self,
        settings: SideTopicSettings,
        names: Callable[[], Iterable[str]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        # Dead letters come first: the dead-letter topic of a retry topic is no retry topic.
        self._patterns = [
            (role, re.compile(pattern, re.DOTALL))
            for role, those in ((TopicRole.DEAD_LETTER, settings.dead_letter), (TopicRole.RETRY, settings.retry))
            for pattern in those
        ]
        self._names = names
        self._monotonic = monotonic
        self._listed_at: float | None = None
        self._sides: dict[str, SideTopicName] = {}

    def of(self, read: Collection[str]) -> dict[str, SideTopicName]:
        """By name, the side topics of those that are ``read``. Raises what listing the names raises."""
        if not self._patterns:
            return {}
        now = self._monotonic()
        if self._listed_at is None or now - self._listed_at >= LIST_EVERY_SECONDS:
            self._sides = {name: side for name in self._names() if (side := self._side(name)) is not None}
            self._listed_at = now
        return {name: side for name, side in self._sides.items() if side.main_topic in read}

    def _side(self, name: str) -> SideTopicName | None:
        for role, pattern in self._patterns:
            match = pattern.fullmatch(name)
            if match is not None and match.group(1):
                return SideTopicName(match.group(1), role)
        return None
