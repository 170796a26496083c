"""What was looked up of next records, kept in a file from start to start.

Once retention has deleted a commit marker, nothing can tell any more that it was one: what was found while it was there
has to outlive the process. A file that is damaged is of no use, and is as good as none: then records are looked up
anew, as far as they still exist.
"""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from lagwise.platform.files import KeptFile

log = logging.getLogger("lagwise.collectors.kafka")

_FORMAT = "lagwise-next-records-1"


class LogPosition(NamedTuple):
    """An offset of a topic-partition."""

    topic: str
    partition: int
    offset: int


class Next(NamedTuple):
    """What comes at or after a place: a record at this offset, or, where there is none, the end."""

    offset: int
    is_record: bool


class NextRecordCache:
    """The file of one cluster. For one thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = KeptFile(path, log, "after a restart, next records are looked up anew as far as they still exist")
        self._kept: Mapping[LogPosition, Next] = {}

    def load(self) -> dict[LogPosition, Next]:
        """What the file holds; nothing where there is none that can be used."""
        try:
            data = json.loads(self._path.read_bytes())
            if data["format"] != _FORMAT:
                raise ValueError(f"its format is {data['format']}")
            found = {LogPosition(*place): Next(offset, is_record) for *place, offset, is_record in data["places"]}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("%s cannot be used, so next records are looked up anew: %s", self._path, error)
            return {}
        self._kept = found
        return dict(found)

    def keep(self, known: Mapping[LogPosition, Next]) -> None:
        """Replace the file where it says something else. Trouble costs nothing but the file."""
        if known == self._kept:
            return
        places = [[*place, *found] for place, found in known.items()]
        if self._file.write(json.dumps({"format": _FORMAT, "places": places}).encode()):
            self._kept = dict(known)
