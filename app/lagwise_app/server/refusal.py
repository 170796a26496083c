"""Why a request has no answer. Each face of the server (metrics, API, Burrow's, KEDA's) says it in its own format."""


class Refusal(Exception):
    """A request has no answer. The message says why, to whoever asked."""

    def __init__(self, status: int, why: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(why)
        self.status, self.why, self.headers = status, why, headers or {}
