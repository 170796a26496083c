"""A stub of the database that handlers call: it answers after a time, so many calls of a group at once.

A process of its own. Each connection begins with the name of its group in a line; then each byte is a call, answered
by a byte. Lines of JSON on its input change a group's ``latency_seconds`` and ``at_once``.
"""

import asyncio
import json
import random
import sys
from dataclasses import dataclass, field


@dataclass(slots=True)
class Served:
    """How calls of one group are served."""

    latency_seconds: float
    #: Calls that are served at the same time; more wait for their turn.
    at_once: int = 1_000
    busy: int = 0
    freed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def call(self) -> None:
        async with self.freed:
            await self.freed.wait_for(lambda: self.busy < self.at_once)
            self.busy += 1
        await asyncio.sleep(self.latency_seconds * random.uniform(0.5, 1.5))
        async with self.freed:
            self.busy -= 1
            self.freed.notify_all()


async def serve(latency_seconds: float) -> None:
    """Serve until the end of the input; the port is printed first."""
    groups: dict[str, Served] = {}

    def of(group: str) -> Served:
        return groups.setdefault(group, Served(latency_seconds))

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served = of((await reader.readline()).decode().strip())
        while await reader.read(1):
            await served.call()
            writer.write(b".")
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    loop = asyncio.get_running_loop()
    async with server:
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            change = json.loads(line)
            served = of(change.pop("group"))
            for name, value in change.items():
                setattr(served, name, value)


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
