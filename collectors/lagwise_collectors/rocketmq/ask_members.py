"""Asking members what only they know: which queues they own, how far broadcasting ones are, and whether they read in
order.

The question goes through the broker into the consumer's own process. It is asked when a group's members changed, and
otherwise rarely; but of broadcasting groups in every sample, because nobody else knows their progress.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from lagwise_collectors.protocol import ErrorTally
from lagwise_collectors.rocketmq.remoting.errors import RocketmqTrouble
from lagwise_collectors.rocketmq.remoting.requests import WORK_SECONDS, Told, Work

#: What a member said counts for so long while its group has the same members. After a change it is asked each time for
#: a while: clients look for new topics, their own retry topic among them, every 30 s, and share queues out every 20 s.
_COUNTS_SECONDS = 60.0
_SETTLING_SECONDS = 90.0
#: One that could not answer is left alone for so long: it may be a client that cannot.
_LEFT_ALONE_SECONDS = 300.0
#: Of groups that are not broadcasting no more members are asked in one sample, so that many groups take turns.
_MOST_AT_ONCE = 200
#: Nor so many that they own more queues together than this, as they said the last time: each answer names them all.
_MOST_QUEUES_AT_ONCE = 10_000

#: Group and client id.
Member = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Present:
    """A group that is online: its members, the broker through which each can be asked, and whether it broadcasts."""

    brokers: Mapping[str, str]
    is_broadcasting: bool


class MemberAnswers:
    """What members said last. For one thread."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._told: dict[Member, tuple[float, Told]] = {}
        self._refused: dict[Member, float] = {}
        self._changed: dict[str, tuple[frozenset[str], float]] = {}
        self._fresh: frozenset[Member] = frozenset()
        #: Since when each member was seen at work on a topic.
        self._at_work: dict[tuple[Member, str | None, str], float] = {}

    def due(self, groups: Mapping[str, Present]) -> list[Member]:
        """Whom to ask now, those that never said anything first. Forgets who is not there any more."""
        now = self._monotonic()
        present = {(group, client) for group, its in groups.items() for client in its.brokers}
        for known in (self._told, self._refused):
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
                asked_at = self._told[member][0] if member in self._told else float("-inf")
                if its.is_broadcasting:
                    always.append(member)
                elif now - asked_at >= _COUNTS_SECONDS or now - since < _SETTLING_SECONDS:
                    sometimes.append((asked_at, member))
        return always + list(self._affordable(member for _, member in sorted(sometimes)))

    def _affordable(self, members: Iterable[Member]) -> Iterator[Member]:
        """The first of them, up to what one sample can read; at least one."""
        queues = 0
        for member in islice(members, _MOST_AT_ONCE):
            its = len(self._told[member][1].progress) if member in self._told else 0
            if queues and queues + its > _MOST_QUEUES_AT_ONCE:
                return
            queues += its
            yield member

    def take(self, asked: Sequence[Member], answers: Sequence[Told | RocketmqTrouble], errors: ErrorTally) -> None:
        """What came of asking."""
        now = self._monotonic()
        self._fresh = frozenset(asked)
        for member, answer in zip(asked, answers, strict=True):
            self._told.pop(member, None)
            if isinstance(answer, RocketmqTrouble):
                errors.note(f"member_{answer.kind}".replace("member_member_", "member_"), str(answer))
                self._refused[member] = now
            else:
                self._told[member] = now, answer
                self._refused.pop(member, None)
                for topic in answer.work:
                    self._at_work.setdefault((member, answer.began, topic), now)
        self._at_work = {key: since for key, since in self._at_work.items() if key[0] in self._told}

    def fresh_work(self) -> Iterator[tuple[Member, Told, str, Work]]:
        """What members did in the minute before this sample, by topic, where they were asked in it and had been at work
        for that long: before that, the rate that they tell is one over less, and nobody knows of how many messages."""
        for member in self._fresh & self._told.keys():
            asked_at, told = self._told[member]
            for topic, work in told.work.items():
                if asked_at - self._at_work[member, told.began, topic] >= WORK_SECONDS:
                    yield member, told, topic, work

    def of(self, group: str, client_id: str) -> Told | None:
        """What a member said, where that still counts."""
        found = self._told.get((group, client_id))
        return None if found is None else found[1]
