"""The face for clients of Burrow: its read API, `/v3/kafka`, with its words and its format (docs/burrow-api.md).

What Burrow cannot say of an unknown number is left to `complete`: 0 where a number is not known.
"""

import socket
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from lagwise.config import Config
from lagwise.config.visibility import Visibility
from lagwise.domain.vocabulary import Status
from lagwise.tables.store import Lake
from lagwise_app.answers import groups, partitions
from lagwise_app.answers.groups import Row
from lagwise_app.server.access import Caller
from lagwise_app.server.gate import Gate, Handler
from lagwise_app.server.metrics.name_sets import BURROW_CODES
from lagwise_app.server.refusal import Refusal

_WORDS = ("NOTFOUND", "OK", "WARN", "ERR", "STOP", "STALL", "REWIND")
_NOT_FOUND, _OK, _ERR = 0, 1, 3
#: Places of a list by partition.
_MOST_PLACES = 100_000

#: What a question is answered with: the message, and further keys.
Answered = tuple[str, dict[str, Any]]
Ask = Callable[[Visibility, Mapping[str, str]], Answered]


def burrow_routes(gate: Gate, lake: Lake, config: Config) -> list[Route]:
    """All routes of Burrow's that only read."""

    def known(visibility: Visibility, path: Mapping[str, str]) -> str:
        if path["cluster"] not in partitions.clusters(lake, visibility):
            raise Refusal(404, "cluster not found")
        return path["cluster"]

    def list_clusters(visibility: Visibility, _: Mapping[str, str]) -> Answered:
        return "cluster list returned", {"clusters": partitions.clusters(lake, visibility)}

    def cluster(visibility: Visibility, path: Mapping[str, str]) -> Answered:
        name = known(visibility, path)
        return "cluster module detail returned", {"module": _module(config, name)}

    def list_consumers(visibility: Visibility, path: Mapping[str, str]) -> Answered:
        name = known(visibility, path)
        found = [row["group"] for row in groups.visible_groups(lake, visibility) if row["cluster"] == name]
        return "consumer list returned", {"consumers": sorted(found)}

    def consumer(visibility: Visibility, path: Mapping[str, str]) -> Answered:
        try:
            rows = partitions.partitions(lake, path["cluster"], path["group"], visibility)
        except groups.UnknownGroup:
            raise Refusal(404, "cluster or consumer not found") from None
        return "consumer detail returned", {"topics": _by_topic(rows)}

    def status(visibility: Visibility, path: Mapping[str, str], *, is_complete: bool) -> Answered:
        group = groups.group(lake, path["cluster"], path["group"], visibility)
        rows = partitions.partitions(lake, path["cluster"], path["group"], visibility)
        return "consumer status returned", {"status": _status(group, rows, is_complete=is_complete)}

    def list_topics(visibility: Visibility, path: Mapping[str, str]) -> Answered:
        return "topic list returned", {"topics": partitions.topics(lake, known(visibility, path), visibility)}

    def topic(visibility: Visibility, path: Mapping[str, str]) -> Answered:
        try:
            found = partitions.high_watermarks(lake, path["cluster"], path["topic"], visibility)
        except partitions.UnknownTopic:
            raise Refusal(404, "cluster or topic not found") from None
        # By the number of the partition; -1 is unknown, as Kafka itself has it.
        ends = [found.get(number) for number in range(_places(max(found)))]
        return "topic offsets returned", {"offsets": [-1 if end is None else end for end in ends]}

    def topic_consumers(visibility: Visibility, path: Mapping[str, str]) -> Answered:
        try:
            found = partitions.readers(lake, path["cluster"], path["topic"], visibility)
        except partitions.UnknownTopic:
            raise Refusal(404, "cluster or topic not found") from None
        return "consumers of topic returned", {"consumers": found}

    base, of_group = "/v3/kafka/{cluster:name}", "/v3/kafka/{cluster:name}/consumer/{group:name}"
    asked: dict[str, Ask] = {
        "/v3/kafka": list_clusters,
        base: cluster,
        f"{base}/consumer": list_consumers,
        of_group: consumer,
        f"{of_group}/status": lambda visibility, path: status(visibility, path, is_complete=False),
        f"{of_group}/lag": lambda visibility, path: status(visibility, path, is_complete=True),
        f"{base}/topic": list_topics,
        f"{base}/topic/{{topic:name}}": topic,
        f"{base}/topic/{{topic:name}}/consumers": topic_consumers,
    }
    routes = [gate.route(path, _handler(ask), in_burrow_s_words) for path, ask in asked.items()]
    return [Route("/burrow/admin", _good), *routes]


