"""Requests to the brokers of one cluster: to each of them, or to the coordinators of groups."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lagwise.config import Cluster
from lagwise_collectors.kafka.requests.errors import KafkaTrouble
from lagwise_collectors.kafka_protocol.connection import Connection, trouble_of_code
from lagwise_collectors.kafka_protocol.messages import FIND_COORDINATOR, METADATA
from lagwise_collectors.kafka_protocol.schema import Api, Row
from lagwise_collectors.kafka_protocol.security import reach_of

_GROUP_KEY = 0
_BATCHED_COORDINATORS = 4
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


class ProtocolClient:
    """Connections to the brokers of a cluster, made when they are needed and kept. For one thread.

    Raises KafkaTrouble where the cluster's settings are not for us, ConfigError where a secret does not exist.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._reach = reach_of(cluster)
        self._connections: dict[Address, Connection] = {}
        self._brokers: dict[int, Address] = {}
        self._coordinators: dict[str, int] = {}

    def close(self) -> None:
        """Close all connections. May be called twice."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def deadline(self) -> float:
        """When requests that begin now are given up, of ``time.monotonic``."""
        return time.monotonic() + self._reach.timeout_seconds

    def read_brokers(self, deadline: float) -> list[int]:
        """Ids of the brokers that the cluster has now. Raises KafkaTrouble if none answers."""
        answer = self._ask_any(METADATA, _NO_TOPICS, deadline)
        self._brokers = {one["node_id"]: (one["host"], one["port"]) for one in answer["brokers"]}
        for address in set(self._connections) - set(self._brokers.values()) - set(self._bootstrap()):
            self._connections.pop(address).close()
        return sorted(self._brokers)

    def partition_counts(self, topics: Sequence[str], deadline: float) -> dict[str, int]:
        """How many partitions these topics have; those that cannot be described are left out. Raises KafkaTrouble."""
        value = {**_NO_TOPICS, "topics": [{"name": topic} for topic in topics]}
        answer = self._ask_any(METADATA, value, deadline)
        return {one["name"]: len(one["partitions"]) for one in answer["topics"] if not one["error_code"]}

    def ask_brokers(self, api: Api, values: Mapping[int, Mapping[str, Any]], deadline: float) -> dict[int, Answer]:
        """What each of these brokers answers to its request: all work at the same time."""
        answers = self._ask_at_once(api, values, deadline)
        # A broker closes connections that were idle, and a restarted one has none of them: that is no trouble yet.
        again = {node: values[node] for node, answer in answers.items() if answer is None}
        return {node: answer for node, answer in answers.items() if answer is not None} | {
            node: answer if answer is not None else KafkaTrouble("unreachable", f"broker {node} closes connections")
            for node, answer in self._ask_at_once(api, again, deadline).items()
        }

    def ask_coordinators(
        self,
        api: Api,
        groups: Iterable[str],
        request: Callable[[list[str]], Mapping[str, Any]],
        parts: Callable[[Row], Iterable[Row]],
        deadline: float,
    ) -> dict[str, tuple[int, Answer]]:
        """What the coordinator of each group says of it: the broker's id, and the group's part of its answer.

        ``request`` makes one for several groups, ``parts`` takes its answer apart: each part has ``group_id`` and
        ``error_code``. Where a coordinator has moved, the new one is asked, once.
        """
        found: dict[str, tuple[int, Answer]] = {}
        left = list(groups)
        for attempt in range(2):
            asked = self._by_coordinator(left, found, deadline)
            answers = self.ask_brokers(api, {node: request(names) for node, names in asked.items()}, deadline)
            left = []
            for node, names in asked.items():
                answer = answers[node]
                by_name = {} if isinstance(answer, KafkaTrouble) else {one["group_id"]: one for one in parts(answer)}
                for name in names:
                    part = answer if isinstance(answer, KafkaTrouble) else by_name.get(name)
                    found[name] = node, _result(part, f"{api.name} of group {name}")
                    if part is None or isinstance(part, KafkaTrouble) or part["error_code"] in COORDINATOR_MOVED:
                        self._coordinators.pop(name, None)
                    if isinstance(part, dict) and part["error_code"] in COORDINATOR_MOVED and not attempt:
                        left.append(name)
            if not left:
                break
        return found

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
                    name: self._ask_any(FIND_COORDINATOR, {"key": name, "key_type": _GROUP_KEY}, deadline)
                    for name in groups
                }
            value = {"key_type": _GROUP_KEY, "coordinator_keys": list(groups)}
            answer = self._ask_any(FIND_COORDINATOR, value, deadline)
        except KafkaTrouble as trouble:
            return dict.fromkeys(groups, trouble)
        return missing | {one["key"]: one for one in answer["coordinators"] if one["key"] in missing}

    def _ask_at_once(
        self, api: Api, values: Mapping[int, Mapping[str, Any]], deadline: float
    ) -> dict[int, Answer | None]:
        """The answer of each broker; None where a connection that had served was found closed."""
        answers: dict[int, Answer | None] = {}
        sent: dict[int, tuple[Connection, int, bool]] = {}
        for node, value in values.items():
            try:
                connection = self._connection(self._brokers[node], deadline)
                had_served = connection.has_served
                try:
                    sent[node] = connection, connection.send(api, value, deadline), had_served
                except KafkaTrouble as trouble:
                    answers[node] = _unless_stale(trouble, is_reused=had_served)
            except KafkaTrouble as trouble:
                answers[node] = trouble
        for node, (connection, number, had_served) in sent.items():
            try:
                answers[node] = connection.receive(api, number, deadline)
            except KafkaTrouble as trouble:
                answers[node] = _unless_stale(trouble, is_reused=had_served)
        return answers

    def _ask_any(self, api: Api, value: Mapping[str, Any], deadline: float) -> Row:
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
        connection = self._connections.get(address)
        if connection is None or not connection.is_usable:
            if connection is not None:
                connection.close()
            self._connections.pop(address, None)
            connection = self._connections[address] = Connection(*address, self._reach, deadline)
        return connection

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
