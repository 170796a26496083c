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

from lagwise_app.server.api.problems import problem
from lagwise_app.server.api.questions import Context
from lagwise_app.server.api.routes import PREFIX, api_routes
from lagwise_app.server.gate import Gate, RawPaths
from lagwise_app.server.metrics.documents import MetricsWriter, current
from lagwise_app.server.metrics.endpoint import in_plain_text, metrics_routes, why_none
from lagwise_app.server.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Faces:
    """What the application answers from."""

    writer: MetricsWriter
    context: Context
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)


def application(gate: Gate, faces: Faces) -> ASGIApp:
    """The application of `lagwise serve`."""

    async def readyz(_: Request) -> Response:
        if current(faces.writer, faces.clock()) is None:
            return JSONResponse({"ok": False, "why": why_none(faces.writer)}, 503)
        return JSONResponse({"ok": True})

    return assembled(
        [
            Route("/readyz", readyz),
            *metrics_routes(gate, faces.writer, faces.clock),
            *api_routes(gate, faces.context),
        ]
    )


def assembled(routes: list[Route]) -> ASGIApp:
    """An application with these routes, and with the probe that says that it answers at all."""
    return RawPaths(
        Starlette(routes=[Route("/healthz", healthz), *routes], exception_handlers={HTTPException: _no_route})
    )


async def healthz(_: Request) -> Response:
    """Says that the server answers. Needs no token, and tells nothing else."""
    return JSONResponse({"ok": True})


async def _no_route(request: Request, error: Exception) -> Response:
    """For a path that has no route, or another method than GET: in the format of the face that it was meant for."""
    assert isinstance(error, HTTPException)
    refuse = problem if request.scope["path"].startswith(PREFIX) else in_plain_text
    return refuse(Refusal(error.status_code, error.detail), request)