def in_burrow_s_words(refusal: Refusal, request: Request) -> Response:
    """A refusal as Burrow would say it."""
    document = {"error": True, "message": refusal.why, "request": _request(request)}
    return JSONResponse(document, refusal.status)


async def _good(_: Request) -> Response:
    return PlainTextResponse("GOOD")


def _handler(ask: Ask) -> Handler:
    def answer(request: Request, caller: Caller) -> Response:
        code = 200
        try:
            message, found = ask(caller.visibility, request.path_params)
        except groups.UnknownGroup:  # Burrow has a status for that, and calls it no error
            path = request.path_params
            message, found, code = "consumer status returned", {"status": _unknown(path["cluster"], path["group"])}, 404
        return JSONResponse({"error": False, "message": message, **found, "request": _request(request)}, code)

    return answer


def _request(request: Request) -> dict[str, str]:
    return {"url": request.scope["path"], "host": socket.gethostname()}


def _module(config: Config, cluster: str) -> dict[str, Any]:
    """The settings of a cluster as far as Burrow has them, without addresses and accounts."""
    intervals = {one.name: round(one.interval_seconds) for one in config.clusters}
    return {
        "class-name": "kafka",
        "servers": [],
        "client-profile": {"name": "", "client-id": "lagwise", "kafka-version": "", "tls": None, "sasl": None},
        "topic-refresh": intervals.get(cluster, 0),
        "offset-refresh": intervals.get(cluster, 0),
    }


def _status(group: Row, rows: Sequence[Row], *, is_complete: bool) -> dict[str, Any]:
    """The status of a group with all of its partitions, or only with those that are not OK. Ghosts are left out."""
    judged = [(_code(row["status"]), _partition(row)) for row in rows if row["status"] != Status.GHOST]
    return {
        "cluster": group["cluster"],
        "group": group["group"],
        "status": _WORDS[min(_code(group["status"]), _ERR)],
        "complete": sum(one["complete"] for _, one in judged) / len(judged) if judged else 0.0,
        "partitions": [one for code, one in judged if is_complete or code != _OK],
        "partition_count": len(judged),
        "maxlag": max((one for _, one in judged), key=lambda one: one["current_lag"], default=None),
        "totallag": group["lag"] or 0,
    }


def _unknown(cluster: str, group: str) -> dict[str, Any]:
    nothing = {"status": _WORDS[_NOT_FOUND], "complete": 0.0, "partitions": [], "partition_count": 0}
    return {"cluster": cluster, "group": group, **nothing, "maxlag": None, "totallag": 0}


def _partition(row: Row) -> dict[str, Any]:
    newest = _newest_commit(row)
    return {
        "topic": row["topic"],
        "partition": row["partition"],
        "owner": row["host"] or "",
        "client_id": row["client_id"] or "",
        "status": _WORDS[_code(row["status"])],
        # Burrow's window of commits, when it holds one.
        "start": newest,
        "end": newest,
        "current_lag": row["lag"] or 0,
        "complete": 0.0 if row["status"] == Status.UNKNOWN else 1.0,
    }


def _places(partition: int) -> int:
    """How many places a list by partition has. Numbers of RocketMQ's queues and of external offsets can be anything."""
    if partition >= _MOST_PLACES:
        raise Refusal(422, f"a partition has the number {partition}: too many places for a list, as Burrow makes it")
    return partition + 1


def _by_topic(rows: Sequence[Row]) -> dict[str, list[dict[str, Any] | None]]:
    """The partitions of each topic, at the places of their numbers."""
    found: dict[str, list[dict[str, Any] | None]] = {}
    for row in rows:
        of_topic, newest = found.setdefault(row["topic"], []), _newest_commit(row)
        of_topic += [None] * (_places(row["partition"]) - len(of_topic))
        of_topic[row["partition"]] = {
            "offsets": [] if newest is None else [newest],
            "owner": row["host"] or "",
            "client_id": row["client_id"] or "",
            "current-lag": row["lag"] or 0,
        }
    return found


def _newest_commit(row: Row) -> dict[str, Any] | None:
    if row["committed"] is None:
        return None
    at = row["committed_since"] or row["since"]
    return {"offset": row["committed"], "timestamp": _milliseconds(at), "lag": row["lag"]}


def _milliseconds(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def _code(status: str) -> int:
    return BURROW_CODES.get(Status(status), _NOT_FOUND)
