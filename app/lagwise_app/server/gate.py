"""What every request passes: who asks, whether they may, and an answer within a bounded time."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Protocol, TypeVar, cast
from urllib.parse import unquote, urlsplit

from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from lagwise.platform.errors import DatabaseError, LakeError
from lagwise.platform.log_events import LogEvent, event
from lagwise.platform.log_throttle import LogThrottle
from lagwise.platform.logs import clean
from lagwise.tables.engine_errors import in_a_line
from lagwise_app.server.access import Access, Caller, Need, RateLimit, is_loopback
from lagwise_app.server.refusal import Refusal

log = logging.getLogger("lagwise.server")

#: Answers that are read from lake or database at the same time.
THREADS = 4
#: Headers by which a proxy says for whom it asks.
_OF_PROXIES = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
#: What a caller is told to wait before it asks again for something that could not be read, or took too long.
_RETRY = {"Retry-After": "5"}

Refuse = Callable[[Refusal, Request], Response]
T = TypeVar("T")


class Counts:
    """What the heartbeat says of the requests so far."""

    answered = rejected = 0
    last_rejection = ""

    def reject(self, request: Request, refusal: Refusal) -> None:
        """Count a request that has no answer."""
        self.rejected += 1
        self.last_rejection = f"{request.scope['path']}: {refusal.why}"

    def __str__(self) -> str:
        text = f"{self.answered:,} answered, {self.rejected:,} rejected"
        return f"{text}, last {self.last_rejection}" if self.rejected else text


class Handler(Protocol):
    """Answers a request: a coroutine on the event loop, or a function that may read, in a thread. May raise Refusal."""

    def __call__(self, request: Request, caller: Caller, /) -> Response | Awaitable[Response]: ...


class Gate:
    """Makes the routes of the application. ``answer_seconds`` is how long an answer may take."""

    def __init__(self, access: Access, limit: RateLimit, counts: Counts, answer_seconds: float) -> None:
        self._access, self._limit, self._counts = access, limit, counts
        self._answer_seconds = answer_seconds
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="answer")
        self._throttle = LogThrottle(log)

    def route(self, path: str, handler: Handler, refuse: Refuse, need: Need = "viewer") -> Route:
        """A route for GET whose callers need this role."""

        async def answer(request: Request) -> Response:
            try:
                response = await self._answer(request, self.admitted(request, need), handler)
            except Refusal as refusal:
                self._counts.reject(request, refusal)
                response = refuse(refusal, request)
                response.headers.update(refusal.headers)
            else:
                self._counts.answered += 1
            response.headers.setdefault("Cache-Control", "no-store")
            return response

        return Route(path, answer, methods=["GET"])

    def admitted(self, request: Request, need: Need) -> Caller:
        """Who asks, after counting the request. Raises Refusal where they may not ask, or ask too often."""
        address = request.client.host if request.client is not None else ""
        authorization = request.headers.get("authorization", "")
        caller = self._access.caller(authorization, address, is_local=_asks_for_itself(request))
        self._limit.count(f"address {address}" if caller is None else f"caller {caller.name}")
        if caller is None:
            raise Refusal(401, "send the token as Authorization: Bearer …", {"WWW-Authenticate": "Bearer"})
        if not caller.may(need):
            raise Refusal(
                403, "not for this caller: it takes a token, with the role and the limits that the settings give it"
            )
        return caller

    async def _answer(self, request: Request, caller: Caller, handler: Handler) -> Response:
        if not inspect.iscoroutinefunction(handler):
            return await self.read(lambda: cast(Response, handler(request, caller)))
        with self._refusing():
            answered: Response = await handler(request, caller)
            return answered

    async def read(self, reading: Callable[[], T]) -> T:
        """What a function reads, in a thread, within the time that an answer may take. Raises Refusal."""
        with self._refusing():
            # A request that nobody waits for any more leaves the queue; one that has begun runs to its end.
            begun = asyncio.get_running_loop().run_in_executor(self._threads, reading)
            return await asyncio.wait_for(begun, self._answer_seconds)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Errors inside become a Refusal."""
        try:
            yield
        except Refusal:
            raise
        except TimeoutError:
            raise Refusal(503, f"the answer took longer than {self._answer_seconds:g} s", _RETRY) from None
        except LakeError as error:
            why = clean(in_a_line(error))
            self._throttle.warn(LogEvent.LAKE_UNREADABLE, f"cannot read the lake, so requests fail: {why}", same="lake")
            raise Refusal(503, "the lake cannot be read", _RETRY) from error
        except DatabaseError as error:
            why = clean(in_a_line(error))
            self._throttle.warn(
                LogEvent.DATABASE_UNREACHABLE, f"cannot read the database, so requests fail: {why}", same="database"
            )
            raise Refusal(503, "the operational database cannot be read", _RETRY) from error
        except Exception as error:
            log.exception("a request failed", extra=event(LogEvent.DEFECT))
            raise Refusal(500, "Lagwise has a defect here; its log says more") from error

    def close(self) -> None:
        """End the threads, without waiting for what they read."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _asks_for_itself(request: Request) -> bool:
    """Whether a request names this machine as its host and no proxy sent it on.

    A page of somebody else's in a browser on this machine, whose name was made to lead here (DNS rebinding), names its
    own host; a proxy that publishes the metrics says for whom it asks.
    """
    host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    return is_loopback(host) and not any(name in request.headers for name in _OF_PROXIES)


class _Name(Convertor[str]):
    """A name in a path. It may contain anything, a slash as `%2F`."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return unquote(value)

    def to_string(self, value: str) -> str:
        raise NotImplementedError


class _Rest(_Name):
    """The rest of a path as a name. It may contain slashes."""

    regex = ".+"


register_url_convertor("name", _Name())
register_url_convertor("rest", _Rest())


class RawPaths:
    """Matches routes against the path as it was sent, so that a name with `%2F` stays in one piece."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = scope.get("raw_path")
        if raw is not None:
            scope = {**scope, "path": raw.decode("latin-1")}
        await self._app(scope, receive, send)
