"""Offsets that members of broadcasting groups store on their own disks: RocketMQ's ``offsets.json``.

A client of a broadcasting group commits to no broker. Every five seconds it writes its offsets to a file
``FOLDER/CLIENT_ID/GROUP/offsets.json`` (``LocalFileOffsetStore``), and keeps the previous version as
``offsets.json.bak``.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

import pyarrow.fs as pafs

from lagwise.config.rocketmq import LocalOffsetFiles
from lagwise_collectors.external_offsets.file_system import OffsetFileSystem
from lagwise_collectors.external_offsets.model import OffsetSourceTrouble
from lagwise_collectors.external_offsets.timed_read import TimedRead
from lagwise_collectors.protocol import ErrorTally
from lagwise_collectors.rocketmq.remoting import response_bodies
from lagwise_collectors.rocketmq.remoting.errors import MalformedResponse
from lagwise_collectors.rocketmq.remoting.requests import Queue, queue_of
from lagwise_collectors.rocketmq.remoting.response_bodies import mapping, whole_of

FILE, BEFORE = "offsets.json", ".bak"

#: Offsets in the files, by group, client id and queue.
Progress = dict[str, dict[str, Mapping[Queue, int]]]


class LocalOffsets:
    """The files of one cluster's members. :meth:`begin` starts reading, :meth:`finish` waits. For one thread."""

    def __init__(self, settings: LocalOffsetFiles, clock: Callable[[], datetime]) -> None:
        self._settings = settings
        self._clock = clock
        self._timed_read = TimedRead("local_offsets", settings.timeout_seconds, self._read, clock)
        self._last: Progress = {}

    def begin(self) -> None:
        """Start to read, unless the previous read is still running."""
        self._timed_read.begin()

    def finish(self, errors: ErrorTally) -> Progress:
        """Offsets of members. A file that cannot be read now keeps its previous offsets."""
        try:
            (found, broken), _ = self._timed_read.finish()
        except OffsetSourceTrouble as trouble:
            errors.note(trouble.kind, f"local offsets: {trouble}")
            return self._last
        for (group, client), why in broken.items():
            errors.note(why.kind, f"local offsets: {why}")
            if client in self._last.get(group, {}):
                found.setdefault(group, {})[client] = self._last[group][client]
        self._last = found
        return found

    def _read(self) -> tuple[Progress, dict[tuple[str, str], OffsetSourceTrouble]]:
        """The offsets in the files, and the files that cannot be read. Raises OffsetSourceTrouble where none can."""
        file_system = OffsetFileSystem(self._settings.path)
        oldest = self._clock() - timedelta(hours=self._settings.max_age_hours)
        found: Progress = {}
        broken: dict[tuple[str, str], OffsetSourceTrouble] = {}
        # The file is missing while its client replaces it: then the previous one is there.
        infos = {
            info.path.removesuffix(BEFORE): info
            for info in OffsetFileSystem(self._settings.path + BEFORE).matches_or_none()
        }
        infos |= {info.path: info for info in file_system.matches_or_none()}
        for path, info in infos.items():
            if info.type != pafs.FileType.File or (info.mtime is not None and info.mtime < oldest):
                continue
            client, group = path.split("/")[-3:-1]
            try:
                found.setdefault(group, {})[client] = progress_of(file_system.content(info.path))
            except MalformedResponse as error:
                broken[group, client] = OffsetSourceTrouble("malformed", f"{info.path}: {error}")
            except OffsetSourceTrouble as trouble:
                broken[group, client] = trouble
        return found, broken


def progress_of(body: bytes) -> dict[Queue, int]:
    """The next offset to consume by queue, as ``offsets.json`` has it. Raises Malformed."""
    table = mapping(response_bodies.read(body), "offsetTable")
    return {queue_of(key): offset for key, value in table.items() if (offset := whole_of(value, "an offset")) >= 0}
