"""The HTTP application: which address answers what, to whom, and in which format."""

import hmac
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from lagwise_app.server.metrics.documents import Document, MetricsWriter, current

OPENMETRICS = "application/openmetrics-text"
_TEXT = "text/plain"
_CONTENT_TYPES = {
    True: f"{OPENMETRICS}; version=1.0.0; charset=utf-8",
    False: f"{_TEXT}; version=0.0.4; charset=utf-8",
}


class Counts:
    """What the heartbeat says of the requests so far."""

    answered = rejected = 0
    last_rejection = ""


def application(
    writer: MetricsWriter, token: str | None, counts: Counts, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> Starlette:
    """The application. With a ``token``, every address but `/healthz` requires it."""

    def rejected(request: Request, status: int, why: str) -> Response:
        counts.rejected += 1
        counts.last_rejection = f"{request.url.path}: {why}"
        return PlainTextResponse(f"{why}\n", status)

    async def healthz(_: Request) -> Response:
        return JSONResponse({"ok": True})

    async def metrics(request: Request) -> Response:
        sent = request.headers.get("authorization", "")
        if token is not None and not hmac.compare_digest(sent.encode("latin-1"), f"Bearer {token}".encode()):
            return rejected(request, 401, "send the token as Authorization: Bearer …")
        documents = current(writer, clock())
        if documents is None:
            why = "has not been read yet" if writer.documents is None else "has not been read for too long"
            return rejected(request, 503, f"the lake {why}")
        key = request.path_params.get("exporter", ""), request.path_params.get("cluster", "")
        document = documents.by_key.get(key)
        if document is None:
            return rejected(request, 404, _no_document(*key, known=documents.by_key))
        counts.answered += 1
        return await _answer(request, document)

    return Starlette(
        routes=[
            Route("/healthz", healthz),
            Route("/metrics", metrics),
            Route("/metrics/{exporter}", metrics),
            Route("/metrics/{exporter}/{cluster:path}", metrics),
        ]
    )


async def _answer(request: Request, document: Document) -> Response:
    is_openmetrics = prefers_openmetrics(request.headers.get("accept", ""))
    headers = {"Vary": "Accept, Accept-Encoding", "Cache-Control": "no-store"}
    body = document.text
    if qualities(request.headers.get("accept-encoding", "")).get("gzip", 0.0) > 0:
        body = await run_in_threadpool(document.compressed)
        headers["Content-Encoding"] = "gzip"
    return Response(body, headers=headers, media_type=_CONTENT_TYPES[is_openmetrics])


def _no_document(exporter: str, cluster: str, known: Iterable[tuple[str, str]]) -> str:
    names = {name for name, _ in known}
    if exporter not in names:
        return f"{exporter} is not among server.metrics.name_sets, or no cluster is known"
    if (exporter, "") in known:
        return f"the metrics of {exporter} name the cluster in a label: leave it out of the path"
    if not cluster:
        return f"the metrics of {exporter} do not name the cluster: the path must be /metrics/{exporter}/CLUSTER"
    return f"no cluster {cluster!r} is known"


def prefers_openmetrics(accept: str) -> bool:
    """Whether a caller would rather have OpenMetrics than the older text format, which who says nothing gets."""
    wanted = qualities(accept)
    return wanted.get(OPENMETRICS, 0.0) > 0 and wanted[OPENMETRICS] >= wanted.get(_TEXT, 0.0)


def qualities(header: str) -> dict[str, float]:
    """The entries of an `Accept` or `Accept-Encoding` header with their highest quality, without other parameters."""
    found: dict[str, float] = {}
    for entry in header.lower().split(","):
        name, *parameters = (part.strip() for part in entry.split(";"))
        quality = next((p.removeprefix("q=") for p in parameters if p.startswith("q=")), "1")
        try:
            found[name] = max(found.get(name, 0.0), float(quality))
        except ValueError:
            continue
    return found
