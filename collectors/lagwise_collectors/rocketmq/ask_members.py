"""Asks group members what only they know: the queues that they own, the progress of broadcasting members, and whether
they read in order.

The broker forwards the request to the consumer's process. Members are asked after a change of their group, and
otherwise rarely. Those of broadcasting groups are asked in every sample, because only they know their progress.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from lagwise_collectors.protocol import ErrorTally
from lagwise_collectors.rocketmq.remoting.errors import RocketmqTrouble
from lagwise_collectors.rocketmq.remoting.requests import CONSUME_STATS_SECONDS, ConsumeStats, MemberReport

#: A report counts for this long while its group has the same members. After a change members are asked in every sample
#: for a while: clients look for new topics, including their retry topic, every 30 s, and share out queues every 20 s.
_COUNTS_SECONDS = 60.0
_SETTLING_SECONDS = 90.0
#: A member that could not answer is not asked again for this long: its client may not be able to.
_LEFT_ALONE_SECONDS = 300.0
#: At most this many members of groups that are not broadcasting are asked in one sample.
_MAX_AT_ONCE = 200
#: And at most so many that they own this many queues, by their last reports: each report names all of them.
_MAX_QUEUES_AT_ONCE = 10_000

#: Group and client id.
Member = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ReachableMembers:
    """The members of a group that is online."""

    #: The broker through which a member can be asked, by client id.
    brokers: Mapping[str, str]
    is_broadcasting: bool


class MemberAnswers:
    """The last reports of members. For one thread."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._reports: dict[Member, tuple[float, MemberReport]] = {}
        self._refused: dict[Member, float] = {}
        self._changed: dict[str, tuple[frozenset[str], float]] = {}
        self._asked: frozenset[Member] = frozenset()
        #: When each member was first seen to consume a topic.
        self._consuming_since: dict[tuple[Member, str | None, str], float] = {}

    def due(self, groups: Mapping[str, ReachableMembers]) -> list[Member]:
        """Members to ask now, those without a report first. Forgets members that are gone."""
        now = self._monotonic()
        present = {(group, client) for group, its in groups.items() for client in its.brokers}
        for known in (self._reports, self._refused):
            for member in [member for member in known if member not in present]:
                del known[member]
        for group in [group for group in self._changed if group not in groups]:
            del self._changed[group]
        always: list[Member] = []
        sometimes: list[tuple[float, Member]] = []
        for group, its in groups.items():
            clients = frozenset(its.brokers)
            if self._changed.get(group, (None, 0.0))[0] != clients:
                self._changed[group] = clients, now
            since = self._changed[group][1]
            for client in sorted(clients):
                member = group, client
                if now - self._refused.get(member, float("-inf")) < _LEFT_ALONE_SECONDS:
                    continue
                asked_at = self._reports[member][0] if member in self._reports else float("-inf")
                if its.is_broadcasting:
                    always.append(member)
                elif now - asked_at >= _COUNTS_SECONDS or now - since < _SETTLING_SECONDS:
                    sometimes.append((asked_at, member))
        return always + list(self._affordable(member for _, member in sorted(sometimes)))

    def _affordable(self, members: Iterable[Member]) -> Iterator[Member]:
        """The first of them, as many as one sample can read; at least one."""
        queues = 0
        for member in islice(members, _MAX_AT_ONCE):
            its = len(self._reports[member][1].progress) if member in self._reports else 0
            if queues and queues + its > _MAX_QUEUES_AT_ONCE:
                return
            queues += its
            yield member

    def take(
        self, asked: Sequence[Member], answers: Sequence[MemberReport | RocketmqTrouble], errors: ErrorTally
    ) -> None:
        """Process the answers."""
        now = self._monotonic()
        self._asked = frozenset(asked)
        for member, answer in zip(asked, answers, strict=True):
            self._reports.pop(member, None)
            if isinstance(answer, RocketmqTrouble):
                errors.note(f"member_{answer.kind}".replace("member_member_", "member_"), str(answer))
                self._refused[member] = now
            else:
                self._reports[member] = now, answer
                self._refused.pop(member, None)
                for topic in answer.stats:
                    self._consuming_since.setdefault((member, answer.started, topic), now)
        self._consuming_since = {key: since for key, since in self._consuming_since.items() if key[0] in self._reports}

    def latest_stats(self) -> Iterator[tuple[Member, MemberReport, str, ConsumeStats]]:
        """What members consumed in the minute before this sample, by topic, where they were asked in it and have
        consumed for that long: before that the reported rate is over less, and of an unknown number of messages."""
        for member in self._asked & self._reports.keys():
            asked_at, report = self._reports[member]
            for topic, stats in report.stats.items():
                if asked_at - self._consuming_since[member, report.started, topic] >= CONSUME_STATS_SECONDS:
                    yield member, report, topic, stats

    def of(self, group: str, client_id: str) -> MemberReport | None:
        """A member's report, where that still counts."""
        found = self._reports.get((group, client_id))
        return None if found is None else found[1]
