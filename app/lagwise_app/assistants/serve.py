"""Runs the MCP server, over the streams of this process or over HTTP."""

import threading
from pathlib import Path

import anyio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from lagwise.config import Config
from lagwise.config.visibility import Visibility
from lagwise.platform import health
from lagwise.tables.store import Lake
from lagwise.tables.tolerant import TolerantLake
from lagwise_app.answers.alerts import AlertAnswers
from lagwise_app.answers.context import Context
from lagwise_app.assistants.server import AnyCall, mcp_server
from lagwise_app.server.access import Access, Caller, RateLimit
from lagwise_app.server.gate import Counts, Gate
from lagwise_app.server.refusal import Refusal
from lagwise_app.server.serve import Listener, run

PATH = "/mcp"
#: Whether the server answers, for probes: without a token, and without a word about groups.
HEALTH_PATH = "/healthz"
#: A question is a few hundred bytes.
_MOST_BYTES = 65_536
_CALLER = "lagwise.caller"


def serve_streams(config: Config, lake: Lake) -> None:
    """Answer over stdin and stdout until stdin ends. Whoever started this process may read the lake: nothing is
    hidden from them."""
    gate = _gate(config, Access([]), Counts())
    server = mcp_server(Context(lake, config, AlertAnswers(config)), gate, lambda _: Visibility())
    try:
        anyio.run(server.run_stdio_async)
    finally:
        gate.close()


def serve_http(config: Config, stop: threading.Event, state: Path) -> None:
    """Answer over HTTP until ``stop`` is set, with the tokens and limits of `server`. Raises ConfigError where it
    cannot listen."""
    settings, counts = config.mcp, Counts()
    gate = _gate(config, Access.of(config.server, settings.host), counts)
    lake = TolerantLake(config.lake_uri, config.lake.resolved_storage_options())
    server = mcp_server(Context(lake, config, AlertAnswers(config)), gate, _visibility_of)
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        # Every question stands alone. So no session can be taken over with another token, or be lost in a restart.
        stateless_http=True,
        json_response=True,
        max_request_body_size=_MOST_BYTES,
        host=settings.host,
    )
    listener = Listener(settings.host, settings.port or 0, "mcp", health.ASSISTANTS, PATH, config.database_url)
    try:
        run(
            Admitted(app, gate, counts), listener, lambda address: f"answers {address}{PATH}: {counts}", [], stop, state
        )
    finally:
        gate.close()


class Admitted:
    """Lets a request through whose caller may ask, and says with it who that is."""

    def __init__(self, app: ASGIApp, gate: Gate, counts: Counts) -> None:
        self._app, self._gate, self._counts = app, gate, counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        if request.url.path == HEALTH_PATH:
            await JSONResponse({"ok": True})(scope, receive, send)
            return
        try:
            caller = self._gate.admitted(request, "viewer")
        except Refusal as refusal:
            self._counts.reject(request, refusal)
            await _refused(refusal)(scope, receive, send)
            return
        self._counts.answered += 1
        await self._app({**scope, _CALLER: caller}, receive, send)


def _refused(refusal: Refusal) -> Response:
    return JSONResponse({"error": refusal.why}, refusal.status, refusal.headers)


def _visibility_of(call: AnyCall) -> Visibility:
    request = call.request_context.request
    assert request is not None  # over HTTP
    caller: Caller = request.scope[_CALLER]
    return caller.visibility


def _gate(config: Config, access: Access, counts: Counts) -> Gate:
    settings = config.server
    limit = RateLimit(settings.requests_per_second, settings.burst_requests)
    return Gate(access, limit, counts, settings.answer_timeout_seconds)
