"""Many readers of one page, all of whom ask for a refresh at the same moment: what an incident does to the server.

The readers are connections that speak Streamlit's protocol, without browsers: on one machine twenty browsers that draw
charts would leave the server no time, and what they take is not the server's. Each has the page drawn, and then asks
for its body alone, as a page does that refreshes itself.
"""

import asyncio
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import psutil
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

_MAX_BYTES = 64 * 2**20
_READY_SECONDS = 120


class _Viewer:
    """One connection. ``fragment`` is the part of the page that refreshes itself, once the page was drawn."""

    def __init__(self, socket: ClientConnection, url: str) -> None:
        self._socket = socket
        parts = urlsplit(url)
        self._state = ClientState(query_string=parts.query, page_name=parts.path.strip("/"))
        self._state.context_info.url = url
        self.fragment = ""

    async def ask(self) -> tuple[float, int]:
        """Ask for the page, or once it was drawn for a refresh: seconds until all has come, and its bytes."""
        began, size = time.monotonic(), 0
        self._state.fragment_id, self._state.is_auto_rerun = self.fragment, bool(self.fragment)
        await self._socket.send(BackMsg(rerun_script=self._state).SerializeToString())
        while True:
            data = await asyncio.wait_for(self._socket.recv(decode=False), _READY_SECONDS)
            size += len(data)
            message = ForwardMsg.FromString(data)
            if message.metadata.cacheable:  # what a browser keeps, too: the server sends it once
                self._state.cached_message_hashes.append(message.hash)
            kind = message.WhichOneof("type")
            if kind == "new_session":
                self._state.page_script_hash = message.new_session.page_script_hash
            elif kind == "auto_rerun":
                self.fragment = message.auto_rerun.fragment_id
            elif kind == "script_finished":
                return time.monotonic() - began, size


async def _waves(
    address: str, path: str, process: psutil.Process, tick: Callable[[], None], viewers: int, waves: int
) -> dict[str, Any]:
    socket_address = address.replace("http", "ws", 1) + "/_stcore/stream"
    sockets = [
        await connect(socket_address, subprotocols=[Subprotocol("streamlit")], max_size=_MAX_BYTES)
        for _ in range(viewers)
    ]
    everyone = [_Viewer(socket, address + path) for socket in sockets]
    for viewer in everyone:
        await viewer.ask()
    assert all(viewer.fragment for viewer in everyone), "no part of the page refreshes itself"
    seconds, sizes, cpu_seconds = [], [], []
    for _ in range(waves):
        tick()
        before = process.cpu_times()
        answers = await asyncio.gather(*(viewer.ask() for viewer in everyone))
        after = process.cpu_times()
        seconds += [s for s, _ in answers]
        sizes += [size for _, size in answers]
        cpu_seconds.append((after.user + after.system - before.user - before.system) / viewers)
    for socket in sockets:
        await socket.close()
    return {
        "viewers": viewers,
        "refreshes": len(seconds),
        "p50_s": round(statistics.median(seconds), 3),
        "p95_s": round(statistics.quantiles(seconds, n=20)[-1], 3),
        "cpu_ms_each": round(1000 * statistics.median(cpu_seconds)),
        "bytes_most": max(sizes),
    }


def refreshes_of_all(
    address: str, path: str, process: psutil.Process, tick: Callable[[], None], viewers: int, waves: int
) -> dict[str, Any]:
    """What refreshes of a page take when all ``viewers`` ask at the same moment, after a round each time (``tick``)
    that changed everything: seconds of half and of 95 % of them, CPU of the server for each, and the most bytes."""
    with ThreadPoolExecutor(1) as thread:  # Playwright has its own event loop in the caller's
        return thread.submit(asyncio.run, _waves(address, path, process, tick, viewers, waves)).result()
