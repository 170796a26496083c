"""A real OpenID Connect provider on loopback that lets in whoever it is told is at the keyboard."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey


class Provider:
    """``claims`` are of the person who signs in next. The authorisation code flow, with an ID token signed by RS256."""

    def __init__(self, client_id: str) -> None:
        self.claims: dict[str, Any] = {}
        self._client_id = client_id
        self._key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})
        self._nonces: dict[str, str] = {}
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(url.query).items()}
                if url.path == "/.well-known/openid-configuration":
                    self._answer(provider._configuration())
                elif url.path == "/jwks":
                    self._answer({"keys": [provider._key.as_dict(private=False)]})
                elif url.path == "/authorize":
                    code = f"code-{len(provider._nonces)}"
                    provider._nonces[code] = query.get("nonce", "")
                    self.send_response(302)
                    self.send_header(
                        "Location", f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"
                    )
                    self.end_headers()
                else:
                    self.send_error(404)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode("ascii")
                code = parse_qs(body)["code"][0]
                self._answer(
                    {"access_token": "a", "token_type": "Bearer", "expires_in": 60, "id_token": provider._token(code)}
                )

            def _answer(self, document: object) -> None:
                body = json.dumps(document).encode("ascii")
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def _configuration(self) -> dict[str, Any]:
        return {
            "issuer": self.address,
            "authorization_endpoint": f"{self.address}/authorize",
            "token_endpoint": f"{self.address}/token",
            "jwks_uri": f"{self.address}/jwks",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }

    def _token(self, code: str) -> str:
        now = int(time.time())
        claims = {"iss": self.address, "aud": self._client_id, "sub": "1", "iat": now, "exp": now + 300}
        claims |= {"nonce": self._nonces[code], **self.claims}
        return jwt.encode({"alg": "RS256", "kid": "one"}, claims, self._key)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
