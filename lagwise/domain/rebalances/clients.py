"""Which clients come and go in a group's rebalances, as far as "client (host)" identifies them.

A library's default client id identifies no one: all of its processes have the same, so which of several on one host
went is not known. One with an id of the process in it, as Kafka Streams makes it, is another one after a restart.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from lagwise.domain.rebalances.model import Rebalance

#: Who comes and goes within this time stays briefly.
BRIEF_STAY = timedelta(minutes=15)
#: A client churns when it goes at least so often: in a deployment everybody who goes had long been there, and who comes
#: stays.
DEPARTURES_OF_CHURN = 2
#: librdkafka's, the Java consumer's (with and without the group in it), Sarama's, KafkaJS', kafka-python's.
_DEFAULT_ID = re.compile(r"rdkafka|consumer-(.+-)?\d+|sarama|kafkajs|kafka-python-[\d.]+")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def client_of(label: str) -> str:
    """What of "client (host)" is the same after a restart, which is often on another host."""
    return _UUID.sub("*", label.rsplit(" (", 1)[0])


def is_nameless(label: str) -> bool:
    """Whether the client id is a library's default, which several clients on a host may share."""
    return _DEFAULT_ID.fullmatch(label.rsplit(" (", 1)[0]) is not None


def departed(rebalance: Rebalance) -> Sequence[str]:
    """Those who went with a rebalance."""
    return rebalance.left or rebalance.failed


def churning_of(rebalances: Sequence[Rebalance]) -> tuple[str, ...]:
    """The clients that went at least twice, the one that went most often first. Of those that share a name some client
    surely did only where more went than ever were in the group."""
    departures = Counter(label for r in rebalances for label in r.left)
    most = max((_most_members(r) for r in rebalances), default=0)

    def churns(label: str, times: int) -> bool:
        return times >= DEPARTURES_OF_CHURN and (not is_nameless(label) or 0 < most < times)

    ordered = sorted(departures.items(), key=lambda c: (-c[1], c[0]))
    return tuple(label for label, times in ordered if churns(label, times))


def _most_members(rebalance: Rebalance) -> int:
    """Members before or after it, whichever are more; 0 where that is not known."""
    if rebalance.members is None:
        return 0
    return max(rebalance.members, rebalance.members - len(rebalance.joined) + len(rebalance.left))


class Stay(NamedTuple):
    """When somebody came and went."""

    since: datetime
    until: datetime


def brief_stays(rebalances: Iterable[Rebalance]) -> list[Stay]:
    """The stays of those who came and went within a BRIEF_STAY. A member that gets a new name with every start, as
    a pod does, is distinguished from others by nothing else."""
    came: dict[str, datetime] = {}
    shared: set[str] = set()
    stays = []
    for rebalance in rebalances:
        for label in rebalance.left:
            since = came.get(label)
            if since is None:
                shared.add(label)
                continue
            stay = rebalance.at - since
            if _is_the_former(rebalance, label, stay):
                continue
            del came[label]
            if stay < BRIEF_STAY and not (label in shared and is_nameless(label)):
                stays.append(Stay(since, rebalance.at))
        shared |= {label for label in rebalance.joined if label in came}
        came |= dict.fromkeys(rebalance.joined, rebalance.at)
    return stays


def _is_the_former(rebalance: Rebalance, label: str, stay: timedelta) -> bool:
    """Whether it is not the one that came so lately that failed, but the one before it of the same name: a member is
    thrown out for silence only after its whole session timeout."""
    timeout = rebalance.session_timeout_seconds
    return label in rebalance.failed and timeout is not None and stay.total_seconds() < timeout


def is_everybody(clients: int, rebalances: Sequence[Rebalance]) -> bool:
    """Whether so many clients are the whole group, which is two at least where its size is not known."""
    return clients >= min((r.members for r in rebalances if r.members), default=2)


def rounds_of(rebalances: Sequence[Rebalance]) -> int:
    """How often everybody went, each of at least two clients once before any went again; 0 where it was otherwise."""
    gone = [client_of(label) for r in rebalances for label in r.left]
    clients = set(gone)
    rounds, rest = divmod(len(gone), max(1, len(clients)))
    in_turn = all(set(gone[n * len(clients) : (n + 1) * len(clients)]) == clients for n in range(rounds))
    return rounds if rest == 0 and in_turn and len(clients) > 1 and is_everybody(len(clients), rebalances) else 0
