"""Requests to the brokers of one cluster: to each of them, or to the coordinators of groups."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lagwise.config import Cluster
from lagwise_collectors.kafka.requests.errors import KafkaTrouble
from lagwise_collectors.kafka_protocol.connection import Connection, readable, trouble_of_code
from lagwise_collectors.kafka_protocol.messages import FIND_COORDINATOR
from lagwise_collectors.kafka_protocol.schema import Api, Row
from lagwise_collectors.kafka_protocol.security import reach_of
from lagwise_collectors.kafka_protocol.topic_messages import METADATA

_GROUP_KEY = 0
#: The id of no topic.
_NO_ID = bytes(16)
#: Requests that are under way on a connection: a broker works on one of them at a time, and does not read the others.
_UNDER_WAY = 8
#: A sample is given up after so many times the timeout of a request.
_TIMEOUTS_IN_SAMPLE = 4
#: Groups to a request that may name as many as there are.
_ALL_GROUPS = 1_000_000
_BATCHED_COORDINATORS = 4
#: Troubles that say that the broker and our requests do not go together: librdkafka may do better.
REFUSALS = frozenset({"not_supported", "unsupported_version", "invalid_request", "malformed"})
#: Errors after which another broker may be the coordinator.
COORDINATOR_MOVED = frozenset({14, 15, 16})
_NO_TOPICS: Mapping[str, Any] = {
    "topics": [],
    "allow_auto_topic_creation": False,
    "include_cluster_authorized_operations": False,
    "include_topic_authorized_operations": False,
}

Answer = Row | KafkaTrouble
Address = tuple[str, int]


class _Sent(NamedTuple):
    """A request that is under way."""

    node: int
    number: int
    correlation: int


class ProtocolClient:
    """Connections to the brokers of a cluster, made when they are needed and kept. For one thread.

    Raises KafkaTrouble where the cluster's settings are not for us, ConfigError where a secret does not exist.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._reach = reach_of(cluster)
        self._connections: dict[Address, Connection] = {}
        self._brokers: dict[int, Address] = {}
        #: The rack of every broker by node id, None where it has none, as of the last answer that named the brokers.
        self.racks: dict[int, str | None] = {}
        self._coordinators: dict[str, int] = {}
        self._answered_at: float | None = None
        self._sample_ends_at = float("inf")
        self._is_abandoned = False

    def close(self) -> None:
        """Close all connections. May be called twice."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def abandon(self) -> None:
        """End what is under way with KafkaTrouble, from another thread. Nothing can be asked any more."""
        self._is_abandoned = True
        for connection in list(self._connections.values()):
            connection.shut_down()

    def begin_sample(self) -> None:
        """What follows belongs to one sample: however many requests a silent broker leaves unanswered, the sample takes
        no longer than a few timeouts."""
        self._sample_ends_at = time.monotonic() + _TIMEOUTS_IN_SAMPLE * self._reach.timeout_seconds

    def deadline(self) -> float:
        """When requests that begin now are given up, of ``time.monotonic``."""
        return min(time.monotonic() + self._reach.timeout_seconds, self._sample_ends_at)

    @property
    def seconds_since_answer(self) -> float | None:
        """How long ago the last answer came of those that were waited for at once; None: none ever has."""
        return None if self._answered_at is None else time.monotonic() - self._answered_at

    def version_of(self, api: Api, deadline: float) -> int:
        """The version that one of the brokers and we speak. Raises KafkaTrouble."""
        return self._any_connection(deadline).version_of(api)

    def speaks(self, api: Api, deadline: float) -> bool:
        """Whether the brokers know a request that we know."""
        try:
            self.version_of(api, deadline)
        except KafkaTrouble:
            return False
        return True

    def read_brokers(self, deadline: float) -> list[int]:
        """Ids of the brokers that the cluster has now. Raises KafkaTrouble if none answers."""
        answer = self.ask_any(METADATA, _NO_TOPICS, deadline)
        self._brokers.clear()
        self._remember(answer["brokers"])
        for address in set(self._connections) - set(self._brokers.values()) - set(self._bootstrap()):
            self._connections.pop(address).close()
        return sorted(self._brokers)

    def read_topics(self, topics: Sequence[str] | None, deadline: float) -> Row:
        """What Metadata says of these topics (None: of all), as columns. Raises KafkaTrouble."""
        names = None if topics is None else [{"topic_id": _NO_ID, "name": topic} for topic in topics]
        answer = self.ask_any(METADATA, {**_NO_TOPICS, "topics": names}, deadline)
        self._remember(answer["brokers"])
        found: Row = answer["topics"]
        return found

    def ask_all(
        self,
        api: Api,
        requests: Sequence[tuple[int, Mapping[str, Any]]],
        deadline: float,
        *,
        under_way: int = _UNDER_WAY,
    ) -> list[Answer]:
        """The answers to requests to brokers, of which each has ``under_way`` so many at most: all brokers work at the
        same time."""
        answers = self._ask_at_once(api, requests, deadline, under_way)
        # A broker closes connections that were idle, and a restarted one has none of them: that is no trouble yet.
        stale = [number for number, answer in enumerate(answers) if answer is None]
        again = self._ask_at_once(api, [requests[number] for number in stale], deadline, under_way)
        for number, answer in zip(stale, again, strict=True):
            node = requests[number][0]
            answers[number] = answer or KafkaTrouble("unreachable", f"broker {node} closes connections")
        return [answer for answer in answers if answer is not None]

    def ask_any(self, api: Api, value: Mapping[str, Any], deadline: float) -> Row:
        """The answer of whichever broker is there. Raises KafkaTrouble."""
        # Each of them may have been closed by its broker since it was last used.
        for _ in range(len(self._connections)):
            connection = self._any_connection(deadline)
            is_reused = connection.has_served
            try:
                return connection.ask(api, value, deadline)
            except KafkaTrouble as trouble:
                if _unless_stale(trouble, is_reused=is_reused) is not None:
                    raise
        return self._any_connection(deadline).ask(api, value, deadline)

    def ask_coordinators(
        self,
        api: Api,
        groups: Iterable[str],
        request: Callable[[list[str]], Mapping[str, Any]],
        parts: Callable[[Row], Iterable[Row]],
        deadline: float,
        *,
        most: int = _ALL_GROUPS,
    ) -> dict[str, tuple[int, Answer]]:
        """What the coordinator of each group says of it: the broker's id, and the group's part of its answer.

        ``request`` makes one for several groups, at ``most`` so many; ``parts`` takes its answer apart: each part has
        ``error_code`` and, unless the request was about one group, ``group_id``. Where a coordinator has moved, the new
        one is asked, once.
        """
        found: dict[str, tuple[int, Answer]] = {}
        left = list(groups)
        for attempt in range(2):
            asked = [
                (node, names[start : start + most])
                for node, names in self._by_coordinator(left, found, deadline).items()
                for start in range(0, len(names), most)
            ]
            answers = self.ask_all(api, [(node, request(names)) for node, names in asked], deadline)
            left = []
            for (node, names), answer in zip(asked, answers, strict=True):
                by_name: Mapping[str, Answer] = (
                    dict.fromkeys(names, answer)
                    if isinstance(answer, KafkaTrouble)
                    else {one.get("group_id", names[0]): one for one in parts(answer)}
                )
                for name in names:
                    part = by_name.get(name)
                    found[name] = node, _result(part, f"{api.name} of group {name}")
                    if part is None or isinstance(part, KafkaTrouble) or part["error_code"] in COORDINATOR_MOVED:
                        self._coordinators.pop(name, None)
                    if isinstance(part, dict) and part["error_code"] in COORDINATOR_MOVED and not attempt:
                        left.append(name)
            if not left:
                break
        return found

    def _remember(self, brokers: Sequence[Row]) -> None:
        self._brokers.update({one["node_id"]: (one["host"], one["port"]) for one in brokers})
        self.racks = {one["node_id"]: one["rack"] or None for one in brokers}

    def _by_coordinator(
        self, groups: Sequence[str], found: dict[str, tuple[int, Answer]], deadline: float
    ) -> dict[int, list[str]]:
        """Groups by the broker that coordinates them. Those of which none is known get their trouble in ``found``."""
        unknown = [name for name in groups if self._coordinators.get(name) not in self._brokers]
        if unknown:
            found |= {name: (-1, trouble) for name, trouble in self._find_coordinators(unknown, deadline).items()}
        asked: dict[int, list[str]] = {}
        for name in groups:
            node = self._coordinators.get(name)
            if node is not None:
                asked.setdefault(node, []).append(name)
        return asked

    def _find_coordinators(self, groups: Sequence[str], deadline: float) -> dict[str, KafkaTrouble]:
        """Remember the coordinators of these groups; the troubles of those that have none."""
        troubles = {}
        for name, answer in self._coordinator_answers(groups, deadline).items():
            self._coordinators.pop(name, None)
            if isinstance(answer, KafkaTrouble):
                troubles[name] = answer
            elif answer["error_code"]:
                what = f"coordinator of group {name}"
                troubles[name] = trouble_of_code(answer["error_code"], answer["error_message"], what)
            else:
                self._coordinators[name] = answer["node_id"]
                self._brokers[answer["node_id"]] = (answer["host"], answer["port"])
        return troubles

    def _coordinator_answers(self, groups: Sequence[str], deadline: float) -> dict[str, Answer]:
        missing = {name: KafkaTrouble("malformed", f"no answer on the coordinator of group {name}") for name in groups}
        try:
            if self._any_connection(deadline).version_of(FIND_COORDINATOR) < _BATCHED_COORDINATORS:
                return {
                    name: self.ask_any(FIND_COORDINATOR, {"key": name, "key_type": _GROUP_KEY}, deadline)
                    for name in groups
                }
            value = {"key_type": _GROUP_KEY, "coordinator_keys": list(groups)}
            answer = self.ask_any(FIND_COORDINATOR, value, deadline)
        except KafkaTrouble as trouble:
            return dict.fromkeys(groups, trouble)
        return missing | {one["key"]: one for one in answer["coordinators"] if one["key"] in missing}

    def _ask_at_once(
        self, api: Api, requests: Sequence[tuple[int, Mapping[str, Any]]], deadline: float, most_under_way: int
    ) -> list[Answer | None]:
        """The answer to each request; None where a connection that had served was found closed."""
        answers: list[Answer | None] = [None] * len(requests)
        waiting: dict[int, deque[int]] = {}
        for number, (node, _) in enumerate(requests):
            waiting.setdefault(node, deque()).append(number)
        under_way: dict[Connection, deque[_Sent]] = {}
        had_served: dict[Connection, bool] = {}

        def give_up(node: int, numbers: Iterable[int], answer: Answer | None) -> None:
            """One request failed, and what else was for that broker would fail alike."""
            for number in (*numbers, *waiting[node]):
                answers[number] = answer
            waiting[node].clear()

        def send_to(node: int) -> None:
            number = waiting[node].popleft()
            try:
                connection = self._connection(self._address(node), deadline)
            except KafkaTrouble as trouble:
                give_up(node, [number], trouble)
                return
            had_served.setdefault(connection, connection.has_served)
            try:
                sent = connection.send(api, requests[number][1], deadline)
                under_way.setdefault(connection, deque()).append(_Sent(node, number, sent))
            except KafkaTrouble as trouble:
                give_up(node, [number], _unless_stale(trouble, is_reused=had_served[connection]))

        for node, numbers in waiting.items():
            for _ in range(min(most_under_way, len(numbers))):
                if numbers:
                    send_to(node)
        while under_way:
            # Whichever broker answers first is read first: a slow one must not make the answers of others look new.
            for connection in readable(list(under_way), deadline):
                sent = under_way[connection].popleft()
                try:
                    answers[sent.number] = connection.receive(api, sent.correlation, deadline)
                    self._answered_at = time.monotonic()
                except KafkaTrouble as trouble:
                    failed = [sent.number, *(one.number for one in under_way.pop(connection))]
                    give_up(sent.node, failed, _unless_stale(trouble, is_reused=had_served[connection]))
                    continue
                if waiting[sent.node]:
                    send_to(sent.node)
                if not under_way.get(connection):
                    under_way.pop(connection, None)
        return answers

    def _any_connection(self, deadline: float) -> Connection:
        """A connection that is there, or one to the first address that lets us in. Raises KafkaTrouble."""
        for connection in self._connections.values():
            if connection.is_usable:
                return connection
        addresses = list(dict.fromkeys([*self._brokers.values(), *self._bootstrap()]))
        first: KafkaTrouble | None = None
        for number, address in enumerate(addresses):
            # Each of them gets its share of the time: the first one may be a machine that swallows packets.
            now = time.monotonic()
            try:
                return self._connection(address, now + (deadline - now) / (len(addresses) - number))
            except KafkaTrouble as trouble:
                first = first or trouble
        raise first or KafkaTrouble("setting_refused", "there is no bootstrap server")

    def _connection(self, address: Address, deadline: float) -> Connection:
        if self._is_abandoned:
            raise KafkaTrouble("unreachable", "the collector is stopping")
        connection = self._connections.get(address)
        if connection is None or not connection.is_usable:
            if connection is not None:
                connection.close()
            self._connections.pop(address, None)
            connection = self._connections[address] = Connection(*address, self._reach, deadline)
        return connection

    def _address(self, node: int) -> Address:
        try:
            return self._brokers[node]
        except KeyError:
            raise KafkaTrouble("unreachable", f"the cluster does not say where broker {node} is") from None

    def _bootstrap(self) -> list[Address]:
        found = []
        for text in self._reach.bootstrap:
            host, colon, port = text.rpartition(":")
            if not colon:
                host, port = text, "9092"  # librdkafka's default
            if not port.isdecimal() or not 0 < int(port) < 65536:
                raise KafkaTrouble("setting_refused", f"{text!r} is not host:port")
            found.append((host.strip("[]"), int(port)))
        return found


def _result(part: Answer | None, what: str) -> Answer:
    if part is None:
        return KafkaTrouble("malformed", f"{what}: the broker's answer leaves it out")
    if isinstance(part, dict) and part["error_code"]:
        return trouble_of_code(part["error_code"], part.get("error_message"), what)
    return part


def _unless_stale(trouble: KafkaTrouble, *, is_reused: bool) -> KafkaTrouble | None:
    """None where the trouble only says that a kept connection was closed meanwhile."""
    return None if is_reused and trouble.kind == "unreachable" else trouble
