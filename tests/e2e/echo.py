"""A web server that answers with everything that it receives, in several encodings: the worst receiver there is."""

import base64
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import quote, unquote


class Echo:
    """Answers requests whose path begins with ``/STATUS/`` with that status, others with 400."""

    def __init__(self) -> None:
        #: Every request: its path, headers and body.
        self.received: list[str] = []
        echo = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("utf-8", "replace")
                login = self.headers.get("Authorization", "").rpartition(" ")[2]
                request = f"{self.path} {login} {unquote(self.path)} {self.headers.items()} {body}"
                echo.received.append(request)
                data = request.encode()
                answer = "\n".join([request, base64.b64encode(data).decode(), data.hex(), quote(request)]).encode()
                status = self.path.split("/")[1]
                self.send_response(int(status) if status.isdigit() else 400)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = _answer

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self.port = int(self._server.server_address[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
