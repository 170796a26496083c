"""A web server that gives the answers of a Flink cluster, as they were recorded.

``golden/flink.json`` was recorded from Flink 1.20.3 with flink-connector-kafka 3.4.0-1.20 (the job of ``FlinkJob.java``
next to it, 20,000 records in 4 partitions) against a Kafka 4.3.0 of the sandbox: a job that keeps up, one that does not
commit to Kafka, one without checkpoints, one that waits to be restarted (all of the topic ``orders``), one that takes
200 ms a record, and one more that keeps up (of ``shop.orders-v1``). Left out is what nobody reads: other metrics,
summaries, the history.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

RECORDED: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "golden" / "flink.json").read_text())


class FlinkServer:
    """Answers by path, to be changed by the test: an int is a status without a body, bytes are sent as they are.

    ``asked`` are the requests so far, ``token`` is what has to be sent, ``gate`` holds every answer back while unset.
    Paths that are ``stuck`` are answered when the server ends.
    """

    def __init__(self, recording: str) -> None:
        self.answers: dict[str, Any] = json.loads(json.dumps(RECORDED[recording]))
        self.asked: list[str] = []
        self.token: str | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.stuck: set[str] = set()
        self._ends = threading.Event()

    @property
    def jid(self) -> str:
        return str(self.answers["/v1/jobs/overview"]["jobs"][0]["jid"])

    @property
    def job(self) -> dict[str, Any]:
        """The job in the overview."""
        job: dict[str, Any] = self.answers["/v1/jobs/overview"]["jobs"][0]
        return job

    @property
    def details(self) -> dict[str, Any]:
        details: dict[str, Any] = self.answers[f"/v1/jobs/{self.jid}"]
        return details

    @property
    def checkpoints(self) -> dict[str, Any]:
        found: dict[str, Any] = self.answers[f"/v1/jobs/{self.jid}/checkpoints"]
        return found

    def metrics(self, ending: str) -> dict[str, str]:
        """The values of the metrics whose names end so, of the source."""
        (source,) = (a for path, a in self.answers.items() if path.endswith("/metrics") and a["values"])
        self._values: dict[str, str] = source["values"]
        return {name: value for name, value in self._values.items() if name.endswith(ending)}

    def set_metrics(self, ending: str, value: int) -> None:
        for name in self.metrics(ending):
            self._values[name] = str(value)

    def answer(self, path: str, query: dict[str, list[str]]) -> Any:
        found = self.answers.get(path, 404)
        if path.endswith("/metrics") and isinstance(found, dict):
            if "get" not in query:
                return [{"id": name} for name in found["ids"]]
            wanted = query["get"][0].split(",")
            return [{"id": name, "value": found["values"][name]} for name in wanted if name in found["values"]]
        return found

    @contextmanager
    def running(self) -> Iterator[str]:
        """Serve, and give the address."""
        ours = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                ours.asked.append(self.path)
                ours.gate.wait(30)
                where = urlsplit(self.path)
                if where.path in ours.stuck:
                    ours._ends.wait(30)
                answer = ours.answer(where.path, parse_qs(where.query))
                if ours.token is not None and self.headers.get("Authorization") != f"Bearer {ours.token}":
                    answer = 401
                body = answer if isinstance(answer, bytes) else b"" if isinstance(answer, int) else _json(answer)
                self.send_response(answer if isinstance(answer, int) else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing on stderr."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            self.gate.set()
            self._ends.set()
            server.shutdown()
            thread.join()
            server.server_close()


def _json(answer: Any) -> bytes:
    return json.dumps(answer).encode()
