"""A visitor without a browser: opens a page's socket as a browser does, or as a proxy or a script would."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.sync.client import ClientConnection, connect

_SECONDS = 30.0


class Connection:
    """An open socket of a page. ``controls`` are the kinds of the controls that were drawn on it, by their ids."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self.controls: dict[str, str] = {}
        self._page = ("", "")

    def ask(self, page: str = "", query: str = "", states: Iterable[WidgetState] = ()) -> str:
        """Everything that the page sends until it has been drawn, as text; ``states`` is what its controls are said to
        hold.

        ``page`` is its path without the slash; "" is the first one. ``query`` is that of its address.
        """
        ask = BackMsg()
        if self._page[0] == page:  # else it is another page, on which no control holds anything
            ask.rerun_script.page_script_hash = self._page[1]
        ask.rerun_script.page_name = page
        ask.rerun_script.query_string = query
        ask.rerun_script.widget_states.widgets.extend(states)
        self._socket.send(ask.SerializeToString())
        texts: list[str] = []
        while True:
            message = ForwardMsg()
            message.ParseFromString(bytes(self._socket.recv(timeout=_SECONDS, decode=False)))
            texts.append(str(message))
            self._note(message, page)
            if message.WhichOneof("type") == "script_finished":
                return "\n".join(texts)

    def _note(self, message: ForwardMsg, page: str) -> None:
        if message.WhichOneof("type") == "navigation":
            self._page = (page, message.navigation.page_script_hash)
        element = message.delta.new_element
        kind = element.WhichOneof("type")
        if kind and (id_ := getattr(getattr(element, kind), "id", "")):
            self.controls[id_] = kind

    def control(self, key: str) -> str:
        """The id of the control with this key."""
        (found,) = (id_ for id_ in self.controls if id_.endswith(f"-{key}"))
        return found


@contextmanager
def connected(
    address: str, *, origin: str | None, headers: Mapping[str, str] | None = None, token: str | None = None
) -> Iterator[Connection]:
    """Open a socket; ``origin`` None sends no such header. ``token`` repeats that of the cookie ``_streamlit_xsrf``, as
    a page's script does."""
    with connect(
        f"ws://{urlsplit(address).netloc}/_stcore/stream",
        origin=origin,  # type: ignore[arg-type]  # a text, for which the library has a name of its own
        additional_headers=headers,
        subprotocols=["streamlit", *filter(None, [token])],  # type: ignore[list-item]  # likewise
        user_agent_header="Mozilla/5.0",
        max_size=None,
    ) as socket:
        yield Connection(socket)


def drawn(
    address: str, page: str = "", query: str = "", *, origin: str | None, headers: Mapping[str, str] | None = None
) -> str:
    """Everything that a page sends until it has been drawn, as text (arguments as of :func:`connected` and
    :meth:`Connection.ask`)."""
    with connected(address, origin=origin, headers=headers) as connection:
        return connection.ask(page, query)
