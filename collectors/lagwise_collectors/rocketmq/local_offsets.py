"""Offsets that members of broadcasting groups keep on their own disks: RocketMQ's ``offsets.json``.

A client of a broadcasting group commits to no broker. Every five seconds it writes how far it is to a file
``FOLDER/CLIENT_ID/GROUP/offsets.json`` (``LocalFileOffsetStore``), and keeps what that was as ``offsets.json.bak``.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

import pyarrow.fs as pafs

from lagwise.config import LocalOffsetFiles
from lagwise_collectors.external_offsets.file_system import OffsetFileSystem
from lagwise_collectors.external_offsets.model import Trouble
from lagwise_collectors.external_offsets.timed_read import TimedRead
from lagwise_collectors.protocol import ErrorTally
from lagwise_collectors.rocketmq.remoting import response_bodies
from lagwise_collectors.rocketmq.remoting.errors import Malformed
from lagwise_collectors.rocketmq.remoting.requests import Queue, queue_of
from lagwise_collectors.rocketmq.remoting.response_bodies import mapping, whole_of

FILE, BEFORE = "offsets.json", ".bak"

#: How far the members of each group are by their files: by group, client id and queue.
Progress = dict[str, dict[str, Mapping[Queue, int]]]


class LocalOffsets:
    """The files of one cluster's members. :meth:`begin` has them read, :meth:`finish` waits. For one thread."""

    def __init__(self, settings: LocalOffsetFiles, clock: Callable[[], datetime]) -> None:
        self._settings = settings
        self._clock = clock
        self._lane = TimedRead("local_offsets", settings.timeout_seconds, self._read, clock)
        self._last: Progress = {}

    def begin(self) -> None:
        """Start to read, unless the look before this one goes on."""
        self._lane.begin()

    def finish(self, errors: ErrorTally) -> Progress:
        """How far members are. What cannot be read now stands as it was read last."""
        try:
            (found, broken), _ = self._lane.finish()
        except Trouble as trouble:
            errors.note(trouble.kind, f"local offsets: {trouble}")
            return self._last
        for (group, client), why in broken.items():
            errors.note(why.kind, f"local offsets: {why}")
            if client in self._last.get(group, {}):
                found.setdefault(group, {})[client] = self._last[group][client]
        self._last = found
        return found

    def _read(self) -> tuple[Progress, dict[tuple[str, str], Trouble]]:
        """What the files tell, and which of them could not be read. Raises Trouble where that is true of all."""
        places = OffsetFileSystem(self._settings.path)
        oldest = self._clock() - timedelta(hours=self._settings.max_age_hours)
        found: Progress = {}
        broken: dict[tuple[str, str], Trouble] = {}
        # The file is missing while its client replaces it: then the one before it is there.
        infos = {
            info.path.removesuffix(BEFORE): info
            for info in OffsetFileSystem(self._settings.path + BEFORE).found_or_none()
        }
        infos |= {info.path: info for info in places.found_or_none()}
        for path, info in infos.items():
            if info.type != pafs.FileType.File or (info.mtime is not None and info.mtime < oldest):
                continue
            client, group = path.split("/")[-3:-1]
            try:
                found.setdefault(group, {})[client] = progress_of(places.content(info.path))
            except Malformed as error:
                broken[group, client] = Trouble("malformed", f"{info.path}: {error}")
            except Trouble as trouble:
                broken[group, client] = trouble
        return found, broken


def progress_of(body: bytes) -> dict[Queue, int]:
    """The next offset to consume by queue, as ``offsets.json`` has it. Raises Malformed."""
    table = mapping(response_bodies.read(body), "offsetTable")
    return {queue_of(key): offset for key, value in table.items() if (offset := whole_of(value, "an offset")) >= 0}
