"""The face for autoscalers: ``GET /scaling/CLUSTER/GROUP`` answers with the number of replicas, as JSON.

KEDA's ``metrics-api`` scaler reads it (``valueLocation: replicas``, ``targetValue: "1"``); see
``docs/scaling-signal.md``. Answers come from memory (:mod:`lagwise_app.scaling.lake_cache`).
"""

from collections.abc import Callable
from datetime import datetime

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lagwise_app.answers.groups import UnknownGroup
from lagwise_app.scaling.lake_cache import LakeCache, NoAnswer
from lagwise_app.scaling.policy_query import BadRequest, policy_of
from lagwise_app.scaling.signal import signal
from lagwise_app.server.access import Caller
from lagwise_app.server.gate import Gate
from lagwise_app.server.refusal import Refusal


def scaling_routes(
    gate: Gate, cache: LakeCache, stale_after_seconds: float, clock: Callable[[], datetime]
) -> list[Route]:
    """The routes of the signal."""

    def answer(request: Request, caller: Caller) -> Response:
        cluster, group = request.path_params["cluster"], request.path_params["group"]
        try:
            policy = policy_of(request.url.query)
            if not caller.visibility.shows(cluster, group):
                raise UnknownGroup(cluster, group)
            found = signal(cache, cluster, group, policy, clock(), stale_after_seconds=stale_after_seconds)
        except BadRequest as error:
            raise Refusal(400, str(error)) from None
        except UnknownGroup as error:
            raise Refusal(404, str(error)) from None
        except NoAnswer as error:
            raise Refusal(503, str(error)) from None
        return JSONResponse(found.as_document())

    return [gate.route("/scaling/{cluster:name}/{group:name}", answer, as_an_error)]


def as_an_error(refusal: Refusal, _: Request) -> Response:
    """A refusal as JSON without a number, so that an autoscaler changes nothing."""
    return JSONResponse({"error": refusal.why}, refusal.status)


def no_such_path(refusal: Refusal, request: Request) -> Response:
    """The same for another path, or another method than GET."""
    known = refusal if refusal.status != 404 else Refusal(404, "the path must be /scaling/CLUSTER/GROUP")
    return as_an_error(known, request)
