"""The addresses of metrics: which document a scrape gets, and in which format."""

from collections.abc import Callable, Iterable
from datetime import datetime

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from lagwise_app.server.access import Caller
from lagwise_app.server.gate import Gate
from lagwise_app.server.metrics.documents import Document, MetricsWriter, current
from lagwise_app.server.refusal import Refusal

OPENMETRICS = "application/openmetrics-text"
_TEXT = "text/plain"
_CONTENT_TYPES = {
    True: f"{OPENMETRICS}; version=1.0.0; charset=utf-8",
    False: f"{_TEXT}; version=0.0.4; charset=utf-8",
}


def metrics_routes(gate: Gate, writer: MetricsWriter, clock: Callable[[], datetime]) -> list[Route]:
    """The routes of Lagwise's own metrics and of those of other exporters."""

    async def metrics(request: Request, _: Caller) -> Response:
        documents = current(writer, clock())
        if documents is None:
            raise Refusal(503, why_none(writer))
        key = request.path_params.get("exporter", ""), request.path_params.get("cluster", "")
        document = documents.by_key.get(key)
        if document is None:
            raise Refusal(404, _no_document(*key, known=documents.by_key))
        return await _answer(request, document)

    paths = ("/metrics", "/metrics/{exporter:name}", "/metrics/{exporter:name}/{cluster:rest}")
    return [gate.route(path, metrics, in_plain_text, need="metrics") for path in paths]


def why_none(writer: MetricsWriter) -> str:
    """Why there is no document to serve."""
    return f"the lake {'has not been read yet' if writer.documents is None else 'has not been read for too long'}"


def in_plain_text(refusal: Refusal, _: Request) -> Response:
    """A refusal as a line of text."""
    return PlainTextResponse(f"{refusal.why}\n", refusal.status)


async def _answer(request: Request, document: Document) -> Response:
    is_openmetrics = prefers_openmetrics(request.headers.get("accept", ""))
    headers = {"Vary": "Accept, Accept-Encoding"}
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
