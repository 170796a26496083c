"""ListGroups: every group that the brokers know, of whatever type."""

from collections import Counter
from collections.abc import Callable

from lagwise.domain.vocabulary import CONNECT, OTHER_PROTOCOL, SIMPLE
from lagwise_collectors.kafka.requests.errors import KafkaTrouble
from lagwise_collectors.kafka.requests.group_members import GroupListing
from lagwise_collectors.kafka_protocol.client import Answer, ProtocolClient
from lagwise_collectors.kafka_protocol.connection import trouble_of_code
from lagwise_collectors.kafka_protocol.group_messages import LIST_GROUPS
from lagwise_collectors.protocol import ErrorTally

#: What a group of the classic protocol is, by what its members use the protocol for.
_CLASSIC = "classic"
_USES = {"": SIMPLE, "consumer": _CLASSIC, "connect": CONNECT}


def list_every_group(client: ProtocolClient, selects: Callable[[str], bool], errors: ErrorTally) -> GroupListing:
    """The watched groups. Raises KafkaTrouble if no broker answered; some that did not are counted."""
    deadline = client.deadline()
    nodes = client.read_brokers(deadline)
    everything: dict[str, list[str]] = {"states_filter": [], "types_filter": []}
    answers = client.ask_all(LIST_GROUPS, [(node, everything) for node in nodes], deadline)
    failures = [trouble for answer in answers if (trouble := _trouble(answer)) is not None]
    if len(failures) == len(answers):
        raise failures[0] if failures else KafkaTrouble("malformed", "the cluster names no broker")
    for failure in failures:
        errors.note(failure.kind, f"listing groups: {failure}")
    types: dict[str, str | None] = {}
    seen: Counter[str | None] = Counter()
    for answer in answers:
        if isinstance(answer, KafkaTrouble) or answer["error_code"]:
            continue
        for group in answer["groups"]:
            kind = _type(group["group_type"], group["protocol_type"])
            seen[kind] += 1
            if selects(group["group_id"]):
                types[group["group_id"]] = kind
    return GroupListing(types, complete=not failures, seen=seen)


def _trouble(answer: Answer) -> KafkaTrouble | None:
    if isinstance(answer, KafkaTrouble):
        return answer
    return trouble_of_code(answer["error_code"], None, "ListGroups") if answer["error_code"] else None


def _type(group_type: str | None, protocol_type: str) -> str | None:
    """Our word for a group's type; None: a consumer group of a broker too old to say which protocol it has."""
    named = (group_type or "").lower()
    if named in ("", _CLASSIC):
        use = _USES.get(protocol_type, OTHER_PROTOCOL)
        return None if use == _CLASSIC and not named else use
    return named
