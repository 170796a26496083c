"""A visitor without a browser: opens a page's socket as a browser does, or as a proxy or a script would."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

_SECONDS = 30.0


def drawn(
    address: str,
    page: str = "",
    query: str = "",
    *,
    origin: str | None,
    headers: Mapping[str, str] | None = None,
    token: str | None = None,
) -> str:
    """Everything that a page sends until it has been drawn, as text; ``origin`` None sends no such header.

    ``page`` is its path without the slash; "" is the first one. ``query`` is that of its address; ``token``
    repeats that of the cookie ``_streamlit_xsrf``, as a page's script does.
    """
    with connect(
        f"ws://{urlsplit(address).netloc}/_stcore/stream",
        origin=origin,  # type: ignore[arg-type]  # a text, for which the library has a name of its own
        additional_headers=headers,
        subprotocols=["streamlit", *filter(None, [token])],  # type: ignore[list-item]  # likewise
        user_agent_header="Mozilla/5.0",
        max_size=None,
    ) as socket:
        ask = BackMsg()
        ask.rerun_script.page_name = page
        ask.rerun_script.query_string = query
        socket.send(ask.SerializeToString())
        texts: list[str] = []
        while True:
            message = ForwardMsg()
            message.ParseFromString(bytes(socket.recv(timeout=_SECONDS, decode=False)))
            texts.append(str(message))
            if message.WhichOneof("type") == "script_finished":
                return "\n".join(texts)
