"""The HTTP application: which faces it has, and what answers when none of them is meant."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from lagwise_app.answers.context import Context
from lagwise_app.scaling.lake_cache import LakeCache
from lagwise_app.server.api.problems import problem
from lagwise_app.server.api.routes import api_routes
from lagwise_app.server.burrow import burrow_routes, in_burrow_s_words
from lagwise_app.server.gate import Gate, RawPaths, Refuse
from lagwise_app.server.metrics.documents import MetricsWriter, current
from lagwise_app.server.metrics.endpoint import in_plain_text, metrics_routes, why_none
from lagwise_app.server.refusal import Refusal
from lagwise_app.server.scaling import no_such_path, scaling_routes


@dataclass(frozen=True, slots=True)
class Faces:
    """What the application answers from."""

    writer: MetricsWriter
    context: Context
    scaling: LakeCache
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)


def application(gate: Gate, faces: Faces) -> ASGIApp:
    """The application of `lagwise serve`."""
    return _with(routes(gate, faces), _no_route)


def routes(gate: Gate, faces: Faces) -> list[Route]:
    """Everything that `lagwise serve` answers."""

    async def readyz(_: Request) -> Response:
        if current(faces.writer, faces.clock()) is None:
            return JSONResponse({"ok": False, "why": why_none(faces.writer)}, 503)
        return JSONResponse({"ok": True})

    return [
        Route("/healthz", _healthz),
        Route("/readyz", readyz),
        *metrics_routes(gate, faces.writer, faces.clock),
        *api_routes(gate, faces.context),
        *burrow_routes(gate, faces.context.lake, faces.context.config),
        *scaling_routes(gate, faces.scaling, faces.context.config.scaling.stale_after_seconds, faces.clock),
    ]


def scaling_application(gate: Gate, cache: LakeCache, stale_after_seconds: float) -> ASGIApp:
    """The application of `lagwise scaling`, which tells autoscalers their number and nobody anything else."""
    signal = scaling_routes(gate, cache, stale_after_seconds, lambda: datetime.now(UTC))
    return _with([Route("/healthz", _healthz), *signal], no_such_path)


def _with(routes: list[Route], no_route: Refuse) -> ASGIApp:
    """An application with these routes. ``no_route`` is for a path that has none, or another method than GET."""

    async def unrouted(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return no_route(Refusal(error.status_code, error.detail), request)

    return RawPaths(Starlette(routes=routes, exception_handlers={HTTPException: unrouted}))


async def _healthz(_: Request) -> Response:
    return JSONResponse({"ok": True})


#: By the beginning of a path: who refuses what has no route, in the format of the face that was meant.
_REFUSE_BELOW: dict[str, Refuse] = {"/api/": problem, "/v3/": in_burrow_s_words, "/scaling/": no_such_path}


def _no_route(refusal: Refusal, request: Request) -> Response:
    path = request.scope["path"]
    meant = (refuse for beginning, refuse in _REFUSE_BELOW.items() if path.startswith(beginning))
    return next(meant, in_plain_text)(refusal, request)
